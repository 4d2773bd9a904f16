"""Frames of news texts, filled with facts that are made up, and light rewrites of what was filled.

A frame is a text with slots; the files beside this module hold them. Two fillings of one frame are two stories; a
rewrite of one filling is the same story again, with one fact corrected.
"""

import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from random import Random
from typing import Final, Literal, NamedTuple

Language = Literal["zh", "en"]
FactKind = Literal["figure", "name", "date"]

GROUPS: Final = ("earnings", "weather", "matches", "notices")
LANGUAGES: Final[tuple[Language, ...]] = ("zh", "en")
REWORDINGS_MAX: Final = 3
# From here on English numbers are written with a separator of thousands.
_SEPARATED_FROM: Final = 10_000
_SLOT: Final = re.compile(r"<([^<>]+)>")
_RANGE: Final = re.compile(r"(\d+(?:\.\d+)?)\.\.(\d+(?:\.\d+)?)")
_LETTERS: Final[Mapping[Language, str]] = {"zh": "江海云山林川泽岭桥溪峰湖", "en": "aeiounrstl"}
_DATES: Final = frozenset({"date", "date2"})
_NAMES: Final = frozenset(
    {"company", "company2", "town", "team", "team2", "person", "person2", "person3", "street", "storm"}
)
# What stays the same when the same company reports, or the same town or team is told of, again.
_LASTING: Final = frozenset({"company", "code", "ticker", "town", "phone", "team"})


class Frame(NamedTuple):
    """A text with slots; ``number`` counts the frames of a group in a language."""

    group: str
    language: Language
    number: int
    text: str


class Slot(NamedTuple):
    """A slot as it was filled: what it asks for, and what stands there."""

    asked: str
    value: str


class Story(NamedTuple):
    """A frame filled: the words between the slots, one more than there are slots."""

    frame: Frame
    words: tuple[str, ...]
    slots: tuple[Slot, ...]

    @property
    def text(self) -> str:
        """The text as a reader has it."""
        return "".join(
            part
            for word, slot in zip(self.words, (*self.slots, Slot("", "")), strict=True)
            for part in (word, slot.value)
        )

    @property
    def lasting(self) -> dict[str, str]:
        """The names and codes that the next story of the same company, town or team would have too."""
        return {slot.asked: slot.value for slot in self.slots if slot.asked in _LASTING}


@cache
def frames() -> tuple[Frame, ...]:
    """All frames, each with the background of its group behind it."""
    found: list[Frame] = []
    for language in LANGUAGES:
        path = Path(__file__).with_name(f"templates_{language}.toml")
        groups = tomllib.loads(path.read_text(encoding="utf-8"))
        for group in GROUPS:
            background = groups[group]["background"]
            for number, lead in enumerate(groups[group]["frames"]):
                order = [background[(number + step) % len(background)] for step in range(len(background))]
                found.append(Frame(group, language, number, "\n".join((lead, *order))))
    return tuple(found)


def fill(frame: Frame, random: Random, given: Mapping[str, str] | None = None) -> Story:
    """Fill a frame; what ``given`` names is taken from there. A name that stands twice is the same both times."""
    drawn = dict(given or {})
    pieces = _SLOT.split(frame.text)
    slots = []
    for asked in pieces[1::2]:
        if asked[0].isdecimal():
            slots.append(Slot(asked, _figure(asked, frame.language, random)))
        else:
            if asked not in drawn:
                drawn[asked] = _draw(asked, frame.language, random, set(drawn.values()))
            slots.append(Slot(asked, drawn[asked]))
    return Story(frame, tuple(pieces[0::2]), tuple(slots))


def rewrite(story: Story, random: Random, corrections: int = 1) -> Story:
    """Correct this many different facts, each at every place, and reword a few phrases.

    What is corrected is drawn: first whether a figure, a name or a date, then which one of the story's.
    """
    slots = story.slots
    for _ in range(corrections):
        by_kind: dict[FactKind, list[Slot]] = {}
        for slot, before in zip(slots, story.slots, strict=True):
            kind = _kind(slot)
            if kind is not None and slot == before:
                by_kind.setdefault(kind, []).append(slot)
        corrected = random.choice(sorted(by_kind))
        wrong = random.choice(by_kind[corrected])
        value = wrong.value
        while value == wrong.value:
            value = _corrected(wrong, corrected, story.frame.language, random)
        slots = tuple(Slot(slot.asked, value) if slot == wrong else slot for slot in slots)
    return Story(story.frame, _reworded(story.words, story.frame.language, random), slots)


