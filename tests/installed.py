"""Packages of the tests' own environment: what they need, and wheels made of them."""

import re
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path
from typing import Final
from zipfile import ZipFile

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

_OF_THIS_INSTALLATION: Final = frozenset({"INSTALLER", "REQUESTED", "RECORD", "direct_url.json"})


def needed(requirement: Requirement) -> list[Requirement]:
    """Return what a requirement needs with its extras, as newer pips understand their names."""
    extras: list[str] = [*map(canonicalize_name, requirement.extras)] or [""]
    declared = map(Requirement, metadata.requires(requirement.name) or [])
    return [each for each in declared if each.marker is None or any(each.marker.evaluate({"extra": e}) for e in extras)]


def needed_by_all(requirements: Iterable[str]) -> list[Requirement]:
    """Return requirements and everything that they need, directly or not."""
    waiting = [Requirement(requirement) for requirement in requirements]
    known: dict[str, Requirement] = {}
    while waiting:
        requirement = waiting.pop()
        if str(requirement) not in known:
            known[str(requirement)] = requirement
            waiting += needed(requirement)
    return list(known.values())


def write_wheel(name: str, folder: Path) -> None:
    """Write the wheel of an installed package, as the index has it except for the hashes in its record."""
    package = metadata.distribution(name)
    tags = [tag.split("-") for tag in re.findall(r"^Tag: (.+)$", package.read_text("WHEEL") or "", re.MULTILINE)]
    tag = "-".join(".".join(dict.fromkeys(parts)) for parts in zip(*tags, strict=True))
    files = [
        file
        for file in package.files or []
        # Scripts are made again by whoever installs the wheel.
        if not {"..", "__pycache__"} & {*file.parts} and file.name not in _OF_THIS_INSTALLATION
    ]
    (record,) = {f"{file.parts[0]}/RECORD" for file in files if file.parts[0].endswith(".dist-info")}
    with ZipFile(folder / f"{record.partition('.dist-info')[0]}-{tag}.whl", "w") as wheel:
        for file in files:
            wheel.write(Path(str(file.locate())), str(file))
        wheel.writestr(record, "".join(f"{file},,\n" for file in [*map(str, files), record]))
