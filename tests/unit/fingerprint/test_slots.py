"""The slots of a text, and where two texts conflict."""

import random
import time

import pytest
from hypothesis import given
from hypothesis import strategies as some

from consumer.fingerprint import SLOTS_KEPT, Fingerprinter, Lexicon, Scheme, Slot, slot_conflicts, values_by_slot
from consumer.fingerprint.slots import pack_slots
from tests.examples import drawn

SCHEME = Scheme(slots=True)
some_slots = some.lists(
    some.builds(Slot, some.sampled_from(["ab", "cd", ""]), some.sampled_from("123"), some.sampled_from(["x", "y", ""]))
)


@pytest.fixture(scope="module")
def engine(lexicon: Lexicon) -> Fingerprinter:
    """The reference engine, without sketches."""
    return Fingerprinter(SCHEME, lexicon, sketched=False)


@pytest.mark.parametrize(
    ("text", "slots"),
    [
        ("会议将于3月5日召开", [("议将于", "3月5日", "召开")]),
        ("会议将于3月5日上午9时召开", [("议将于", "3月5日 上午 9", "时召开")]),
        ("the 2nd of march 2026 was fine", [("the", "2", "ndo"), ("rch", "2026", "was")]),
        ("On 5 March, 2026 it is −3 or 1,5", [("on", "5march2026", "iti"), ("tis", "-3", "or\0"), ("\0or", "1.5", "")]),
        ("in march 5 a code mu5137 came", [("in", "5march", "aco"), ("ode", "mu5137", "cam")]),
        ("第三次、二十个、一人", [("第", "三", "次\0个"), ("第\0次", "二十", "个一人")]),
        ("昨天在二十一中举行", [("昨天在", "二十一中", "举行")]),
        ("共一次，一个人", [("共", "一", "次一个")]),
        ("该书法文版、西班牙语版出版", [("该书", "法文", "版\0版"), ("书\0版", "西班牙语", "版出版")]),
        ("昨天在北京、上海举行", [("昨天在", "北京 上海", "举行")]),
        ("numbers 1, 2, 3 and 1 234 567", [("ers", "1 2 3", "and"), ("and", "1234567", "")]),
        ("昨天在臺北举行", [("昨天在", "台北", "举行")]),
        ("nothing to tell here", []),
        ("", []),
    ],
)  # fmt: skip
def test_slots_of_a_text(text: str, slots: list[tuple[str, str, str]], engine: Fingerprinter) -> None:
    """Values with no letter between them fill one slot; neighbours are marks, whatever they are."""
    assert engine.slots(text) == [Slot(*slot) for slot in slots]


@pytest.mark.parametrize(
    ("one", "other", "conflicts"),
    [
        ("会议将于3月5日上午9时召开", "会议将于3月11日下午3时召开", 1),
        ("会议将于3月5日召开", "会议将于3月5日召开。", 0),
        ("价格为1,234.5元", "价格为1.234,5元", 0),
        ("第一次会议在北京举行", "第二次会议在上海举行", 2),
        ("该书法文版出版", "该书俄文版出版", 1),
        ("会议将于三月五日召开", "会议将于三月六日召开", 1),
        ("Turnover rose 5% in 2026", "Turnover rose 7% in 2025", 2),
        ("昨天在北京举行", "昨天在某地举行", 0),
    ],
)
def test_conflicts_of_two_texts(one: str, other: str, conflicts: int, engine: Fingerprinter) -> None:
    """Other values between the same letters; surroundings that occur twice, or in one text alone, count for nothing."""
    a, b = engine.fingerprint([one, other]).facts
    assert slot_conflicts(a, b) == slot_conflicts(b, a) == conflicts


def test_a_slot_that_occurs_twice_counts_for_nothing(engine: Fingerprinter) -> None:
    """Nobody could say which of the two stands for that of the other text."""
    twice, other = "甲队得3分吧，甲队得4分吧，甲队进场", "甲队得5分吧，甲队进场"
    assert [slot.value for slot in engine.slots(twice)] == ["3", "4"]
    assert slot_conflicts(*engine.fingerprint([twice, other]).facts) == 0
    assert slot_conflicts(*engine.fingerprint([other.replace("5", "6"), other]).facts) == 1
    assert pack_slots([[Slot("ab", "1", "c"), Slot("ab", "1", "c")]]) == (b"",)


@given(some_slots, some_slots)
def test_conflicts_are_what_the_slots_say(one: list[Slot], other: list[Slot]) -> None:
    """Packed slots tell the same as the slots themselves."""
    values, others = values_by_slot(one), values_by_slot(other)
    expected = sum(values[slot] != others[slot] for slot in values.keys() & others.keys())
    assert slot_conflicts(*pack_slots([one, other])) == expected


def test_the_slots_of_smallest_surroundings_are_kept() -> None:
    """So two long texts keep the same ones, however their values differ; a record has at most 512 bytes of them."""
    many = [Slot(f"{number}", "1", "") for number in range(500)]
    changed = [slot._replace(value="2") for slot in many]
    one, other, few = pack_slots([many, changed, many[: SLOTS_KEPT - 1]])
    assert len(one) == len(other) == 8 * SLOTS_KEPT == 512
    assert [one[place : place + 4] for place in range(0, 512, 8)] == sorted(
        other[place : place + 4] for place in range(0, 512, 8)
    )
    assert slot_conflicts(one, other) == SLOTS_KEPT
    assert len(few) == 8 * (SLOTS_KEPT - 1)


def test_the_order_and_the_rest_of_the_batch_do_not_matter(engine: Fingerprinter) -> None:
    """Each text has its own slots."""
    texts = ["会议将于3月5日召开", "", "价格为5元", "no value"]
    alone = [engine.fingerprint([text]).facts[0] for text in texts]
    assert list(engine.fingerprint(texts).facts) == alone
    assert [bool(packed) for packed in alone] == [True, False, True, False]


def test_a_person_sees_where_two_texts_conflict() -> None:
    """Surroundings with a gap, other values as stars."""
    assert values_by_slot([Slot("\0议于", "5", "日\0时")]) == {"…*议于 [ ] 日*时…": "5"}


@pytest.mark.parametrize("unit", drawn(["1, ", "会9", "北京", "1 234 567 ", "法文", "march 5 "], 3))
def test_time_grows_with_the_length(unit: str, engine: Fingerprinter) -> None:
    """A text ten times as long takes at most thirty times as long."""

    def seconds(length: int) -> float:
        text, spent = (unit * length)[:length], []
        for _ in range(3):
            started = time.process_time()
            engine.slots(text)
            spent.append(time.process_time() - started)
        return min(spent)

    assert seconds(100_000) < 30 * max(seconds(10_000), 0.005)


def test_frames_of_random_values_conflict(engine: Fingerprinter) -> None:
    """Every other filling of a frame is another text, in one slot at least."""
    rng = random.Random(39)
    texts = [f"本市{rng.randrange(2, 29)}日最高气温{rng.randrange(10, 39)}度，东风{number}级" for number in range(2, 9)]
    packed = engine.fingerprint(texts).facts
    assert all(slot_conflicts(one, other) for place, one in enumerate(packed) for other in packed[:place])