def _kind(slot: Slot) -> FactKind | None:
    if slot.asked in _NAMES:
        return "name"
    if slot.asked in _DATES:
        return "date"
    return "figure" if slot.asked[0].isdecimal() else None


def _corrected(slot: Slot, kind: FactKind, language: Language, random: Random) -> str:
    if kind == "figure":
        return _figure(slot.asked, language, random)
    if kind == "date":
        return _draw(slot.asked, language, random, set())
    place = random.randrange(1, min(len(slot.value), 6)) if len(slot.value) > 1 else 0
    return slot.value[:place] + random.choice(_LETTERS[language]) + slot.value[place + 1 :]


def _reworded(words: Sequence[str], language: Language, random: Random) -> tuple[str, ...]:
    """Say up to three things in other words, once each."""
    drawn = list(words)
    known = [pair for pair in _OTHER_WORDS[language] if any(pair[0] in part for part in drawn)]
    for old, new in random.sample(known, min(len(known), random.randint(1, REWORDINGS_MAX))):
        place = random.choice([number for number, part in enumerate(drawn) if old in part] or [0])
        drawn[place] = drawn[place].replace(old, new, 1)
    return tuple(drawn)


def _figure(asked: str, language: Language, random: Random) -> str:
    bounds = _RANGE.fullmatch(asked)
    if bounds is None:
        raise ValueError(f"<{asked}> is no range of numbers")
    low, high = bounds.groups()
    decimals = len(low.partition(".")[2])
    number = random.randint(round(float(low) * 10**decimals), round(float(high) * 10**decimals))
    if decimals:
        return f"{number / 10**decimals:.{decimals}f}"
    return f"{number:,}" if language == "en" and number >= _SEPARATED_FROM else f"{number}"


def _draw(asked: str, language: Language, random: Random, taken: set[str]) -> str:
    """Draw what a slot asks for, other than what was drawn for the slots before."""
    draw = _DRAWS[language][asked.rstrip("0123456789")]
    for _ in range(1_000):
        value = draw(random)
        if value not in taken:
            return value
    raise ValueError(f"there are too few values for <{asked}>")


def _one_of(words: str) -> Callable[[Random], str]:
    values = words.split("|")
    return lambda random: random.choice(values)


def _joined(separator: str, *words: str) -> Callable[[Random], str]:
    parts = [_one_of(word) for word in words]
    return lambda random: separator.join(part(random) for part in parts)


