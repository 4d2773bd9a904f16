"""The text for a bank command: from a file, the command line, or a stored article."""

from consumer.cli.texts import read_article
from consumer.config.config import Config
from consumer.model.article import Article
from consumer.model.errors import ConfigError
from consumer.store_tools.inspection import stored_article
from consumer.wiring.stores import opened_store


def named_text(config: Config, source: str | None, text: str | None, article_id: str | None) -> Article:
    """Return the named text as an article.

    Raises ``ConfigError`` if no text or more than one is named, or if the store does not keep the text of the article.
    """
    if sum(name is not None for name in (source, text, article_id)) != 1:
        raise ConfigError("name one text: a file, --text TEXT, or --article ID of the store")
    if text is not None:
        return Article("", text)
    if article_id is None:
        return read_article(source or "", config)
    with opened_store(config, readonly=True) as store:
        stored = stored_article(store, config.store.url, article_id).stored
        (body,) = store.bodies([stored.record.reference])
    if body is None:
        raise ConfigError(f"the store does not keep the text of {article_id!r}; give it with --text or as a file")
    return Article(article_id, body, title=stored.record.title, lang=stored.record.lang)
