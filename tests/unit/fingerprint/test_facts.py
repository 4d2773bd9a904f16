"""The facts of a text, and what two texts' samples of them tell of their overlap."""

import random
import string

import pytest
from hypothesis import given
from hypothesis import strategies as some

from consumer.fingerprint import FactOverlap, Fingerprinter, Lexicon, Scheme, fact_overlap, facts_count
from consumer.fingerprint.characters.equality import equality_forms
from consumer.fingerprint.characters.normalise import normalise
from consumer.fingerprint.facts import FACTS_KEPT, facts_of, pack_facts
from tests.processor_time import within_processor_s

facts_sets = some.sets(some.text(string.digits, min_size=1, max_size=3), max_size=200)


def figures(text: str) -> set[str]:
    """The facts of a text of whose words nothing is known."""
    return facts_of(text, normalise(text), (), frozenset())


def packed(facts: set[str]) -> bytes:
    """The sample of one text's facts."""
    return pack_facts([facts])[0]


@pytest.mark.parametrize(
    ("text", "facts"),
    [
        ("营收１２．５亿元，增长３％", {"12.5", "3"}),
        ("revenue of 1,234,567.80 rose 5% to -3 or so", {"1234567.80", "5", "3"}),
        ("winning numbers 3,17,25", {"3,17,25"}),
        ("于2026年8月12日和8月13号、2027年", {"2026年8月12日", "8月13号", "2027年"}),
        ("2026 年 8 月 12 日", {"2026年8月12日"}),
        ("on 2026-11-21 at 12:30, 3-1", {"2026-11-21", "12:30", "3-1"}),
        ("from 12 March 2026 to may 3rd", {"12march2026", "3may"}),
        ("by march 12, 2026 and 2 june", {"12march2026", "2june"}),
        ("航班ＭＵ５１３７与ca981、v1.2.3、a1b2c3", {"mu5137", "ca981", "v1.2.3", "a1b2c3"}),
        ("第三季度共二十三人，一个也没有", {"三", "二十三"}),
        ("第２回、二十五日に３，０００人", {"2", "二十五", "3000"}),
        ("5km, 5 km and 5㎞", {"5"}),
        ("nothing to tell here", set()),
        ("", set()),
    ],
)
def test_figures_of_a_text(text: str, facts: set[str]) -> None:
    """Dates are one fact each; signs, units and separators of thousands are left off; full-width is as half-width."""
    assert figures(text) == facts


def canonical(text: str, lexicon: Lexicon) -> set[str]:
    """The facts of a text where letters are compared, of whose words nothing is known."""
    letters = lexicon.letters()
    form = equality_forms([text], [normalise(text)], letters, lexicon.chinese()).read[0]
    return facts_of(text, form, (), frozenset(), letters)


@pytest.mark.parametrize("mark", [*",.'’‘ʼ٬_ ，．＇＿", "\u00a0", "\u2007", "\u2009", "\u202f", "\u3000"])
def test_separators_of_thousands_are_no_part_of_a_number(mark: str, lexicon: Lexicon) -> None:
    """Whatever stands between groups of three digits; a list, or groups of other sizes, is no number."""
    assert canonical(f"rose to 1{mark}234{mark}567 tonnes", lexicon) == {"1234567"}
    assert canonical(f"rose to −98{mark}000%", lexicon) == {"-98000"}
    assert canonical(f"wrote 1{mark}2345{mark}678 here", lexicon) != {"12345678"}
    assert canonical(f"wrote 1{mark} 234 here", lexicon) == (
        {"1234"} if normalise(f"a{mark}a") == "a a" else {"1", "234"}
    )


