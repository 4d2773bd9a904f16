"""How bodies become texts: by a revision of the reader that the store is bound to, whatever reads the articles."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

import dupwatch as library
from tests.cli.command import FAST, Command, json_lines, text, write_lines
from tests.cli.serve.service import serving

HTML = ("--set", "source.body_format=html")
FIRST = ("--set", "source.reader_revision=1")
LINES, OTHERS = ([text(number, 8) for number in range(first, first + 12)] for first in (0, 100))
JAPANESE = "港町の市議会は、新しい桟橋の工事を、来年の春に始めると決めた。漁師たちは、魚市場の移転に反対している。"
READ = "".join(
    f"<ruby>{word}<rp>（</rp><rt>{reading}</rt><rp>）</rp></ruby>"
    for word, reading in [
        ("港町", "みなとまち"),
        ("市議会", "しぎかい"),
        ("桟橋", "さんばし"),
        ("魚市場", "うおいちば"),
    ]
)
COPIES = {
    "escaped": ("<p>" + "</p><p>".join(LINES) + "</p>", "&lt;p&gt;" + "&lt;/p&gt;&lt;p&gt;".join(LINES) + "&lt;/p&gt;"),
    "breaks": ("<p>" + "<br>".join(OTHERS), "<p>" + "</br>".join(OTHERS)),
    "readings": (f"<p>港町市議会桟橋魚市場{JAPANESE}", f"<p>{READ}{JAPANESE}"),
    "cdata": (f"<p>{text(50)}", f"<![CDATA[{text(50)}]]>"),
}
"""An article in ordinary markup, and the same in markup that revision 1 reads otherwise."""
RECORDS: list[object] = [
    {"id": f"{name}-{number}", "body": body} for name, bodies in COPIES.items() for number, body in enumerate(bodies)
]


@pytest.fixture
def feed(tmp_path: Path) -> Path:
    """A file with these articles."""
    return write_lines(tmp_path / "feed.jsonl", RECORDS)


def run_into(dupwatch: Command, feed: Path, store: str, *more: str, code: int = 0) -> bytes:
    """Judge a feed into a store, and return its verdicts."""
    ended = dupwatch("run", "--source", feed, "--store", store, "--emit", "all", *FAST, *more)
    assert ended.code == code, ended.err
    return ended.out


def flags(verdicts: bytes) -> Sequence[tuple[str, str, float]]:
    """Return the flags with their originals and similarities."""
    return [
        (verdict["id"], verdict["duplicate_of"], verdict["similarity"])
        for verdict in json_lines(verdicts)
        if verdict["outcome"] == "duplicate"
    ]


def test_copies_in_other_markup_are_equal(dupwatch: Command, feed: Path, tmp_path: Path) -> None:
    """In a new store; by revision 1 they differ, or have no text."""
    new = run_into(dupwatch, feed, f"lmdb:{tmp_path / 'new'}", *HTML)
    assert flags(new) == [(f"{name}-1", f"{name}-0", 1.0) for name in COPIES]
    old = {name: similarity for name, _, similarity in flags(run_into(dupwatch, feed, "memory:", *HTML, *FIRST))}
    assert old.keys() <= {"escaped-1", "breaks-1"}
    assert old.get("escaped-1", 0) < 1


@pytest.mark.parametrize("body_format", ["html", "article"])
def test_a_store_of_the_first_revision_goes_on(dupwatch: Command, feed: Path, tmp_path: Path, body_format: str) -> None:
    """Byte for byte, without naming a revision; doctor says so, and how to move to the next one."""
    named = ("--set", f"source.body_format={body_format}")
    old, new = f"lmdb:{tmp_path / 'old'}", f"lmdb:{tmp_path / 'new'}"
    before = run_into(dupwatch, feed, old, *named, *FIRST)
    run_into(dupwatch, feed, new, *named)
    assert run_into(dupwatch, feed, old, *named) == before
    warned, fine = (dupwatch("doctor", "--source", feed, "--store", store, *named) for store in (old, new))
    assert (warned.code, fine.code) == (0, 0)
    assert "read by revision 1" in warned.out.decode()
    assert "with revision 2: use dupwatch migrate" in warned.out.decode()
    assert "by revision" not in fine.out.decode()


@pytest.mark.parametrize("revision", [1, 2])
def test_everything_reads_as_the_store_does(dupwatch: Command, feed: Path, tmp_path: Path, revision: int) -> None:
    """A run, a query, an explanation, a service, the Python module; the format of bodies is all that is named."""
    url = f"lmdb:{tmp_path / 'store'}"
    run_into(dupwatch, feed, url, *HTML, "--set", f"source.reader_revision={revision}")
    body = COPIES["readings"][1].replace("<p>", "<div>")
    # By revision 1 only the article with the same readings is alike.
    same = ("readings-0" if revision == 2 else "readings-1", 1.0)
    copy = write_lines(tmp_path / "copy.jsonl", [{"id": "copy", "body": body}])
    (queried,) = json_lines(dupwatch("query", copy, "--store", url, *HTML).out)
    assert [(match["id"], match["similarity"]) for match in queried["matches"]] == [same]
    pair = json.loads(dupwatch("explain", copy, same[0], "--store", url, "--json", *HTML).out)
    assert pair["similarity"] == 1
    with serving(url, tmp_path, *HTML, *FAST) as service:
        service.wait_ready()
        (checked,) = service.check({"id": "copy", "body": body}).json["results"]
        (stored,) = service.store({"id": "served", "body": body}).json["results"]
        assert service.stop() == 0
    assert (checked["matches"][0]["id"], checked["matches"][0]["similarity"]) == same
    assert (stored["duplicate_of"], stored["similarity"]) == same
    with library.open(url, settings={"source": {"body_format": "html"}}) as window:
        (verdict,) = window.judge(library.Article("module", body))
    assert (verdict.duplicate_of, verdict.similarity) == same


def test_another_revision_is_refused(dupwatch: Command, feed: Path, tmp_path: Path) -> None:
    """The message names the options that decide how bodies are read."""
    old, new = f"lmdb:{tmp_path / 'old'}", f"lmdb:{tmp_path / 'new'}"
    run_into(dupwatch, feed, old, *HTML, *FIRST)
    run_into(dupwatch, feed, new, *HTML)
    for store, named in ((old, (*HTML, "--set", "source.reader_revision=2")), (new, (*HTML, *FIRST))):
        for command in (("run", "--source", feed, *FAST), ("query", feed)):
            refused = dupwatch(*command, "--store", store, *named)
            assert (refused.code, "html/2" in refused.err) == (4, True)
    assert (
        "source.reader_revision decide how bodies are read"
        in dupwatch("run", "--source", feed, "--store", new, *FIRST).err
    )


def test_html_and_text_are_not_mixed(dupwatch: Command, feed: Path, tmp_path: Path) -> None:
    """A store of HTML is not judged as text. One of text takes HTML, by the revision that stores had before."""
    html, plain = f"lmdb:{tmp_path / 'html'}", f"lmdb:{tmp_path / 'text'}"
    verdicts = run_into(dupwatch, feed, html, *HTML)
    assert run_into(dupwatch, feed, html) == verdicts
    refused = dupwatch("run", "--source", feed, "--store", html, "--set", "source.body_format=text", *FAST)
    assert refused.code == 4
    assert 'extractor is "html/2" in the store and null here' in refused.err
    run_into(dupwatch, write_lines(tmp_path / "plain.jsonl", [{"id": "plain", "body": text(99)}]), plain)
    by_the_first = run_into(dupwatch, feed, f"lmdb:{tmp_path / 'first'}", *HTML, *FIRST)
    assert flags(run_into(dupwatch, feed, plain, *HTML)) == flags(by_the_first)
    assert "by revision" not in dupwatch("doctor", "--source", feed, "--store", plain, *FIRST).out.decode()


def test_markup_without_text_is_said(dupwatch: Command, tmp_path: Path) -> None:
    """In the summary of a run; such an article is judged as an empty one, as before."""
    bodies = ["<p><img src=x></p>", "<script>a</script>", "", " ", "<p>a"]
    feed = write_lines(tmp_path / "feed.jsonl", [{"id": f"a{n}", "body": body} for n, body in enumerate(bodies)])
    sink = tmp_path / "verdicts.jsonl"
    ended = dupwatch("run", "--source", feed, "--sink", sink, "--store", "memory:", "--emit", "all", *HTML)
    assert "Articles judged as empty, because their markup has no text: 2\n" in ended.err
    assert [verdict["outcome"] for verdict in json_lines(sink.read_bytes())] == ["unique"] * 5
    plain = dupwatch("run", "--source", feed, "--sink", sink, "--store", "memory:", "--emit", "all")
    assert "judged as empty" not in plain.err
