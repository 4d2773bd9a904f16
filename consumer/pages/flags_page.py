"""The page of the latest flags, as HTML: both articles side by side, their similarity, and the keywords they share.

Pure: from ``Latest`` to bytes. Everything from an article is shown as text, isolated from its surroundings because its
direction may differ; see ``markup`` and ``visible``.
"""

import re
from collections.abc import Sequence
from typing import Final
from urllib.parse import urlsplit

from consumer.model.verdict import Match, Part, SeenBefore, Verdict
from consumer.pages.latest_flags import Flag, Latest, Returned, Side
from consumer.pages.markup import Child, Html, document, element, joined, marked, style
from consumer.text.passages import Passage, passages
from consumer.text.visible import one_line, paragraphs, safe_url
from consumer.web.style import BAR_STEPS, CSS

TITLE_CHARS_MAX: Final = 300
EXCERPT_CHARS_MAX: Final = 420
REFRESH_S: Final = 10
_NAME_CHARS_MAX: Final = 120
_HOST_CHARS_MAX: Final = 60
_PASSAGES_MAX: Final = 5
_LANG: Final = re.compile(r"[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8}){0,3}")
_NO_TITLE: Final = "(no title)"


def flags_page(latest: Latest, *, refreshes: bool) -> bytes:
    """Return the page with all flags, newest first, and the beginnings of their texts."""
    shown, seen = len(latest.flags), latest.seen
    flags = "flag" if seen == 1 else "flags"
    count = f"{seen} {flags} since {_time_text(latest.began_at)}" + (
        f", showing the latest {shown}" if shown < seen else ""
    )
    body: list[Child] = [element("p", latest.trouble, class_="notice")] if latest.trouble and shown else []
    body += [_returning(latest.returning)] if latest.returning else []
    body += [_card(flag, EXCERPT_CHARS_MAX, opens=True) for flag in latest.flags]
    if not shown:
        body.append(element("p", "No flags yet. Duplicates appear here as they arrive.", class_="empty"))
    links = [
        element("a", "Refresh", href="/"),
        element("a", "Stop refreshing", href="/")
        if refreshes
        else element("a", f"Refresh every {REFRESH_S} s", href=f"/?refresh={REFRESH_S}"),
    ]
    return _page("Latest flags", count, links, body, refreshes=refreshes)


def flag_page(flag: Flag) -> bytes:
    """Return the page of one flag, with as much of both texts as is held, and the details of its verdict."""
    title = _title(flag.article) if flag.article else one_line(flag.verdict.id, TITLE_CHARS_MAX)
    links = [element("a", "All flags", href="/")]
    return _page(
        title, "", links, [_card(flag, None, opens=False), *_shared_parts(flag), _details(flag)], refreshes=False
    )


def similarity_text(similarity: float | None) -> str:
    """Return a similarity as thresholds are written, with two decimals; a dash where there is none."""
    return "–" if similarity is None else f"{similarity:.2f}"


def _page(title: str, count: str, links: Sequence[Child], body: Sequence[Child], *, refreshes: bool) -> bytes:
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="referrer", content="no-referrer"),
        *([element("meta", http_equiv="refresh", content=str(REFRESH_S))] if refreshes else []),
        element("title", f"{title} · dupwatch"),
        style(CSS),
    )
    top = element(
        "header",
        element("h1", "Latest flags" if count else "Flag"),
        element("p", count),
        element("nav", *links),
        class_="top",
    )
    end = element(
        "footer",
        element("a", "Readiness", href="/readyz"),
        element("a", "Liveness", href="/healthz"),
        element("a", "Metrics", href="/metrics"),
        element("a", "Flags as JSON", href="/flags.json"),
        class_="end",
    )
    return document(element("html", head, element("body", top, element("main", *body), end), lang="en"))


def _card(flag: Flag, chars_max: int | None, *, opens: bool) -> Html:
    words = flag.verdict.shared_keywords
    article = _side("Article", flag.verdict.id, flag.article, words, chars_max)
    original = _side("repeats this earlier article", flag.verdict.duplicate_of or "", flag.original, words, chars_max)
    return element(
        "article",
        _measures(flag, opens=opens),
        element("div", article, original, class_="pair"),
        _shared(words),
        class_="flag",
        id=f"f-{flag.reference.hex()}",
    )