@pytest.mark.parametrize(
    ("text", "facts"),
    [
        ("1.234,56 and 1,234.56 and 1 234,56 and 1’234.56", {"1234.56"}),
        ("3,5 and 3.5 and ３．５ and ٣٫٥ and ३.५", {"3.5"}),
        ("0,123 and 0.123", {"0.123"}),
        ("1.234 and 1,234", {"1234"}),
        ("1,234.567 and 1.234,567", {"1234.567"}),
        ("−5, –5, -5, (−5) and [-5", {"-5"}),
        ("+5 and 5", {"+5", "5"}),
        ("-5", {"-5"}),
        ("3-1, 3−1, 2020–2021, 10-12, a-7, covid-19", {"3-1", "2020-2021", "10-12", "7", "19"}),
        ("between -5–10 and 5-10", {"-5-10", "5-10"}),
        ("最低气温：-5度，北京 -3度，歼-20", {"-5", "-3", "20"}),
        ("- 5 and --6", {"5", "6"}),
        ("10 000–20 000 or 10,000-20,000 or 10’000 – 20’000", {"10000-20000", "10000", "20000"}),
        ("1.2.3, v1.234, 192.168.100.200 and 192.168.0.1", {"1.2.3", "v1.234", "192.168.100.200", "192.168.0.1"}),
        ("-2026-11-21, 21.11.2026, 11/21/2026 at 12:30", {"2026-11-21", "21.11.2026", "11/21/2026", "12:30"}),
        ("on −5 may 2026 and 2026年8月12日", {"5may2026", "2026年8月12日"}),
        ("numbers 3,17,25 or 1, 234", {"3,17,25", "1", "234"}),
        ("table 101 102 103 104 105 106 107 108", {"101", "102", "103", "104", "105", "106", "107", "108"}),
        ("12 345 678 901 234 567 890", {"12345678901234567890"}),
        ("room 12345 678, mu5 137, 10⁶ 106", {"12345", "678", "mu5", "137", "10", "6", "106"}),
        ("12%, 12 %, 12 km and 12km", {"12"}),
        ("1,23,456 and 1'234'5", {"1,23,456", "1", "234", "5"}),
    ],
)
def test_canonical_figures(text: str, facts: set[str], lexicon: Lexicon) -> None:
    """Numbers have their signs and a decimal point; dates, versions, addresses, codes and lists stay."""
    assert canonical(text, lexicon) == facts


def test_digits_of_every_script_are_the_same_number(lexicon: Lexicon) -> None:
    """As many as the table of characters has."""
    digits = lexicon.letters().digits
    assert len(digits) > 600
    assert len({frozenset(canonical("".join(digits[place : place + 10]), lexicon)) for place in range(0, 600, 10)}) == 1


def test_facts_where_letters_are_compared(lexicon: Lexicon) -> None:
    """Canonical figures in the scheme that compares letters, with a description of their own; the others as ever."""
    text = "Frost at North Pier: −5 degrees, and 1 234 567 tonnes."
    older, newer = (Fingerprinter(Scheme(name, facts=True), lexicon) for name in ("jieba-tfidf/2", "jieba-tfidf/3"))
    assert newer.facts(text) == {"-5", "1234567", "north", "pier"}
    assert older.facts(text) == {"5", "1", "234", "567", "north", "pier"}
    assert newer.scheme.describe()["facts"] != older.scheme.describe()["facts"]
    assert "sign" in str(newer.scheme.describe()["facts"])


@pytest.mark.parametrize("separator", ["\u200b", "\u00ad", "\ufeff"])
def test_invisible_characters_change_no_fact(separator: str) -> None:
    """Neither within a number nor within a name."""
    plain = "Yesterday the chair, Alice Hartley, sold 1,250 shares on 12 March."
    noisy = plain.replace("12", f"1{separator}2").replace("Hart", f"H{separator}art")
    assert figures(noisy) == figures(plain) == {"alice", "hartley", "1250", "12march"}


def test_full_width_letters_are_the_same_name() -> None:
    """As everywhere else, by the form that a reader sees."""
    assert figures("the mayor of Ｈａｒｗｉｃｋ said") == figures("the mayor of Harwick said") == {"harwick"}


