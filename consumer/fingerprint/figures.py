"""Finds the figures of a text: dates, numbers and codes.

Schemes that compare letters bring each number into canonical form, so that all its spellings are the same fact:

    1 234 567,5    1234567.5       thousands by ``, . ' _``, an Arabic mark or a space; decimals by a comma or a point
    −5, ٥          -5, 5           the minus sign and short dashes as hyphens, decimal digits of every script
    3-1, 1.2.3     3-1, 1.2.3      a hyphen between digits is not a sign; dates, versions, addresses do not change
"""

import re
from collections.abc import Iterator
from functools import cache
from string import ascii_lowercase
from typing import Final, NamedTuple

from consumer.fingerprint.characters.letter_tables import LetterTables

FIGURES_DESCRIBED: Final = (
    "numbers in canonical form: decimal digits of every script as ASCII; one to three digits, the first of which is "
    "not 0, and groups of three as one number, with commas or points between them, or with up to six apostrophes, low "
    "lines or spaces, where more are a list; then one decimal separator, comma, point or U+066B, as a point; four "
    "groups up to 255 with points as an address; a sign of a number or a range of two, at the start or behind a space, "
    "an opening bracket, a quotation mark or one of , : ; = and ideographic comma and full stop; dashes as hyphens; "
    "without unit"
)
_FULL_MONTHS: Final = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)
MONTHS: Final = frozenset({*_FULL_MONTHS, *(month[:3] for month in _FULL_MONTHS), "sept"})
_MONTH_CHARS_MAX: Final = 9
_DAY_DIGITS_MAX: Final = 2
# Limit on the letters before a digit that belong to a code.
_CODE_LETTERS_MAX: Final = 8
# Limit on groups of three digits between marks that may also separate the numbers of a list: more groups are a list.
# It also keeps the time linear.
_GROUPS_MAX: Final = 6
_ADDRESS_PARTS: Final = 4
_ADDRESS_PART_MAX: Final = 255

# Patterns that search a text begin with a set of characters, which `re` finds fastest. Lookbehinds for the text before
# a match therefore come after its first character. No pattern backtracks over the same characters repeatedly.
_EAST_ASIAN_DATE: Final = (
    r"(?<![0-9].)[0-9]{0,3} ?年(?: ?[0-9]{1,2} ?月(?: ?[0-9]{1,2} ?[日号])?)?"
    r"|(?<![0-9].)[0-9]? ?月 ?[0-9]{1,2} ?[日号]"
)
_FIGURES: Final = re.compile(rf"[0-9](?:{_EAST_ASIAN_DATE}|[0-9]*+(?:[.,:/-][0-9]++)*+)")
_THOUSANDS: Final = re.compile(r"[0-9]{1,3}(?:,[0-9]{3})+(?:\.[0-9]+)?")
_LETTERS_AND_DIGITS: Final = re.compile(r"[a-z0-9]*+")
_MONTH_AFTER: Final = re.compile(r"(?:st|nd|rd|th)? ([a-z]{3,9})(?![a-z])")
_YEAR_AFTER: Final = re.compile(r"(?:st|nd|rd|th)?,? ([0-9]{4})(?![0-9])")

_DECIMALS: Final = "[.,\u066b][0-9]++"
_GROUP: Final = "[0-9]{3}(?![0-9])"
# A number with apostrophes, low lines or spaces between thousands, without its first digit.
_GROUPED: Final = (
    rf"[0-9]{{0,2}}+(?:(?:'{_GROUP}){{1,{_GROUPS_MAX}}}+|(?:_{_GROUP}){{1,{_GROUPS_MAX}}}+"
    rf"|(?: {_GROUP}){{1,{_GROUPS_MAX}}}+)(?:{_DECIMALS})?+(?![.,'_\u066b]?[0-9])"
)
_CANONICAL_FIGURES: Final = re.compile(
    rf"[0-9](?:{_EAST_ASIAN_DATE}"
    rf"|(?<![a-z^].)(?<=[1-9])(?P<list>[0-9]{{0,2}}+(?:[ '_]{_GROUP}){{{_GROUPS_MAX + 1},}}+)"
    rf"|(?<![a-z^].)(?<=[1-9]){_GROUPED}(?:[:/-](?:[1-9]{_GROUPED}|[0-9]++(?:{_DECIMALS})*+))*+"
    r"|[0-9]*+(?:[.,:/\u066b-][0-9]++)*+)"
)
_LIST_MARKS: Final = re.compile("[ '_]")
_NUMBER_OF_FIGURE: Final = re.compile("[^:/-]+")
_BY_COMMAS: Final = re.compile("[1-9][0-9]{0,2}(?:,[0-9]{3})+(?:[.\u066b][0-9]+)?")
_BY_POINTS: Final = re.compile(r"[1-9][0-9]{0,2}(?:\.[0-9]{3})+(?:[,\u066b][0-9]+)?")
_WITH_DECIMALS: Final = re.compile("[0-9]+[,\u066b][0-9]+")
_SIGNED: Final = re.compile(r"[0-9]+(?:\.[0-9]+)?(?:-[0-9]+(?:\.[0-9]+)?)?")
_SIGNS: Final = "+-"
_BEFORE_SIGN: Final = frozenset(" ([{<〈《「『【〔〖\"'“‘,:;=、。")
# The hyphens and apostrophes outside ASCII that occur in normalised texts.
_PLAIN_MARKS: Final = dict.fromkeys("\u2010\u2012\u2013\u2212", "-") | dict.fromkeys("\u2018\u2019\u02bc\u066c", "'")
_POINTS: Final = str.maketrans(",\u066b", "..", "' _")