def _measures(flag: Flag, *, opens: bool) -> Html:
    verdict = flag.verdict
    parts: list[Child] = []
    if verdict.similarity is not None:
        bar = element(
            "span", element("i"), class_=f"bar bar-{round(verdict.similarity * BAR_STEPS)}", aria_hidden="true"
        )
        parts.append(element("span", bar, "similarity ", element("b", similarity_text(verdict.similarity))))
    bits = "bit" if verdict.distance == 1 else "bits"
    parts.append(element("span", "distance ", element("b", str(verdict.distance)), f" {bits}"))
    parts.append(_time(verdict.decided_at))
    if isinstance(verdict.seen_before, SeenBefore):
        parts.append(_seen_before(verdict.seen_before))
    if isinstance(verdict.parts, tuple):
        parts += map(_part, verdict.parts)
    if verdict.truncated:
        parts.append(element("span", "search cut short by a limit", class_="tag"))
    if flag.released:
        parts.append(element("span", "released", class_="tag"))
    if opens:
        parts.append(element("a", "Show full texts", href=f"/flags/{flag.reference.hex()}", class_="go"))
    return element("div", *parts, class_="measures")


def _seen_before(seen: SeenBefore) -> Html:
    times = "once" if seen.times == 1 else f"at least {seen.times:,} times"
    return element("span", f"this text came {times} since ", _time(seen.first), class_="tag")


def _part(part: Part) -> Html:
    name = element("bdi", one_line(part.id, _NAME_CHARS_MAX))
    return element("span", f"{part.share_of_this:.0%} also stands in ", name, class_="tag")


def _shared_parts(flag: Flag) -> list[Html]:
    """Return for each part what this article has in common with it, word for word."""
    if flag.article is None or not isinstance(flag.verdict.parts, tuple):
        return []
    return [_shared_part(part, flag.article, side) for part, side in zip(flag.verdict.parts, flag.parts, strict=True)]


def _shared_part(part: Part, article: Side, side: Side | None) -> Html:
    name = element("bdi", one_line(part.id, _NAME_CHARS_MAX), class_="id")
    about = element("p", name, f" · {part.share_of_this:.0%} of this article, {part.share_of_that:.0%} of that one")
    if side is None or side.text is None or article.text is None:
        return element("section", element("h2", "Also in"), about, _none("Text not stored."), class_="part")
    found = passages(article.text, side.text)
    texts: list[Child] = [_passage(passage) for passage in found[:_PASSAGES_MAX]]
    if len(found) > _PASSAGES_MAX:
        texts.append(element("p", f"and {len(found) - _PASSAGES_MAX} more", class_="about"))
    if not found:
        texts.append(_none("No passage is the same word for word."))
    title = element("h2", "Also in ", element("bdi", _title(side)))
    return element("section", title, about, *texts, class_="part")


def _passage(passage: Passage) -> Html:
    text = paragraphs(passage.text, EXCERPT_CHARS_MAX)
    return element("p", element("mark", text), f" {len(passage.text):,} characters", class_="text", dir="auto")


def _none(text: str) -> Html:
    return element("p", text, class_="text none")


def _returning(texts: Sequence[Returned]) -> Html:
    """Return the list of texts that came back most often, whether their latest article was flagged or not."""
    rows = [
        element(
            "li",
            element("bdi", one_line(text.id, _NAME_CHARS_MAX), class_="id"),
            f" · at least {text.times:,} times since ",
            _time(text.first),
            ", last ",
            _time(text.last),
        )
        for text in texts
    ]
    return element("section", element("h2", "Texts that came back most"), element("ul", *rows), class_="returning")