def test_names_are_capitalised_words_within_a_sentence() -> None:
    """A capital that begins a sentence tells nothing, unless another one follows; months belong to dates."""
    found = figures("The mayor of Harwick met him. Critics left in May. Joan Renner, of Aspera, stayed.")
    assert found == {"harwick", "joan", "renner", "aspera"}


def test_names_in_chinese_are_words_that_the_dictionary_does_not_know(lexicon: Lexicon) -> None:
    """A word with a document frequency is not a name; neither is a Latin word in Chinese text."""
    text = "苍浦市市长梁一鸣宣布，公司将在城西建设新的工厂，新闻发布会照常举行，Tallis公司没有评论这个消息。"
    facts = Fingerprinter(Scheme(), lexicon).facts(text)
    assert "梁一鸣" in facts
    assert facts.isdisjoint({"公司", "建设", "工厂", "宣布", "tallis"})


def test_facts_go_along_only_where_the_scheme_asks(lexicon: Lexicon) -> None:
    """Without being asked for they cost nothing; asked for they are those of each text, whatever its batch."""
    texts = ["收入12.5亿元，公司的业绩继续增长。", "nothing to tell here", "Fog delayed 17 flights in Harwick."]
    assert Fingerprinter(Scheme(), lexicon).fingerprint(texts).facts == ()
    asked = Fingerprinter(Scheme(facts=True), lexicon)
    facts = asked.fingerprint(texts).facts
    assert facts == tuple(asked.fingerprint([text]).facts[0] for text in texts)
    assert facts == tuple(packed(asked.facts(text)) for text in texts)
    assert [facts_count(packed) for packed in facts] == [1, 0, 2]


def test_a_cut_to_the_heaviest_keywords_cuts_no_facts(lexicon: Lexicon) -> None:
    """Names are found among all words, before keywords are selected."""
    text = "苍浦市市长梁一鸣宣布，公司将在城西建设新的工厂，新闻发布会照常举行。"
    cut = Fingerprinter(Scheme(facts=True, keywords_max=1), lexicon).fingerprint([text])
    assert cut.facts == Fingerprinter(Scheme(facts=True), lexicon).fingerprint([text]).facts
    assert len(cut.keywords[0]) == 1


def test_facts_are_part_of_the_scheme_where_it_has_them(lexicon: Lexicon) -> None:
    """Another digest with facts, the same as ever without."""
    assert Scheme(facts=True).digest(lexicon) != Scheme().digest(lexicon)
    assert "facts" not in Scheme().describe()


def test_the_layout_of_a_sample() -> None:
    """How many there are, big-endian, then the hashes in rising order; the same in every process."""
    assert packed(set()) == b""
    assert packed({"5", "12.5"}).hex() == "00000002" + "81b8480d" + "f181283f"
    many = packed({f"{number}" for number in range(1_000)})
    hashes = [many[place : place + 4] for place in range(4, len(many), 4)]
    assert (facts_count(many), len(hashes), sorted(set(hashes))) == (1_000, FACTS_KEPT, hashes)


@given(facts_sets, facts_sets)
def test_overlap_is_symmetric(facts: set[str], other: set[str]) -> None:
    """Whichever comes first, also where the samples were cut."""
    assert fact_overlap(packed(facts), packed(other)) == fact_overlap(packed(other), packed(facts))


@given(some.sets(some.integers(0, 99), max_size=FACTS_KEPT), some.sets(some.integers(0, 99), max_size=FACTS_KEPT))
def test_overlap_of_few_facts_is_exact(facts: set[int], other: set[int]) -> None:
    """Up to as many as a sample holds nothing is estimated."""
    overlap = fact_overlap(*pack_facts([{f"{fact}" for fact in numbers} for numbers in (facts, other)]))
    fewer, more, shared = *sorted((len(facts), len(other))), len(facts & other)
    assert overlap == FactOverlap(fewer, more, shared if fewer else None, shared)


