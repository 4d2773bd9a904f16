"""Splits the body of a request into articles, each as the client wrote it: a feed's decoder reads them later."""

from codecs import BOM_UTF8
from typing import Final

import msgspec

from consumer.decode.json_value import check_values, parse_json
from consumer.model.errors import BadRecord
from consumer.model.limits import DecodeLimits
from consumer.service.faults import no_articles, too_many_articles, unreadable


class _Articles(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    articles: list[msgspec.Raw]


_DECODER: Final = msgspec.json.Decoder(_Articles)


def split_articles(body: bytes, limits: DecodeLimits, articles_max: int) -> list[bytes]:
    """Return the JSON of each article. Raises ``ProblemError``."""
    try:
        check_values(body, limits.values_max)
        articles = _DECODER.decode(body.removeprefix(BOM_UTF8)).articles
    except BadRecord as error:
        raise unreadable(error, limits) from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _why(body, limits) from error
    if not articles:
        raise no_articles()
    if len(articles) > articles_max:
        raise too_many_articles(len(articles), articles_max)
    return [bytes(article) for article in articles]


def _why(body: bytes, limits: DecodeLimits) -> Exception:
    """Return the problem of a body that is not what it should be: it is no JSON, or has another shape."""
    try:
        parse_json(body, limits.values_max)
    except BadRecord as error:
        return unreadable(error, limits)
    return no_articles()