def _side(role: str, article_id: str, side: Side | None, words: Sequence[str], chars_max: int | None) -> Html:
    name = element("bdi", one_line(article_id, _NAME_CHARS_MAX), class_="id")
    if side is None:
        missing = _none("Not available from the store.")
        return _section(element("p", role, class_="role"), element("p", name, class_="about"), missing)
    record = side.record
    about: list[Child] = [name]
    if record.source:
        about += [" · ", element("bdi", one_line(record.source, _NAME_CHARS_MAX))]
    about += [" · ", _time(side.arrived_at)]
    if side.ended_at is not None:
        about += [" · ", element("span", "replaced or retracted ", _time(side.ended_at), class_="tag")]
    href = safe_url(record.url)
    if href is not None:
        about += [" · ", _link(href)]
    lang = record.lang if _LANG.fullmatch(record.lang) else None
    title = element("h2", element("bdi", _title(side)), lang=lang)
    return _section(
        element("p", role, class_="role"),
        title,
        element("p", *about, class_="about"),
        _text(side, words, chars_max, lang),
    )


def _section(*children: Child) -> Html:
    return element("section", *children, class_="side")


def _link(href: str) -> Html:
    host = one_line(urlsplit(href).hostname or "", _HOST_CHARS_MAX)
    return element("a", element("bdi", host), href=href, rel="noreferrer noopener nofollow", target="_blank")


def _text(side: Side, words: Sequence[str], chars_max: int | None, lang: str | None) -> Html:
    if side.text is None:
        return _none("Text not stored.")
    if not side.text.strip():
        return _none("No text.")
    shown = side.text[:chars_max]
    ellipsis = "…" if len(shown) < len(side.text) else ""
    marks = _marks(paragraphs(shown, len(shown)), words)
    text = element("p", *marks, ellipsis, class_="text", dir="auto", lang=lang)
    if chars_max is not None or side.chars <= len(side.text):
        return text
    more = f"First {len(side.text):,} of {side.chars:,} characters."
    return joined(text, element("p", more, class_="about"))


def _marks(text: str, words: Sequence[str]) -> list[Child]:
    return [element("mark", piece.text) if piece.marked else piece.text for piece in marked(text, words)]


def _shared(words: Sequence[str]) -> Html:
    if not words:
        return element("p", element("span", "No shared keywords", class_="of"), class_="shared")
    marks = [element("mark", element("bdi", one_line(word, _NAME_CHARS_MAX))) for word in words]
    return element("p", element("span", "Shared keywords", class_="of"), *_spaced(marks), class_="shared")


def _spaced(children: Sequence[Child]) -> list[Child]:
    return [part for child in children for part in (child, " ")]


def _details(flag: Flag) -> Html:
    verdict = flag.verdict
    rows: list[tuple[str, Child]] = [
        ("id", element("bdi", one_line(verdict.id, _NAME_CHARS_MAX))),
        ("version", element("code", verdict.version or "")),
        ("cluster", element("bdi", one_line(verdict.cluster or "", _NAME_CHARS_MAX))),
        ("arrived", _time(verdict.arrived_at)),
        ("flagged", _time(verdict.decided_at)),
        ("fingerprint", element("code", verdict.fingerprint or "")),
        ("scheme", verdict.scheme or ""),
    ]
    others = _others(verdict)
    if others:
        rows.append(("also near", joined(*others)))
    return element("dl", *(cell for name, value in rows for cell in (element("dt", name), element("dd", value))))


def _others(verdict: Verdict) -> list[Child]:
    named = (verdict.duplicate_of, verdict.duplicate_of_version)
    others = [_other(match) for match in verdict.matches if (match.id, match.version) != named]
    return [part for index, other in enumerate(others) for part in ((", ", other) if index else (other,))]


def _other(match: Match) -> Html:
    name = element("bdi", one_line(match.id, _NAME_CHARS_MAX))
    return joined(name, f" (similarity {similarity_text(match.similarity)}, distance {match.distance} bits)")


def _title(side: Side) -> str:
    return one_line(side.record.title, TITLE_CHARS_MAX).strip() or _NO_TITLE


def _time(rfc3339: str) -> Html:
    return element("time", _time_text(rfc3339), datetime=rfc3339)


def _time_text(rfc3339: str) -> str:
    """Return a time to the second: 2026-11-21 10:00:00 UTC."""
    return f"{rfc3339[:10]} {rfc3339[11:19]} UTC"