@given(facts_sets.filter(bool))
def test_equal_facts_are_all_shared(facts: set[str]) -> None:
    """However many there are."""
    overlap = fact_overlap(packed(facts), packed(facts))
    assert (overlap.share_of_fewer, overlap.share_of_more) == (1.0, 1.0)
    assert (overlap.differing, overlap.missing) == (0.0, 0.0)


@pytest.mark.parametrize(("count", "other_count"), [(0, 0), (0, 9), (0, 500), (1, 5_000), (3, 500)])
def test_hardly_any_facts_leave_many_missing(count: int, other_count: int) -> None:
    """Also where the sample of the text with more has none of them: the counts say so."""
    overlap = fact_overlap(
        packed({f"a{number}" for number in range(count)}), packed({f"{number}" for number in range(other_count)})
    )
    assert (overlap.fewer, overlap.more, overlap.missing) == (count, other_count, other_count)
    assert overlap.share_of_more == (0.0 if other_count else None)
    assert overlap.share_of_fewer in {None, 0.0}
    assert overlap.differing in {0.0, count}


@pytest.mark.parametrize(("size", "other_size"), [(300, 300), (1_000, 400), (50, 400)])
@pytest.mark.parametrize("share", [0.2, 0.5, 0.9])
def test_overlap_of_many_facts_is_estimated_well(size: int, other_size: int, share: float) -> None:
    """On average within 0.02 of the true share, and in one estimate within four standard errors."""
    chance = random.Random(f"{size} {share}")
    errors, errors_of_more = [], []
    for _ in range(60):
        fewer, more = sorted((size, other_size))
        numbers = chance.sample(range(10**6), size + other_size)
        facts = {f"{number}" for number in numbers[:size]}
        shared = chance.sample(sorted(facts), round(share * fewer))
        other = {*shared, *(f"{number}" for number in numbers[size : size + other_size - len(shared)])}
        overlap = fact_overlap(packed(facts), packed(other))
        errors.append((overlap.share_of_fewer or 0) - len(shared) / fewer)
        errors_of_more.append((overlap.share_of_more or 0) - len(shared) / more)
    known = FACTS_KEPT * min(size, other_size) / max(size, other_size)
    assert abs(sum(errors) / len(errors)) < 4 * (share * (1 - share) / known / 60) ** 0.5 + 0.005
    assert max(map(abs, errors)) < 4.5 * (share * (1 - share) / known) ** 0.5 + 0.01
    # Of the text with more at least as many hashes are known.
    assert abs(sum(errors_of_more) / len(errors_of_more)) < 4 * (0.25 / FACTS_KEPT / 60) ** 0.5
    assert max(map(abs, errors_of_more)) < 4.5 * (0.25 / FACTS_KEPT) ** 0.5


@pytest.mark.parametrize(
    "piece", ["a", "A", "A ", "Ab ", "1", "1,", "a1", "一", "mar ", "1年", "A-", "9 ma", "第", " "]
)
def test_no_text_takes_more_than_time_in_proportion(piece: str) -> None:
    """Half a million characters of whatever would make a pattern go over them again and again."""
    text = piece * (500_000 // len(piece))
    form = normalise(text)
    with within_processor_s(5):
        pack_facts([facts_of(text, form, (), frozenset())])


@pytest.mark.parametrize("piece", ["1", "1 ", "1'111", " 111", "'111", ",111", ".111", "1 111.", "1-1 111", "٫1", "٣"])
def test_canonical_figures_take_no_more_than_time_in_proportion(piece: str, lexicon: Lexicon) -> None:
    """Also behind a first digit, and before an end that makes what precedes it no number."""
    text = f"1{piece * (300_000 // len(piece))}'1"
    with within_processor_s(10):
        facts_of("", text, (), frozenset(), lexicon.letters())
