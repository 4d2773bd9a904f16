"""The languages of pages: messages, dates and numbers.

Messages are English in the code; ``locale/zh/LC_MESSAGES/console.po`` has the Chinese ones. The file is read at
start-up, so nothing needs compiling. A percent sign in a message is written ``%%``, because values are filled in as
``%(name)s``.
"""

import gettext
import io
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Final, Literal

import babel
from babel.dates import format_datetime, format_timedelta
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po
from babel.numbers import format_decimal

Code = Literal["en", "zh"]

CODES: Final[tuple[Code, ...]] = ("en", "zh")
NAMES: Final[Mapping[Code, str]] = {"en": "English", "zh": "中文"}
"""The name of each language, in that language."""
FOLDER: Final = Path(__file__).parent / "locale"
DOMAIN: Final = "console"
_TAGS: Final[Mapping[Code, str]] = {"en": "en", "zh": "zh-Hans"}
_RANGES_MAX: Final = 20
"""The maximum number of entries of ``Accept-Language`` that are read."""


@dataclass(frozen=True, slots=True)
class Language:
    """A language: its messages, and its formats for times and numbers."""

    code: Code
    # The value of a page's ``lang`` attribute.
    tag: str
    _locale: babel.Locale = field(repr=False)
    _catalogue: gettext.NullTranslations = field(repr=False)

    def gettext(self, message: str, /, **values: object) -> str:
        """Return a translated message with its values filled in. The values are not escaped."""
        return self._catalogue.gettext(message) % values

    def ngettext(self, one: str, many: str, num: int, /, **values: object) -> str:
        """Return the translated singular or plural for ``num``, with ``%(num)s`` in this language's number format."""
        return self._catalogue.ngettext(one, many, num) % {"num": self.number(num), **values}

    def translated(self, message: str) -> str:
        """Return a translated message with its placeholders."""
        return self._catalogue.gettext(message)

    def translated_plural(self, one: str, many: str, num: int) -> str:
        """Return the translated singular or plural for ``num``, with its placeholders."""
        return self._catalogue.ngettext(one, many, num)

    def number(self, value: int) -> str:
        """Return a whole number with thousands separators."""
        return format_decimal(value, locale=self._locale)

    def decimal(self, value: float, places: int = 2) -> str:
        """Return a number with ``places`` decimal places."""
        return format_decimal(value, f"#,##0.{'0' * places}", locale=self._locale)

    def date_time(self, at_ms: int) -> str:
        """Return a date and time to the second, in UTC, from milliseconds since 1970."""
        at = datetime.fromtimestamp(at_ms / 1_000, UTC)
        return f"{format_datetime(at, _TIME_FORMATS[self.code], tzinfo=UTC, locale=self._locale)} UTC"

    def tick(self, at_ms: int, unit: str) -> str:
        """Return the label of a tick of a time axis, in UTC: to the second, the minute or the day, or with the year."""
        at = datetime.fromtimestamp(at_ms / 1_000, UTC)
        return format_datetime(at, _TICK_FORMATS[self.code][unit], tzinfo=UTC, locale=self._locale)

    def age(self, passed_s: float) -> str:
        """Return an age such as "4 minutes ago", or "in 4 minutes" if it is negative. Return "" for less than a minute.

        ``static/times.js`` computes the same text.
        """
        unit_s = next((unit_s for unit_s in _AGE_UNITS_S if abs(passed_s) >= unit_s), None)
        if unit_s is None:
            return ""
        whole_s = abs(passed_s) // unit_s * unit_s
        delta = timedelta(seconds=-whole_s if passed_s > 0 else whole_s)
        return format_timedelta(delta, threshold=1.0, add_direction=True, locale=self._locale)

    def duration(self, seconds: float) -> str:
        """Return a duration rounded to its largest unit, such as "3 hours"."""
        return format_timedelta(timedelta(seconds=seconds), threshold=1.0, locale=self._locale)


_TICK_FORMATS: Final[Mapping[Code, Mapping[str, str]]] = {
    "en": {"second": "HH:mm:ss", "minute": "HH:mm", "day": "d MMM", "year": "d MMM y"},
    "zh": {"second": "HH:mm:ss", "minute": "HH:mm", "day": "M月d日", "year": "y年M月d日"},
}
_AGE_UNITS_S: Final = (31_536_000, 2_592_000, 604_800, 86_400, 3_600, 60)
"""Years, months, weeks, days, hours and minutes, as babel counts them."""
_TIME_FORMATS: Final[Mapping[Code, str]] = {"en": "d MMM y, HH:mm:ss", "zh": "y年M月d日 HH:mm:ss"}


def read_languages() -> dict[Code, Language]:
    """Return all languages by code, with the messages of their catalogues."""
    return {code: Language(code, _TAGS[code], babel.Locale.parse(code), _catalogue(code)) for code in CODES}


def choose_language(own: str | None, configured: Code | None, accept_language: str) -> Code:
    """Return the language of a page: the person's choice, else the configured language, else the browser's."""
    for code in CODES:
        if own == code:
            return code
    return configured or _preferred_language(accept_language)


@cache
def _catalogue(code: Code) -> gettext.NullTranslations:
    if code == "en":
        return gettext.NullTranslations()
    with (FOLDER / code / "LC_MESSAGES" / f"{DOMAIN}.po").open("rb") as file:
        messages = read_po(file, locale=code, domain=DOMAIN, abort_invalid=True)
    compiled = io.BytesIO()
    write_mo(compiled, messages)
    compiled.seek(0)
    return gettext.GNUTranslations(compiled)


def _preferred_language(accept_language: str) -> Code:
    """Return the supported language that a browser prefers, or English if it accepts none."""
    ranges = [_language_range(entry) for entry in accept_language.split(",")[:_RANGES_MAX]]
    by_quality: Callable[[tuple[str, float]], float] = lambda entry: -entry[1]  # noqa: E731  # a key with a type
    for name, quality in sorted(ranges, key=by_quality):
        for code in CODES:
            if quality > 0 and name == code:
                return code
    return "en"


def _language_range(entry: str) -> tuple[str, float]:
    """Return the language and quality of an entry such as ``zh-TW;q=0.8``. An invalid quality counts as 0."""
    tag, _, parameter = entry.partition(";")
    quality = parameter.strip().removeprefix("q=") or "1"
    try:
        value = float(quality)
    except ValueError:
        value = 0.0
    return tag.strip().partition("-")[0].lower(), value
