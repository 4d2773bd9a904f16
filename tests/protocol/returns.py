"""Cases in which content that ended is delivered again, and what a store must hold after them.

Messages of an id are numbered by their places in one feed: ``A2`` brings the content A, and lies at the third place.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

import msgspec

from storage.records import Record, Tombstone, Version, stretch_reference
from tests.builders import TIME_MS, make_tombstone
from tests.protocol.articles import FAR, LEFT, MIDDLE, RIGHT, make_article
from tests.protocol.contents import Content
from tests.protocol.explorer import Process, Result

FEED: Final = "articles:0"
CHANGING: Final = "changing"
NOWHERE: Final = "None"
"""The source of what came from no feed."""

Arrived = Version | Tombstone


def message(
    place: int, content: str, bits: int = LEFT, *, arrives: int | None = None, key: str | None = None
) -> Version:
    """Return the delivery of a message; one that ``arrives`` at another time than its own may do so whenever read."""
    version = make_article(place, bits, article_id=CHANGING, content=content.encode())
    number = place if arrives is None else arrives
    record = msgspec.structs.replace(
        version.record, time_ms=TIME_MS + number, feed=FEED if key is None else "owner", key=key
    )
    return Version(record, None, has_fixed_arrival=arrives is None and key is None)


def retraction(place: int, *, key: str | None = None) -> Tombstone:
    """Return the delivery of a null body, or of a request with a key."""
    gone = make_tombstone(CHANGING, TIME_MS + place, place, place=f"{FEED}:{place}".encode())
    return msgspec.structs.replace(gone, feed=FEED if key is None else "owner", key=key)


def expected_stretches(messages: Iterable[Arrived]) -> set[tuple[bytes, int, str]]:
    """Return the stretches of an id whose messages came in order: each content, its number, and where it came from."""
    stretches: list[tuple[bytes, int, str]] = []
    current: bytes | None = None
    distinct: dict[tuple[str, bytes], Arrived] = {}
    for each in messages:
        distinct.setdefault((_source_of(each), each.reference), each)
    for arrived in sorted(distinct.values(), key=_place):
        if isinstance(arrived, Tombstone):
            current = None
        elif arrived.reference != current:
            current = arrived.reference
            stretches.append((current, sum(each[0] == current for each in stretches), _source_of(arrived)))
    return set(stretches)


def stored_stretches(records: Iterable[Record]) -> set[tuple[bytes, int, str]]:
    """Return the same of what is stored."""
    by_reference = {record.reference: record for record in records}
    firsts = {reference for reference, record in by_reference.items() if not record.stretch}
    found = set()
    for record in by_reference.values():
        number = record.stretch or 0
        first = next(first for first in firsts if stretch_reference(first, number) == record.reference)
        found.add((first, number, f"{record.feed} {record.key or record.sequence}"))
    return found


def wrong_returns(
    before: Sequence[Arrived], processes: Sequence[Process], content: Content, results: Sequence[Result | None]
) -> list[str]:
    """Return a sentence for each wrong answer, and for each id with other stretches than its messages say."""
    ids = _ids_in_order(before, [arrived for process in processes for arrived in process.batch])
    return [*_wrong_stretches(ids, content), *_wrong_answers(ids, processes, content, results)]


def _ids_in_order(before: Sequence[Arrived], new: Sequence[Arrived]) -> dict[str, list[Arrived]]:
    """Return the messages of each id that came in order: at most one new message, with older ones again."""
    found = {}
    for name in {_id(arrived) for arrived in (*before, *new) if _source_of(arrived) != NOWHERE}:
        known = [arrived for arrived in before if _id(arrived) == name]
        last = max(map(_place, known), default=-1)
        of_it = [arrived for arrived in new if _id(arrived) == name]
        if len({_source_of(arrived) for arrived in of_it if _place(arrived) > last}) <= 1:
            found[name] = [*known, *of_it]
    return found


def _wrong_stretches(ids: Mapping[str, Sequence[Arrived]], content: Content) -> list[str]:
    wrong = []
    for name, messages in ids.items():
        expected = expected_stretches(messages)
        stored = stored_stretches(version.record for version in content.versions if version.record.id == name)
        if stored != expected:
            wrong.append(f"the stretches of {name} are {sorted(stored)} instead of {sorted(expected)}")
    return wrong


def _wrong_answers(
    ids: Mapping[str, object], processes: Sequence[Process], content: Content, results: Sequence[Result | None]
) -> list[str]:
    """A message that began a stretch is answered with its verdict, any other with that of a stretch of its content.

    Two deliveries of one message may be answered differently if others of its id were judged in between out of order.
    """
    stored = {version.record.reference: version for version in content.versions}
    tombstones = {tombstone.reference: tombstone.event for tombstone in content.tombstones}
    wrong = []
    for process, result in zip(processes, results, strict=True):
        for arrived, answer in zip(process.batch, result or (), strict=True):
            if isinstance(arrived, Tombstone):
                allowed = [tombstones[arrived.reference]]
            else:
                references = [stretch_reference(arrived.reference, number) for number in range(len(stored))]
                stretches = [stored[reference] for reference in references if reference in stored]
                own = [
                    each for each in stretches if each.record.origin == arrived.record.origin and _id(arrived) in ids
                ]
                allowed = [each.verdict for each in own or stretches if each.verdict is not None]
            if answer not in allowed:
                wrong.append(f"a judge answered about {_id(arrived)} differently from what is stored")
    return wrong


def _id(arrived: Arrived) -> str:
    return arrived.id if isinstance(arrived, Tombstone) else arrived.record.id


def _place(arrived: Arrived) -> int:
    """Return when a message was first delivered: at its own time, or by its place in the feed."""
    if isinstance(arrived, Tombstone):
        return arrived.time_ms - TIME_MS
    return arrived.record.time_ms - TIME_MS if arrived.has_fixed_arrival else arrived.record.sequence


def _source_of(arrived: Arrived) -> str:
    about = arrived if isinstance(arrived, Tombstone) else arrived.record
    return NOWHERE if about.feed is None else f"{about.feed} {about.key or about.sequence}"


def histories() -> Iterator[tuple[str, tuple[Arrived, ...], tuple[tuple[Arrived, ...], ...], int]]:
    """Yield each case: its name, what was judged before, the batch of each process, and how many crashes happen."""
    a0, a2, a3, a4 = (message(place, "A") for place in (0, 2, 3, 4))
    for name, bits in (("far", FAR), ("near", MIDDLE)):
        b1, b3 = message(1, "B", bits), message(3, "B", bits)
        copy, copy_of_b = make_article(5), make_article(6, bits)
        between = make_article(1)
        yield f"A, {name} B, A|copy", (a0, b1), ((a2,), (copy,)), 1
        yield f"A, {name} B, A|copy of B", (a0, b1), ((a2,), (copy_of_b,)), 1
        yield f"A, {name} B, A with a copy|copy", (a0, b1), ((a2, copy), (make_article(7),)), 0
        yield f"A, {name} B, A twice|copy", (a0, b1), ((a2,), (a2,), (copy,)), 0
        yield f"A, {name} B, A|A first again|copy", (a0, b1), ((a2,), (a0,), (copy,)), 0
        yield f"A, {name} B, A, then A first again|copy", (a0, b1, a2), ((a0,), (copy,)), 1
        yield f"A, {name} B, A, B, then A|A before again", (a0, b1, a2, b3), ((a4,), (a2,)), 1
        # A is kept, its copy is pending, and A ends and returns meanwhile.
        yield f"A, {name} B, A|copy from before B", (a0, b1), ((a2,), (between,)), 1
        yield f"A, {name} B, A|copy from before B|A first again", (a0, b1), ((a2,), (between,), (a0,)), 0
        yield f"A, B|A at once, {name}", (a0,), ((b1,), (a2,), (copy,)), 0
        yield f"A, {name} B, A|B at once", (a0, b1), ((a2,), (b3,), (copy,)), 0
        yield f"A, {name} B, A, A|copy", (a0, b1, a2), ((a3,), (copy,)), 1
        yield f"A, {name} B, A, B, A|copy", (a0, b1, a2, b3), ((a4,), (copy,)), 1
        disagreeing = message(2, "A", arrives=4)
        yield f"A, {name} B, A|A arriving later|copy", (a0, b1), ((a2,), (disagreeing,), (make_article(3),)), 0
        # A message that brought nothing new is not stored. It is delivered again after what followed it.
        unchanged = message(1, "A", arrives=8)
        yield f"A, A, {name} B, then A unchanged again|copy", (a0, message(2, "B", bits)), ((unchanged,), (copy,)), 1
        yield f"A, A, {name} B, A|A unchanged again", (a0, message(2, "B", bits)), ((a3,), (unchanged,)), 1
    for name, gone in (("null", retraction(1)), ("request", retraction(1, key="gone"))):
        copy = make_article(2)
        yield f"A, {name}, A|copy", (a0, gone), ((a2,), (make_article(5),)), 1
        yield f"A, {name}, A|copy from between", (a0, gone), ((a3,), (copy,)), 1
        yield f"A, {name}, copy kept, A|copy", (a0, gone, copy), ((a3,), (make_article(5),)), 1
        yield f"A, {name}, copy kept, A|A again", (a0, gone, copy), ((a3,), (a3,)), 1
        early, late = message(2, "A", arrives=3), message(2, "A", arrives=6)
        yield f"A, {name}, A|A arriving later|copy from between", (a0, gone), ((late,), (early,), (make_article(5),)), 0
        yield f"A, {name}|copy|A", (a0,), ((gone,), (copy,), (a3,)), 0
    path = message(2, "A", MIDDLE)
    yield (
        "on a path, A|left|right",
        (message(0, "A", MIDDLE), message(1, "B", FAR)),
        (
            (path,),
            (make_article(3, LEFT),),
            (make_article(4, RIGHT),),
        ),
        0,
    )
    k0, k1, k2, k3 = (message(place, "AB"[place % 2], (LEFT, FAR)[place % 2], key=f"k{place}") for place in range(4))
    again = message(9, "A", key="k2")
    yield "requests A, B, A, B, then A by the same key again", (k0, k1, k2, k3), ((again,), (make_article(10),)), 1
    # A topic was deleted and made anew: its places begin again.
    anew = message(0, "A")
    anew = anew._replace(record=msgspec.structs.replace(anew.record, time_ms=TIME_MS + 5))
    yield (
        "B, A, B, topic made anew, A|copy",
        (
            message(0, "B", FAR),
            message(1, "A"),
            message(2, "C", RIGHT << 20),
        ),
        ((anew,), (make_article(9),)),
        1,
    )
    yield (
        "request A, B, topic made anew, A|copy",
        (k0, message(0, "B", FAR, arrives=1)),
        ((anew,), (make_article(9),)),
        1,
    )
