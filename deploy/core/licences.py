"""Prints the licences of crates linked into the engine: ``python -m deploy.core.licences > core/THIRD_PARTY``.

Distributors of the engine must pass these licences on, so wheels and images contain the file. A test fails if the file
does not match ``core/Cargo.lock``.
"""

import json
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

ROOT: Final = Path(__file__).parents[2]
MANIFEST: Final = ROOT / "core" / "Cargo.toml"
APACHE: Final = "Apache-2.0"
"""Our licence, and that of most crates. It requires its own text and notices, but not the crates' licence files."""
_RULE: Final = "=" * 80
_TEXTS: Final = ("LICENSE*", "LICENCE*", "COPYING*", "UNLICENSE*")
_NOTICES: Final = ("NOTICE*", "COPYRIGHT*")
_HEAD: Final = """\
What is linked into dupwatch-core, and under which licences

This file is made by: python -m deploy.core.licences > core/THIRD_PARTY

Apache License, Version 2.0; its text is in LICENSE. Those that offer other licences too are taken under this one.

"""
_COMPILERS: Final = """\
  The Rust standard library (https://github.com/rust-lang/rust), Copyright (c) The Rust Project Contributors. Its tables
  of Unicode, Copyright (c) 1991-2024 Unicode, Inc., are under Unicode-3.0, and its hash tables use foldhash, under
  Zlib; see below for both. Its compiler-builtins are under Apache-2.0 WITH LLVM-exception and under MIT.
  In wheels of make wheels also the libunwind of LLVM (https://llvm.org), under Apache-2.0 WITH LLVM-exception.

MIT License. The mathematical functions of compiler-builtins come from musl, Copyright (c) 2005-2020 Rich Felker, et
al., and from CORE-MATH (https://core-math.gitlabpages.inria.fr). Wheels of make wheels have the compiler_rt of Zig,
Copyright (c) Zig contributors.

  Permission is hereby granted, free of charge, to any person obtaining a copy of this software and associated
  documentation files (the "Software"), to deal in the Software without restriction, including without limitation the
  rights to use, copy, modify, merge, publish, distribute, sublicense, and/or sell copies of the Software, and to
  permit persons to whom the Software is furnished to do so, subject to the following conditions:

  The above copyright notice and this permission notice shall be included in all copies or substantial portions of the
  Software.

  THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT NOT LIMITED TO THE
  WARRANTIES OF MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE AUTHORS
  OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR
  OTHERWISE, ARISING FROM, OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE SOFTWARE.
"""


class Crate(NamedTuple):
    """A crate: its name and version, its licence as an SPDX expression, where it comes from, and its folder here."""

    name: str
    version: str
    licence: str
    repository: str
    folder: Path

    @property
    def description(self) -> str:
        """The crate as a line of text."""
        return f"{self.name} {self.version} ({self.licence}) {self.repository}".rstrip()


def metadata(manifest: Path = MANIFEST) -> dict[str, Any]:
    """Return cargo's metadata on the crates in the lock file, including crates for other systems.

    Raises ``CalledProcessError`` if cargo fails.
    """
    command = ["cargo", "metadata", "--locked", "--format-version", "1", "--manifest-path", str(manifest)]
    answer = subprocess.run(command, stdout=subprocess.PIPE, check=True)  # noqa: S603  # a command of ours
    found: dict[str, Any] = json.loads(answer.stdout)
    return found


def linked_crates(found: Mapping[str, Any]) -> list[Crate]:
    """Return the crates that are linked in on some system, except build dependencies, macros and our own crate."""
    packages = {package["id"]: package for package in found["packages"]}
    needs = {node["id"]: node["deps"] for node in found["resolve"]["nodes"]}
    root = found["resolve"]["root"]
    reached: set[str] = set()
    ahead = [root]
    while ahead:
        package = ahead.pop()
        if package in reached or _is_macro(packages[package]):
            continue
        reached.add(package)
        ahead += [need["pkg"] for need in needs[package] if any(kind["kind"] is None for kind in need["dep_kinds"])]
    return sorted(_crate(packages[package]) for package in reached - {root})


def third_party(crates: Sequence[Crate]) -> str:
    """Return the text of the file: the crates, and each licence text once.

    Raises ``ValueError`` if a text is missing.
    """
    apache = [crate for crate in crates if APACHE in alternatives(crate.licence)]
    lines = "".join(f"  {crate.description}\n" for crate in apache)
    carriers: dict[str, list[Crate]] = {}
    for crate in crates:
        for text in _texts(crate, needed=crate not in apache):
            carriers.setdefault(text, []).append(crate)
    return _HEAD + lines + _COMPILERS + "".join(_section(text, of) for text, of in carriers.items())


def alternatives(expression: str) -> list[str]:
    """Return the licences that an SPDX expression joins by OR or a slash.

    An expression with AND or parentheses is returned whole.
    """
    return [expression] if re.search(r" AND |\(", expression) else re.split(r" OR |/", expression)


def _is_macro(package: Mapping[str, Any]) -> bool:
    return any("proc-macro" in target["kind"] for target in package["targets"])


def _crate(package: Mapping[str, Any]) -> Crate:
    folder = Path(package["manifest_path"]).parent
    return Crate(package["name"], package["version"], package["license"] or "", package["repository"] or "", folder)


def _texts(crate: Crate, *, needed: bool) -> Iterator[str]:
    """Yield the notices of a crate, and its licences if they are ``needed``."""
    yield from _read(crate, _NOTICES)
    if needed:
        texts = list(_read(crate, _TEXTS))
        if not texts:
            raise ValueError(f"{crate.description} has no file with its licence: {crate.folder}")
        yield from texts


def _read(crate: Crate, patterns: Sequence[str]) -> Iterator[str]:
    for path in sorted(path for pattern in patterns for path in crate.folder.glob(pattern)):
        yield path.read_text(encoding="utf-8").strip()


def _section(text: str, crates: Sequence[Crate]) -> str:
    names = "".join(f"{crate.description}\n" for crate in crates)
    return f"\n{_RULE}\n{names}{_RULE}\n\n{text}\n"


if __name__ == "__main__":
    sys.stdout.reconfigure(encoding="utf-8")  # type: ignore[union-attr]  # standard output is a text file
    sys.stdout.write(third_party(linked_crates(metadata())))
