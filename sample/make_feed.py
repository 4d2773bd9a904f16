"""Make the sample feed and its labels from the hand-written texts beside this file.

    python sample/make_feed.py            writes feed.jsonl, labels.jsonl and pairs.jsonl
    python sample/make_feed.py --check    writes nothing, fails when the files differ

Every random choice comes from a generator seeded with the article's id and the operator's name. So one article added
or removed leaves the edits of all the others as they were, and the files stay easy to review.
"""

import argparse
import json
import re
import sys
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import cache
from pathlib import Path
from random import Random
from typing import Any, Literal, TypeAlias

HERE = Path(__file__).resolve().parent
SEED = 20260304
EDITS_PER_ARTICLE = 3
DELAY_MINUTES = (7, 30 * 60)
SHINGLE_CHARACTERS = {"zh": 5, "ja": 5, "en": 9}
DUPLICATE_JACCARD_MIN = 0.8
UNIQUE_JACCARD_MAX = 0.5

Operator: TypeAlias = Callable[[str, str, Random], str]
"""From a body, its language and a generator to the edited body."""

Expected: TypeAlias = Literal["duplicate", "unique", "open"]


@dataclass(frozen=True, slots=True)
class Article:
    """One article as the feed carries it; `body` stands last because it is the longest to read."""

    id: str
    source: str
    lang: str
    title: str
    published_at: str
    body: str

    @property
    def is_short(self) -> bool:
        """Whether this is a forum post, which the ids of the hand-written texts say."""
        return self.id.startswith(("short-", "hn-short-"))