_ZH_PLACES: Final = "苍浦|澄州|临溪|松陵|云岗|青泽|宁渡|海棠|石湾|清河口|望江|平桥|白沙|永新|南屏|柳河|东岭|金渚"
_ZH_FIRMS: Final = "启岳|澜星|恒舟|博瀚|泰禾源|远景达|兴微|天衡|瑞枫|中泽|华屿|明川|德润|凯越|新元|鼎帆"
_EN_PLACES: Final = (
    "Harwick|Easterby|Millbrook|Stonehaven Bay|Ardleigh|Carrowmore|Fenwick|Northam|Kelsby|Dunmere|Wrexford|Oakhampton|"
    "Silverton|Pellworth|Marlow Cross|Thornbury|Lindale|Queensferry"
)
_EN_FIRMS: Final = "Halden|Corvex|Brightwell|Northline|Aspera|Tallis|Mondrake|Velora|Quantis|Redfern|Ostrava|Kinloch"
_MONTHS: Final[tuple[str, ...]] = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
)  # fmt: skip
_DRAWS: Final[Mapping[Language, Mapping[str, Callable[[Random], str]]]] = {
    "zh": {
        "company": _joined("", _ZH_FIRMS, "机械|电子|药业|食品|材料|能源|科技|家居"),
        "town": _joined("", _ZH_PLACES, "市|县"),
        "team": _joined("", _ZH_PLACES, "队|雄狮队|联队|飞鹰队"),
        "person": _joined(
            "",
            "王|李|周|陈|沈|陆|郑|韩|许|高|梁|宋|邵|潘",
            "志远|雨桐|建明|子涵|晓峰|立群|思源|国栋|一鸣|海燕|佳怡|文博|凯",
        ),
        "street": _joined("", "人民|建设|滨河|解放|长安|文化|迎宾|学府|光明|胜利", "路|大道|东路|西路|北街"),
        "storm": _one_of("海葵|白鹿|银杏|飞燕|蓝鲸|玉兔|山茶|木棉|云雀|麒麟"),
        "quarter": _one_of("第一季度|第二季度|第三季度|第四季度|上半年|前三季度"),
        "year": lambda random: f"{random.randint(2023, 2026)}",
        "date": lambda random: f"{random.randint(1, 12)}月{random.randint(1, 28)}日",
        "clock": lambda random: f"{random.randint(5, 22)}时{random.randint(1, 59)}分",
        "wind": _one_of("东|南|西|北|东南|东北|西南|西北"),
        "colour": _one_of("蓝色|黄色|橙色|红色"),
        "updown": _one_of("增长|下降"),
        "score": lambda random: f"{random.randint(2, 5)}比{random.randint(0, 1)}",
        "code": lambda random: f"{random.choice(('600', '300', '002', '688'))}{random.randint(100, 999)}",
        "phone": lambda random: f"{random.randint(6_100_000, 8_999_999)}",
    },
    "en": {
        "company": _joined(
            " ", _EN_FIRMS, "Machinery|Electronics|Pharma|Foods|Materials|Energy|Technologies|Interiors"
        ),
        "town": _one_of(_EN_PLACES),
        "team": _joined(" ", _EN_PLACES, "United|Rovers|City|Athletic|Falcons"),
        "person": _joined(
            " ",
            "Alice|Martin|Joan|Peter|Ingrid|Samuel|Clara|Victor|Nadia|Owen|Ruth|Hugo|Leah",
            "Hartley|Okafor|Lindqvist|Moreau|Castell|Brandt|Ferris|Nakata|Dunn|Ivory|Pascoe|Quill|Renner",
        ),
        "street": _joined(" ", "Harbour|Mill|Station|Chapel|Victoria|Bridge|Orchard|Castle|Queen", "Street|Road|Lane"),
        "storm": _one_of("Adela|Bruno|Celia|Dario|Elmira|Fausto|Greta|Hector|Ileana|Jonas"),
        "quarter": _one_of("first quarter|second quarter|third quarter|fourth quarter|first half"),
        "year": lambda random: f"{random.randint(2023, 2026)}",
        "date": lambda random: f"{random.randint(1, 28)} {random.choice(_MONTHS)}",
        "clock": lambda random: f"{random.randint(5, 22)}:{random.randint(1, 59):02}",
        "wind": _one_of("north-westerly|south-westerly|easterly|northerly|southerly"),
        "colour": _one_of("yellow|amber|orange|red"),
        "score": lambda random: f"{random.randint(2, 5)}-{random.randint(0, 1)}",
        "ticker": lambda random: "".join(random.choices("ABCDEFGHKLMNPRSTVX", k=4)),
        "phone": lambda random: f"{random.randint(610_000, 899_999)}",
    },
}
_OTHER_WORDS: Final[Mapping[Language, tuple[tuple[str, str], ...]]] = {
    "zh": (
        ("表示", "称"), ("认为", "指出"), ("预计", "料"), ("公司", "该公司"), ("将", "会"), ("明显", "显著"),
        ("并", "同时"), ("可以", "可"), ("继续", "持续"), ("提醒", "提示"), ("以及", "和"), ("激烈", "胶着"),
        ("进行", "展开"), ("有关", "相关"), ("或者", "或"), ("尽快", "及早"), ("主要", "重点"), ("根据", "依照"),
        ("详细", "具体"), ("未来", "今后"),
    ),
    "en": (
        ("said", "stated"), ("is expected to", "should"), ("which", "that"), ("announced", "said"), ("about", "some"),
        ("because of", "owing to"), ("will be", "is to be"), ("have to", "must"), ("as soon as possible", "soon"),
        ("in the end", "finally"), ("closely", "carefully"), ("beforehand", "in advance"), ("fierce", "intense"),
        ("is open to", "can be followed by"), ("going", "heading"), ("whole", "entire"), ("took", "needed"),
        ("should", "ought to"), ("people", "persons"), ("at home", "on their own ground"), ("rose", "climbed"),
    ),
}  # fmt: skip
