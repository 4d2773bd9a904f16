"""Articles as a caller gives them."""

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass

from consumer.decode.article import FieldMap, decode
from consumer.model import article as model
from consumer.model.article import BodyForm, Reason
from consumer.model.errors import BadRecord
from consumer.model.limits import DecodeLimits


@dataclass(frozen=True, slots=True)
class Article:
    """An article: its ``id``, its text, and what else is known of it.

    An article that comes again with the same id is another version of it, unless title and body are the same; then it
    is the same version, and gets the same verdict. ``source`` selects the rules that the configuration has for sources,
    ``lang`` is a language tag (BCP 47) such as ``zh`` or ``en``.
    """

    id: str
    body: str
    title: str = ""
    source: str = ""
    url: str = ""
    lang: str = ""


Checked = Callable[[Article], model.Article]
"""Checks an article as every source does; raises ``BadRecord``."""


def checked_by(limits: DecodeLimits, body_form: BodyForm) -> Checked:
    """Return what checks articles: by these limits, their bodies read as text, as HTML, or as pages."""
    fields = FieldMap()

    def checked(article: Article) -> model.Article:
        # By way of JSON, so that what is refused, and why, is the same as for a feed.
        data = json.dumps(asdict(article), ensure_ascii=False).encode("utf-8", "surrogatepass")
        found = decode(data, fields, limits, body_form)
        if found.body is None:
            raise BadRecord(Reason.BODY_WRONG_TYPE, "body is None, not a string")
        return found

    return checked
