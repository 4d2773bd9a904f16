"""Links, names, repost marks and emoji do not count; nobody hides a text in them."""

import pytest

from consumer.fingerprint import DecorationLists
from consumer.fingerprint.characters.decorations import PLACES_FREE_MAX
from consumer.workers.word_files import load_lexicon
from tests.processor_time import within_processor_s
from tests.unit.fingerprint.forms import all_letters, letters

POST = "港务委员会周一启用了新的渡轮码头，建设历时三年，二月和四月开放的泊位仍然关闭，市民可以免费参观两周"
NEWS = "The harbour council opened the new ferry terminal on Monday, after three years of works, said the mayor."


def test_the_lists_are_a_file_with_a_digest() -> None:
    """A changed list is another scheme."""
    lists = load_lexicon().decorations()
    assert len(lists.digest) == 16
    assert DecorationLists.of_file(b"emoji\t\xe5\x93\x88\n").digest != lists.digest
    assert {"link", "lead", "mark", "boxed", "emoji"} == set(lists.words)


def test_links_begin_unlike_each_other() -> None:
    """No beginning of a link has another one in it, except at its end: the engines look for them from either side."""
    links = load_lexicon().decorations().words["link"]
    assert [(one, other) for one in links for other in links if one in other[:-1]] == []


@pytest.mark.parametrize(
    "decorated",
    [
        "{} http://t.cn/zYabc12",
        "https://example.org/a-b/c?d=1&e=%20#f {}",
        "{} t.cn/abc www.example.org/x",
        "{} @港口新闻",
        "{} @harbour_news-1",
        "转发微博 {}",
        "快速转发微博。{}",
        "{}//@张三: //@li_si：",
        "回复@张三:{}",
        "RT @harbour: {}",
        "{} (via @harbour)",
        "{} 转自：@港口新闻",
        "[转] {}",
        "【转载】{}（转）",
        "{}[哈哈][good][太开心][泪流满面]",
        "{}[嘻嘻]",
    ],
)
@pytest.mark.parametrize("text", [POST, NEWS])
def test_decorations_do_not_count(decorated: str, text: str) -> None:
    """Whatever they are, unless they are asked for."""
    assert letters(decorated.format(text)) == letters(text)
    assert all_letters(decorated.format(text), without_decorations=False)[0] != letters(text)


@pytest.mark.parametrize(
    "kept",
    [
        "#港口开放# {}",
        "【港口开放】{}",
        "{} [1]",
        "{} [2026]",
        "{} [not an emoji]",
        "{} [港口新闻社]",
        "{} mail info@example.org",
        "{} rt via from",
        "via 港口 {}",
        "{} 请转发",
        "{} not.cn/abc",
        "{} @",
        "{} @" + "a" * 31,
        "{} [哈 哈]",
    ],
)
@pytest.mark.parametrize("text", [POST, NEWS])
def test_what_only_looks_like_a_decoration_stays(kept: str, text: str) -> None:
    """Headings, tags, figures in brackets, addresses, names that are too long."""
    (with_them,) = all_letters(kept.format(text), without_decorations=False)
    assert letters(kept.format(text)) == with_them
    assert letters(kept.format("")) in with_them


def test_the_longest_name_is_one() -> None:
    """Of letters, digits, low lines and hyphens."""
    assert letters(f"{NEWS} @{'aé-_9' * 6}") == letters(NEWS)


@pytest.mark.parametrize("hidden_in", ["@{}", "[{}]", "via @{}", "//@{}:", "https://{}", "(转){}"])
@pytest.mark.parametrize("every", [1, 2, 3, 4, 5])
def test_nobody_hides_words_as_decorations(hidden_in: str, every: int) -> None:
    """Put before each word, or each few, they leave the text whole: most of its letters count."""
    words = (NEWS * 6).split(" ")
    hidden = " ".join(hidden_in.format(word[:4]) if place % every == 0 else word for place, word in enumerate(words))
    (whole,) = all_letters(hidden, without_decorations=False)
    assert letters(hidden) == whole


def test_nobody_hides_clauses_as_names() -> None:
    """Nor half of a Chinese text behind a few @."""
    clauses = (POST * 20).split("，")
    hidden = "，".join(f"@{clause}" if place % 3 == 1 else clause for place, clause in enumerate(clauses))
    assert letters(hidden) == letters(POST * 20)


def test_a_text_of_decorations_is_compared_whole() -> None:
    """Where they are more than half of it, or leave too little."""
    for text in (
        "转发微博 //@张三: 好",
        "http://t.cn/abc",
        "@张三 @李四",
        f"{POST[:20]} {'@' + 'a' * 30}",
        "好的 [哈哈]",
    ):
        assert letters(text) == all_letters(text, without_decorations=False)[0] != ""


def test_decorations_that_are_much_of_a_text_stay() -> None:
    """More than half of its letters; or many letters of names, and more than a quarter of what is left."""
    short, long = POST[:32], POST * 3
    names = " ".join(["@" + "a" * 20] * 4)
    assert letters(f"{short} @{'a' * 20}") == letters(short)
    for text in (f"{short} @{'a' * 30} @b", f"{long} {names}"):
        assert letters(text) == all_letters(text, without_decorations=False)[0]
    assert letters(f"{long * 3} {names}") == letters(long * 3)


def test_a_few_places_are_left_out_wherever_they_are() -> None:
    """More of them only in longer texts."""
    clauses = (POST * 2).split("，")
    few = "[泪]".join(clauses[: PLACES_FREE_MAX + 1]) + "".join(clauses[PLACES_FREE_MAX + 1 :])
    assert letters(few) == letters(POST * 2)


@pytest.mark.parametrize(
    "piece", ["@", "@a", "转@a ", "[", "[a]", "(转)", "http://", "http:// ", "t.cn/", "www.", "转发微博", "//@a:"]
)
def test_a_hostile_text_takes_no_long_time(piece: str) -> None:
    """Each character is looked at a few times."""
    text = piece * (100_000 // len(piece))
    with within_processor_s(2):
        letters(text)
