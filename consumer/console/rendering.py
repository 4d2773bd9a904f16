"""Renders templates as pages with the style sheet and the script inline. The content security policy has their digests.

All values are escaped, and control and bidi characters in them are made visible (``consumer.text.visible``), even if
the template does not ask for it. ``|exact`` only escapes, for form fields that are sent back.
"""

import hashlib
import re
from base64 import b64encode
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import cache, partial
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template, pass_context
from jinja2.environment import TemplateModule
from jinja2.runtime import Context
from markupsafe import Markup, escape
from typing_extensions import override

from consumer.console.faults import N_
from consumer.console.i18n import CODES, NAMES, Code, Language, read_languages
from consumer.console.kind_words import WORDS
from consumer.reviews.kinds.rules import RULES
from consumer.text.visible import one_line, paragraphs, safe_url

_FOLDER: Final = Path(__file__).parent / "static"
TEMPLATES: Final = Path(__file__).parent / "templates"
LINE_CHARS_MAX: Final = 300
"""The default maximum number of characters of a text on one line."""
BEGINNING_CHARS_MAX: Final = 120
"""The maximum number of characters of an article's text that are shown if the article has no title."""
_HOST_CHARS_MAX: Final = 60
_IMPORTED: Final = "imported_templates"
"""The name of the template variable that holds the templates that a page has imported."""
_LANG: Final = re.compile(r"[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8}){0,3}")


def _concatenate(ending: str) -> str:
    """Return all files with this ending, concatenated: ``base`` first, the others by name."""
    paths = sorted(_FOLDER.glob(f"*.{ending}"), key=lambda path: (path.stem != "base", path.name))
    return "\n".join(path.read_text(encoding="utf-8") for path in paths)


def _digest(text: str) -> str:
    return f"'sha256-{b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


CSS: Final = _concatenate("css")
SCRIPT: Final = _concatenate("js")
ICON: Final = (_FOLDER / "icon.svg").read_bytes()

POLICY: Final = (
    f"default-src 'none'; style-src {_digest(CSS)}; script-src {_digest(SCRIPT)}; connect-src 'self'; "
    "img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
"""Content-Security-Policy: allow this style sheet, this script and this console, nothing else."""


class Rendering:
    """All templates, in all languages. Used by several threads at once."""

    def __init__(self) -> None:
        self._languages = read_languages()
        self._environments = {code: _environment(language) for code, language in self._languages.items()}

    def language(self, code: Code) -> Language:
        """Return a language."""
        return self._languages[code]

    def page(self, template: str, language: Language, values: Mapping[str, object]) -> str:
        """Return a page. A missing value is a defect and raises ``UndefinedError``."""
        return self._environments[language.code].get_template(template).render({**values, _IMPORTED: {}})


class _PageTemplate(Template):
    """A template that a page imports once, however many of the page's templates import it."""

    @override
    def make_module(
        self,
        vars: dict[str, Any] | None = None,
        shared: bool = False,
        locals: Mapping[str, Any] | None = None,
    ) -> TemplateModule:
        imported: dict[str | None, TemplateModule] = {} if vars is None else vars[_IMPORTED]
        if self.name not in imported:
            imported[self.name] = super().make_module(vars, shared, locals)
        return imported[self.name]


def _environment(language: Language) -> Environment:
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        auto_reload=False,
        cache_size=-1,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        extensions=["jinja2.ext.i18n", "jinja2.ext.do"],
        finalize=visible_value,
    )
    environment.template_class = _PageTemplate
    environment.newstyle_gettext = True  # type: ignore[attr-defined]  # defined by the i18n extension
    gettext, ngettext = _messages(language)
    environment.globals.update(
        gettext=gettext,
        _=gettext,
        ngettext=ngettext,
        language=language,
        languages=[(code, NAMES[code]) for code in CODES],
        # Trusted code; the policy has the digest of exactly these characters.
        css=Markup(CSS),  # noqa: S704
        script=Markup(SCRIPT),  # noqa: S704
    )
    environment.filters.update(
        line=line,
        beginning=beginning,
        # Escapes without making characters visible.
        exact=escape,
        moment=pass_context(partial(_aged_moment, language)),
        plain_moment=partial(moment, language),
        number=language.number,
        decimal=language.decimal,
        span=language.duration,
        safe_url=safe_url,
        host=_host,
        lang_tag=_lang_tag,
        # These take the kind of an entry.
        words=WORDS.__getitem__,
        rule=RULES.__getitem__,
    )
    return environment


def visible_value(value: object) -> object:
    """Return a value as pages show it: texts get a mark for each invisible character."""
    if isinstance(value, str) and not isinstance(value, Markup) and not value.isprintable():
        return paragraphs(value, len(value))
    return value


def line(text: str, chars_max: int = LINE_CHARS_MAX) -> str:
    """Return a text on one line, cut to ``chars_max``."""
    return one_line(text, chars_max)


def beginning(text: str | None) -> str:
    """Return the beginning of a text on one line, or "" if the text is only white space."""
    return one_line(" ".join((text or "")[:LINE_CHARS_MAX].split()), BEGINNING_CHARS_MAX)


def _host(url: str) -> str:
    """Return the host of a URL that ``safe_url`` has accepted."""
    return one_line(urlsplit(url).hostname or "", _HOST_CHARS_MAX)


def _lang_tag(lang: str) -> str | None:
    """Return the language of an article if it is valid in the attribute ``lang``, else None."""
    return lang if _LANG.fullmatch(lang) else None


def moment(language: Language, at_ms: int) -> Markup:
    """Return a time in UTC; ``static/times.js`` shows it in the reader's zone."""
    return Markup('<time datetime="{}">{}</time>').format(_machine_time(at_ms), language.date_time(at_ms))


def _aged_moment(language: Language, context: Context, at_ms: int) -> Markup:
    """Return a time in UTC and its age; ``static/times.js`` keeps the age current."""
    ago = language.age((context["now_ms"] - at_ms) / 1_000) or language.gettext(N_("just now"))
    spans = {
        "time": Markup("<span>{}</span>").format(language.date_time(at_ms)),
        "age": Markup('<span class="age">{}</span>').format(ago),
    }
    sentence = Markup(language.translated(N_("%(time)s (%(age)s)"))) % spans  # noqa: S704  # from the catalogue
    return Markup('<time datetime="{}">{}</time>').format(_machine_time(at_ms), sentence)


def _machine_time(at_ms: int) -> str:
    return datetime.fromtimestamp(at_ms / 1_000, UTC).isoformat(timespec="seconds")


def _messages(language: Language) -> tuple[Callable[..., Markup], Callable[..., Markup]]:
    """Return the message functions of templates. Values are escaped, and shown as by ``visible_value``."""

    def visible_values(values: Mapping[str, Any]) -> dict[str, object]:
        return {name: visible_value(value) for name, value in values.items()}

    @cache
    def fixed(message: str) -> Markup:
        return Markup(language.translated(message)) % {}  # noqa: S704  # from the code or the catalogue

    def gettext(message: str, /, **values: object) -> Markup:
        if not values:
            return fixed(message)
        return Markup(language.translated(message)) % visible_values(values)  # noqa: S704  # as above

    def ngettext(one: str, many: str, num: int, /, **values: object) -> Markup:
        sentence = Markup(language.translated_plural(one, many, num))  # noqa: S704  # as above
        return sentence % visible_values({**values, "num": language.number(num)})

    return gettext, ngettext