@dataclass(frozen=True, slots=True)
class Label:
    """What is known of one article of the feed; the fields are explained in README.md."""

    id: str
    of: str | None
    operator: str
    expected: Expected
    jaccard: float | None


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the feed with its label; a retraction has none, for it gets no verdict."""

    at: datetime
    id: str
    text: str
    label: Label | None


# --- how alike two texts are -------------------------------------------------------------------------------------

ZERO_WIDTH = "\u200b\u200c\u200d\u2060\ufeff\u00ad"
_WITHOUT_ZERO_WIDTH = dict.fromkeys(map(ord, ZERO_WIDTH))


def normalise(text: str) -> str:
    """NFKC, casefold, zero-width characters and soft hyphens out, each run of white space to one space."""
    return " ".join(unicodedata.normalize("NFKC", text.translate(_WITHOUT_ZERO_WIDTH)).casefold().split())


@cache
def shingles(text: str, width: int) -> frozenset[str]:
    """All runs of `width` characters of the normalised text, its non-word runs being one space each."""
    words = re.sub(r"\W+", " ", normalise(text)).strip()
    return frozenset(words[start : start + width] for start in range(max(1, len(words) - width + 1)))


def jaccard(one: Article, other: Article) -> float:
    """Shared shingles over all shingles of the two bodies, exact, 0 to 1."""
    width = SHINGLE_CHARACTERS[other.lang]
    mine, theirs = shingles(one.body, width), shingles(other.body, width)
    return len(mine & theirs) / len(mine | theirs)


def expect(article: Article, original: Article) -> Expected:
    """What a good detector says of `article` when `original` has been kept."""
    if original.is_short:
        return "duplicate" if normalise(article.body) == normalise(original.body) else "unique"
    similarity = jaccard(article, original)
    if similarity >= DUPLICATE_JACCARD_MIN:
        return "duplicate"
    return "unique" if similarity < UNIQUE_JACCARD_MAX else "open"


# --- the edit operators ------------------------------------------------------------------------------------------

PHRASES: Mapping[str, Any] = json.loads((HERE / "phrases.json").read_text(encoding="utf-8"))

# A quotation stays in one piece, else moving a sentence would leave a lone quotation mark behind.
_SENTENCE = {
    "zh": re.compile(r"(?:“[^”]*”|[^。！？“])+[。！？]*"),
    "ja": re.compile(r"(?:「[^」]*」|[^。！？「])+[。！？]*"),
    "en": re.compile(r"\S(?:“[^”]*”|[^“])*?(?:[.!?]”?(?=\s+[A-Z“])|$)"),
}
_JOINT = {"zh": "", "ja": "", "en": " "}
_DECIMAL = re.compile(r"(?<![\d.])\d+\.\d(?![\d.])")
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3})")
_ASCII_TO_FULL_WIDTH = {0x20: 0x3000} | {code: code + 0xFEE0 for code in range(0x21, 0x7F)}
_SWAP_WIDTH = _ASCII_TO_FULL_WIDTH | {full: half for half, full in _ASCII_TO_FULL_WIDTH.items()}


def split_sentences(paragraph: str, lang: str) -> list[str]:
    """Cut a paragraph into its sentences; joined again they give the paragraph."""
    return _SENTENCE[lang].findall(paragraph)


def repost(body: str, _lang: str, _rng: Random) -> str:
    """Leave the body as it is; source and title differ with every edit."""
    return body


def light_rewrite(body: str, lang: str, rng: Random) -> str:
    """Swap a few words for synonyms, write one figure and the thousands otherwise, take other quotation marks."""
    edge = r"\b" if lang == "en" else ""
    pairs = [(re.compile(edge + re.escape(old) + edge), new) for old, new in PHRASES["synonyms"][lang]]
    found = [(pattern, new) for pattern, new in pairs if pattern.search(body)]
    for pattern, new in rng.sample(found, min(len(found), rng.randint(3, 5))):
        body = pattern.sub(new, body, count=1)
    body = _THOUSANDS.sub("", _DECIMAL.sub(lambda figure: figure[0] + "0", body, count=1))
    old_quotes, new_quotes = PHRASES["quotes"][lang]
    return body.translate(str.maketrans(old_quotes, new_quotes))


def header_footer(body: str, lang: str, rng: Random) -> str:
    """Put a line above that names the source, and a line or two below as websites do."""
    above = rng.choice(PHRASES["headers"][lang])
    below = rng.sample(PHRASES["footers"][lang], rng.randint(1, 2))
    return "\n".join([above, body, *below])


def reorder(body: str, lang: str, rng: Random) -> str:
    """Move two sentences to other places."""
    paragraphs = [split_sentences(paragraph, lang) for paragraph in body.split("\n")]
    for _ in range(2):
        donor = rng.choice([paragraph for paragraph in paragraphs if len(paragraph) > 1])
        taker = rng.choice([paragraph for paragraph in paragraphs if paragraph is not donor])
        sentence = donor.pop(rng.randrange(len(donor)))
        taker.insert(rng.randrange(len(taker) + 1), sentence)
    return "\n".join(_JOINT[lang].join(paragraph) for paragraph in paragraphs)


def full_width(body: str, _lang: str, _rng: Random) -> str:
    """Turn ASCII into its full-width forms and full-width forms into ASCII."""
    return body.translate(_SWAP_WIDTH)


def zero_width(body: str, _lang: str, rng: Random) -> str:
    """Sprinkle in zero-width spaces, joiners and soft hyphens, about one in twenty characters."""
    return "".join(c + rng.choice(ZERO_WIDTH) if rng.random() < 0.05 else c for c in body)


def truncation(body: str, _lang: str, rng: Random) -> str:
    """Cut off the last 10 to 18 %, as a feed that shortens articles does."""
    return body[: round(len(body) * rng.uniform(0.82, 0.90))].rstrip()


def half_cut(body: str, _lang: str, rng: Random) -> str:
    """Cut off more than half, which no near-duplicate detector is expected to find."""
    return body[: round(len(body) * rng.uniform(0.40, 0.48))].rstrip()


def combined(body: str, lang: str, rng: Random) -> str:
    """Rewrite lightly, move sentences, add lines: about where opinions on what is a duplicate divide."""
    return header_footer(reorder(light_rewrite(body, lang, rng), lang, rng), lang, rng)


def short_repost(body: str, _lang: str, rng: Random) -> str:
    """Send a short post again with changes that normalising undoes: width, case, wider spaces."""
    changes = (body.translate(_SWAP_WIDTH), body.upper(), body.replace(" ", "  "))
    return rng.choice([changed for changed in changes if changed != body] or [body])


LONG_OPERATORS: Mapping[str, Operator] = {
    operator.__name__: operator
    for operator in (
        repost,
        light_rewrite,
        header_footer,
        reorder,
        full_width,
        zero_width,
        truncation,
        half_cut,
        combined,
    )
}
SHORT_OPERATORS: Mapping[str, Operator] = {"repost": repost, "short_repost": short_repost}


# --- the feed ----------------------------------------------------------------------------------------------------


def generator(*names: str) -> Random:
    """Seed a generator of its own for these names."""
    return Random("/".join([str(SEED), *names]))


def edit(original: Article, name: str, operator: Operator) -> Article:
    """Apply an operator and send the result some time later from another source."""
    rng = generator(original.id, name)
    source = rng.choice([other for other in PHRASES["sources"][original.lang] if other != original.source])
    title = rng.choice(PHRASES["repost_titles"][original.lang]).format(title=original.title, source=original.source)
    later = datetime.fromisoformat(original.published_at) + timedelta(minutes=rng.randint(*DELAY_MINUTES))
    return replace(
        original,
        id=f"{original.id}.{name}",
        source=source,
        title=title if original.title else "",
        published_at=later.isoformat(),
        body=operator(original.body, original.lang, rng),
    )


def edits(original: Article) -> list[tuple[str, Article]]:
    """Choose operators for an original: both for a short post, a seeded few for an article."""
    operators = SHORT_OPERATORS if original.is_short else LONG_OPERATORS
    count = len(operators) if original.is_short else EDITS_PER_ARTICLE
    chosen = generator(original.id).sample(list(operators), count)
    return [(name, edit(original, name, operators[name])) for name in chosen]


def to_json(fields: Mapping[str, object] | list[object]) -> str:
    """Write one line of JSON without the newline."""
    return json.dumps(fields, ensure_ascii=False)


def article_line(article: Article, label: Label) -> Line:
    """Write an article as a line of the feed, to be sent at its time of publication."""
    fields = {
        "id": article.id,
        "source": article.source,
        "lang": article.lang,
        "url": f"https://{article.source}.example/{article.id}",
        "title": article.title,
        "published_at": article.published_at,
        "body": article.body,
    }
    text = to_json({name: value for name, value in fields.items() if value})
    return Line(datetime.fromisoformat(article.published_at), article.id, text, label)


def derived_line(article: Article, original: Article, operator: str) -> Line:
    """Write an article that has an original, with how alike the two are."""
    similarity = round(jaccard(article, original), 4)
    return article_line(article, Label(article.id, original.id, operator, expect(article, original), similarity))


def late_line(event: Mapping[str, str], lines: Mapping[str, Line]) -> Line:
    """Write a retraction, a replay of a line or a new version of an article."""
    at, article_id, kind = datetime.fromisoformat(event["published_at"]), event["id"], event["kind"]
    if kind == "retraction":
        return Line(at, article_id, to_json({"id": article_id, "body": None}), None)
    label = Label(article_id, None, kind, "unique", None)
    if kind == "replay":
        return replace(lines[article_id], at=at, label=label)
    return article_line(Article(**{name: value for name, value in event.items() if name != "kind"}), label)


def read(name: str) -> list[dict[str, str]]:
    """Read one of the hand-written files."""
    return [json.loads(line) for line in (HERE / name).read_text(encoding="utf-8").splitlines()]


def pair_of(label: Label) -> list[object]:
    """Turn a label into a line for `dupwatch evaluate`; where either answer will do, the similarity is the label."""
    return [label.id, label.of, label.jaccard if label.expected == "open" else label.expected]


def build() -> dict[str, str]:
    """Return the text of each file by its name; labels and pairs are in the order of the feed."""
    originals = {fields["id"]: Article(**fields) for fields in read("originals.jsonl")}
    lines: dict[str, Line] = {}
    for original in originals.values():
        operator = "short" if original.is_short else "original"
        lines[original.id] = article_line(original, Label(original.id, None, operator, "unique", None))
        for name, article in edits(original):
            lines[article.id] = derived_line(article, original, name)
    for fields in read("hard_negatives.jsonl"):
        original = originals[fields.pop("confusable_with")]
        del fields["note"]
        article = Article(**fields)
        lines[article.id] = derived_line(article, original, "hard_negative")
    late = [late_line(event, lines) for event in read("late_events.jsonl")]
    feed = sorted([*lines.values(), *late], key=lambda line: (line.at, line.id))
    labels = [line.label for line in feed if line.label]
    fields_of = [{name: getattr(label, name) for name in Label.__slots__} for label in labels]
    return {
        "feed.jsonl": "".join(line.text + "\n" for line in feed),
        "labels.jsonl": "".join(to_json(fields) + "\n" for fields in fields_of),
        # A replay and a new version have no original: there is no second id to pair them with.
        "pairs.jsonl": "".join(to_json(pair_of(label)) + "\n" for label in labels if label.of is not None),
    }


def main() -> int:
    """Write the files, or with --check compare them; 1 when they differ."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="compare only; fail when a file differs")
    check = parser.parse_args().check
    differing = []
    for name, text in build().items():
        path = HERE / name
        if not check:
            path.write_text(text, encoding="utf-8", newline="\n")
        elif not path.exists() or path.read_bytes() != text.encode():
            differing.append(name)
    if differing:
        print(f"not what make_feed.py makes: {', '.join(differing)}", file=sys.stderr)
    return 1 if differing else 0


if __name__ == "__main__":
    raise SystemExit(main())
