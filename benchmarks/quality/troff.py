r"""Manual pages as plain text: what ``man`` would show, without its layout.

Not a formatter: requests that print nothing, definitions of macros, conditional parts and tables are left out, macros
of ``man`` and ``mdoc`` that print their arguments leave those, and escapes become the characters that they stand for.
"""

import re
import shlex
from collections.abc import Iterable, Iterator

REQUEST = re.compile(r"[.'][ \t]*(\S*)[ \t]*(.*)")
SECTIONS = {"SH", "SS", "Sh", "Ss"}
# These join their arguments, in fonts that alternate.
JOINED = {"BI", "BR", "IB", "IR", "RB", "RI"}
MAN = {"B", "I", "IP", "SB", "SM", "TP", "TQ"}
MDOC = {
    *("Ao", "Aq", "Ar", "Bo", "Bq", "Brq", "Cm", "D1", "Dl", "Do", "Dq", "Dv", "Em", "Er", "Ev", "Fa", "Fl", "Fn"),
    *("Ic", "It", "Li", "Lk", "Ms", "Nd", "Nm", "No", "Ns", "Op", "Pa", "Po", "Pq", "Ql", "Qq", "Sq", "Sx", "Sy"),
    *("Tn", "Va", "Vt", "Xr"),
}
PRINTING = SECTIONS | JOINED | MAN | MDOC
DEFINITIONS = {"am", "am1", "de", "de1", "ig"}
CONDITIONS = {"if", "ie", "el", "while"}
INDENTATION = re.compile(r"[\d.]+[a-z]?")

ESCAPE = re.compile(
    r"""\\(?:
        \((?P<two>..) | \[(?P<name>[^\]]*)\]             # special characters
        | [fFgkMmnVY*](?:\[[^\]]*\]|\(..|[+-]?.)         # fonts, colours, registers, strings
        | s(?:\[[^\]]*\]|'[^']*'|[+-]?\d{1,2})           # sizes
        | [ABbCDhHlLNoRSvwxXZ]'[^']*'                    # what takes an argument in quotes
        | ["\#].*                                        # comments
        | (?P<one>.)
    )""",
    re.VERBOSE,
)
ONE = {"-": "-", "e": "\\", " ": " ", "~": " ", "0": " ", "t": " ", "'": "´", "`": "`", ".": ".", "\\": "\\"}
NAMED = dict(
    zip(
        ["aq", "bu", "co", "cq", "dq", "em", "en", "ga", "ha", "hy", "lq", "mi", "oq", "rq", "rs", "ti", "Fo", "Fc"],
        ["'", "•", "©", "’", '"', "—", "–", "`", "^", "-", "“", "−", "‘", "”", "\\", "~", "«", "»"],
        strict=True,
    )
)
CODE_POINT = re.compile("u([0-9A-F]{4,6})")


def text_of_manual(source: str) -> str:
    """Return the text of a manual page on one line, with single spaces."""
    return " ".join(" ".join(_plain(_printed(_outside_of_definitions(source.splitlines())))).split())


def _outside_of_definitions(lines: Iterable[str]) -> Iterator[str]:
    """Leave out definitions, tables, and parts under a condition, which decide on layout."""
    end, depth = "", 0
    for line in lines:
        request = REQUEST.match(line)
        name, rest = (request[1], request[2]) if request else ("", "")
        if end:
            end = "" if name == end else end
        elif depth or name in CONDITIONS:
            depth = max(0, depth + line.count("\\{") - line.count("\\}"))
        elif name in DEFINITIONS:
            # The last argument names the macro that ends it; .ig has no other argument.
            arguments = rest.split("\\")[0].split()
            named = arguments[:1] if name == "ig" else arguments[1:2]
            end = named[0] if named else "."
        elif name == "TS":
            end = "TE"
        else:
            yield line


def _printed(lines: Iterable[str]) -> Iterator[str]:
    """Leave the lines of text, and of the requests those arguments that are printed."""
    for line in lines:
        request = REQUEST.match(line)
        if request is None:
            yield line
        elif request[1] in PRINTING:
            arguments = _arguments(request[2])
            if request[1] == "IP":
                arguments = [one for one in arguments if not INDENTATION.fullmatch(one)]
            elif request[1] in MDOC:
                arguments = [one for one in arguments if one not in MDOC]
            elif request[1] in {"TP", "TQ"}:
                arguments = []
            yield ("" if request[1] in JOINED else " ").join(arguments)


def _arguments(text: str) -> list[str]:
    """Split arguments at spaces outside of double quotes; an escaped space belongs to its argument."""
    splitter = shlex.shlex(text.replace("\\ ", "\\~"), posix=True)
    splitter.whitespace_split = True
    splitter.quotes, splitter.escape, splitter.commenters = '"', "", ""
    try:
        return list(splitter)
    except ValueError:
        # troff closes a quote at the end of the line.
        return text.replace('"', " ").split()


def _plain(lines: Iterable[str]) -> Iterator[str]:
    for line in lines:
        yield ESCAPE.sub(_character, line)


def _character(escape: re.Match[str]) -> str:
    """Return the character of an escape; nothing for fonts, sizes, and breaks that may be."""
    name = escape["two"] or escape["name"]
    if name:
        code = CODE_POINT.fullmatch(name)
        return chr(int(code[1], 16)) if code else NAMED.get(name, " ")
    return ONE.get(escape["one"] or "", "")