class Figure(NamedTuple):
    """A date, number or code: its place in the text, and the form that is compared."""

    start: int
    end: int
    fact: str


def figures(text: str) -> set[str]:
    """Return the dates, numbers and codes of a normalised text, without signs or commas between thousands."""
    facts: set[str] = set()
    for figure, match in _find_figures(text, _FIGURES):
        # A list of numbers keeps its commas.
        has_thousands = match is not None and "," in figure.fact and _THOUSANDS.fullmatch(figure.fact)
        facts.add(figure.fact.replace(",", "") if has_thousands else figure.fact.replace(" ", ""))
    return facts


def canonical_figures(form: str, letters: LetterTables) -> Iterator[Figure]:
    """Yield the dates, codes and numbers of a text's equality form. Numbers are canonical, and keep their signs."""
    text = _with_plain_marks(form, letters)
    for figure, match in _find_figures(text, _CANONICAL_FIGURES):
        number = figure.fact
        if match is not None and match["list"] is not None:
            yield from _numbers_of_list(figure)
            continue
        has_separators = match is not None and not number.isdigit() and number[-1].isdigit()
        plain = _NUMBER_OF_FIGURE.sub(lambda part: _canonical_number(part[0]), number) if has_separators else number
        plain = plain.replace(" ", "")
        yield figure._replace(fact=f"{_sign(text, figure.start)}{plain}" if _SIGNED.fullmatch(plain) else plain)


def _find_figures(text: str, pattern: re.Pattern[str]) -> Iterator[tuple[Figure, re.Match[str] | None]]:
    """Yield each figure that does not overlap the previous figure, with its match or None.

    One pass finds digits. Codes, and numbers short enough for the day of a date, are then read from the text around
    their digits, and have no match.
    """
    end = 0
    for match in pattern.finditer(text):
        start, stop = match.span()
        if start < end:
            continue
        whole = None
        if "a" <= text[start - 1 : start] <= "z":
            figure = _code(text, start, stop)
        elif stop - start <= _DAY_DIGITS_MAX:
            figure = _date(text, start, stop)
        else:
            figure, whole = Figure(start, stop, match[0]), match
        yield figure, whole
        end = figure.end


def _numbers_of_list(figure: Figure) -> Iterator[Figure]:
    start = figure.start
    for number in _LIST_MARKS.split(figure.fact):
        yield Figure(start, start + len(number), number)
        start += len(number) + 1


def _with_plain_marks(form: str, letters: LetterTables) -> str:
    """Return the text with ASCII digits, and with one character each for hyphens and apostrophes."""
    if form.isascii():
        return form
    others, plain = _plain_marks(letters)
    return form.translate(plain) if others.search(form) else form


@cache
def _plain_marks(letters: LetterTables) -> tuple[re.Pattern[str], dict[int, str]]:
    """Return a pattern for the characters to replace, and their replacements."""
    digits = {digit: chr(letters.letter_forms[ord(digit)]) for digit in letters.digits if not digit.isascii()}
    plain = digits | _PLAIN_MARKS
    return re.compile(f"[{''.join(plain)}]"), {ord(other): form for other, form in plain.items()}


def _canonical_number(number: str) -> str:
    """Return a number without thousands separators and with a decimal point; lists and versions are unchanged."""
    if _LIST_MARKS.search(number):
        plain = number
    elif _BY_COMMAS.fullmatch(number):
        plain = number.replace(",", "")
    elif _BY_POINTS.fullmatch(number) and not _is_address(number):
        plain = number.replace(".", "")
    elif _WITH_DECIMALS.fullmatch(number):
        plain = number
    else:
        return number
    return plain.translate(_POINTS)


def _is_address(number: str) -> bool:
    parts = number.split(".")
    return len(parts) == _ADDRESS_PARTS and all(part.isdigit() and int(part) <= _ADDRESS_PART_MAX for part in parts)


def _sign(text: str, start: int) -> str:
    """Return the sign of the number that starts here, or ""; a hyphen between digits is not a sign."""
    sign = text[start - 1 : start]
    return sign if sign and sign in _SIGNS and (start == 1 or text[start - 2] in _BEFORE_SIGN) else ""


def _code(text: str, start: int, stop: int) -> Figure:
    """Return the code that contains these digits, with the letters before them and letters and digits after them."""
    letters = text[max(0, start - _CODE_LETTERS_MAX) : start]
    letters = letters[len(letters.rstrip(ascii_lowercase)) :]
    tail = _LETTERS_AND_DIGITS.match(text, stop)
    end = tail.end() if tail else stop
    return Figure(start - len(letters), end, f"{letters}{text[start:end]}")


def _date(text: str, start: int, stop: int) -> Figure:
    """Return a number of one or two digits, with the month and year next to it, if any."""
    number, month, first, end = text[start:stop], "", start, stop
    behind = _MONTH_AFTER.match(text, stop)
    if behind and behind[1] in MONTHS:
        month, end = behind[1], behind.end()
    elif text[start - 1 : start] == " ":
        word = text[max(0, start - 1 - _MONTH_CHARS_MAX) : start - 1].rpartition(" ")[2]
        if word in MONTHS:
            month, first = word, start - 1 - len(word)
    if not month:
        return Figure(start, stop, number)
    year = _YEAR_AFTER.match(text, end)
    return Figure(first, year.end() if year else end, f"{number}{month}{year[1] if year else ''}")
