"""Bytes that stores, checkpoints and offsets hold: a release that changes one of them strands what is there.

A digest that changes here means that every existing store is refused. Change it only together with a new scheme
version, or a migration.
"""

import hashlib
from dataclasses import replace
from types import MappingProxyType

import pytest

from consumer.files.checkpoint import Checkpoint, OutcomeCounts, encode_checkpoint
from consumer.files.lines import Position
from consumer.fingerprint import SCHEME_NAMES, BlockPlan, Scheme
from consumer.judge.settings import JudgeSettings, SourceRule
from consumer.kafka.offset_metadata import HoldReason, Note, encode_note
from consumer.model.ports import OutputSizes
from consumer.workers.word_files import load_lexicon
from storage.records import encode_record
from tests.builders import make_record

SCHEME_DIGESTS = {
    "jieba-tfidf/1": "1e5f40b268a37e051a4f7a7e15a5ac1a",
    "jieba-tfidf/2": "26646300c21e69b7f32a39c732da7208",
    "jieba-tfidf/3": "4e481cf6d6492b2df84679619d9d1929",
    "multiply-xor-64/1": "29684b9712776f50b92dcd2698a4b437",
    "multiply-xor-128/1": "a2a4f1420bcbd220b177c1856347fdfb",
    "multiply-xor-utf16-64/1": "31647be60898bcda0463083a6dc7affe",
    "multiply-xor-utf16-128/1": "11f4cf296698a0d165897802eee1b637",
    "md5-64/1": "09f0226d297f2b1d83e4e8f0277d2b34",
    "md5-128/1": "9adc3dbceacad27af483b03ac5290f93",
    "sha1-64/1": "2ad971d3307982d2b56d07561afedceb",
    "sha1-128/1": "aef0b701b0c6340172eb003df5e644f4",
    "jenkins-64/1": "b1d7d8d0f294e432166b939ea0664ba8",
    "hyperplanes-64/1": "a660d0cebbfbe6667b7976ae8811c286",
    "hyperplanes-128/1": "c08745a4f9eb11d57cb4417f6f89641a",
}
GUARDED = JudgeSettings(
    stretches_max=0,
    plan=BlockPlan.named("16x28"),
    scheme_digest="00",
    scheme=Scheme("jieba-tfidf/1", facts=True, keywords_max=50),
    similarity_min=0.75,
    facts_shared_min=0.5,
    facts_revision=1,
    sources=MappingProxyType(
        {
            "b": SourceRule(flag="never"),
            "a": SourceRule(similarity_min=0.9, within_source=False, facts_shared_min=0.7),
        }
    ),
)


@pytest.mark.parametrize("name", SCHEME_NAMES)
def test_schemes_keep_their_digests(name: str) -> None:
    """With jieba's own dictionary, as every store without word files of its own has it."""
    assert Scheme(name=name).digest(load_lexicon()) == SCHEME_DIGESTS[name]


def test_a_scheme_with_facts_keeps_its_digest() -> None:
    """What is said of facts is in the digest."""
    assert Scheme("jieba-tfidf/1", facts=True).digest(load_lexicon()) == "de8744584465e5722ba1de1c35728247"


def test_default_settings_keep_their_digest() -> None:
    """Those that stores are bound to, by their scheme; thresholds and stretches have other defaults today."""
    plan, older = BlockPlan.named("4x16"), Scheme("jieba-tfidf/1")
    settings = JudgeSettings(
        plan=plan, scheme_digest=SCHEME_DIGESTS[older.name], scheme=older, similarity_min=0.75, stretches_max=0
    )
    assert settings.digest() == "a3e3d9f93512cd1c368fb328b6be84934887ada82faf01488e0cff77d33e1e84"
    older = Scheme("jieba-tfidf/2")
    settings = JudgeSettings(
        plan=plan, scheme_digest=SCHEME_DIGESTS[older.name], scheme=older, similarity_min=0.75, stretches_max=0
    )
    assert settings.digest() == "858007290272bb08de5b277e12f80112c28f571474e15d93fd7735e418360bc1"
    settings = JudgeSettings(
        plan=plan, scheme_digest="00", scheme=Scheme("jieba-tfidf/3"), similarity_min=0.75, stretches_max=0
    )
    assert settings.digest() == "29c66a4701474eb1a96df18df75bd6d37cb5f95d81bc268ce0be85ffd6efdc44"


def test_settings_with_rules_and_facts_keep_their_bytes() -> None:
    """Names, order and defaults of all that is bound to a store; revision 2 of the guard only adds its number."""
    returning = replace(GUARDED, stretches_max=64).encode()
    assert returning.replace(b'"stretches_max":64,', b"") == GUARDED.encode() != returning
    later = replace(GUARDED, facts_revision=2).encode()
    assert later.replace(b'"facts_revision":2,', b"") == GUARDED.encode() != later
    assert GUARDED.encode() == (
        b'{"facts_differing_min":3,"facts_shared_min":0.5,"lane1":true,"max_distance":3,"one_bits_distance_max":16,'
        b'"plan":"16x28","reach":10,"scheme":{"facts":true,"keywords_max":50,"name":"jieba-tfidf/1",'
        b'"short_keywords_max":7,"sketch":{"band_minima":3,"bands":4,"bins":256,"one_bits":64,"sketch_bits":8}},'
        b'"scheme_digest":"00","similarity_min":0.75,"sources":{"a":{"facts_shared_min":0.7,"flag":"duplicates",'
        b'"max_distance":null,"similarity_min":0.9,"within_source":false},"b":{"flag":"never","max_distance":null,'
        b'"similarity_min":null,"within_source":true}},"verifications_max":1024,"verify":true,'
        b'"window_ms":604800000}'
    )


def test_sources_that_are_kept_apart_have_their_bytes() -> None:
    """Names in their order; a rule without any has the bytes of before."""
    rules = MappingProxyType({"a": SourceRule(never_with=("乙", "b"))})
    settings = JudgeSettings(plan=BlockPlan.named("4x16"), scheme_digest="00", sources=rules)
    assert (
        '"sources":{"a":{"flag":"duplicates","max_distance":null,"never_with":["b","乙"],"similarity_min":null,'
        '"within_source":true}}'
    ).encode() in settings.encode()


def test_notes_keep_their_bytes() -> None:
    """Members of a group may run different releases, and read one another's notes."""
    held_partition = HoldReason(bad=501, records=1_000, reason="missing_id")
    note = Note(highest_ms=1_767_225_600_000, window=((50, 3), (12, 0)), held=held_partition, free_until=9)
    assert encode_note(note) == (
        '{"dupwatch":1,"free_until":9,"held":{"bad":501,"reason":"missing_id","records":1000},'
        '"highest_ms":1767225600000,"window":[[50,3],[12,0]]}'
    )
    assert encode_note(Note(migrate="switched")) == "dupwatch migrate: switched"


def test_checkpoints_keep_their_bytes() -> None:
    """A run resumes from the checkpoint of an earlier release."""
    checkpoint = Checkpoint(
        source="feed.jsonl",
        position=Position(3, 40),
        began_ms=1_700_000_000_000,
        marks=OutputSizes(10, 20),
        settings="ab12",
        counts=OutcomeCounts(unique=1, dead_letters=2),
    )
    assert encode_checkpoint(checkpoint) == (
        b'{"schema":"dupwatch.checkpoint/1","source":"feed.jsonl","head":{"size_bytes":0,"sha256":'
        b'"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},"position":{"line":3,"offset":40},'
        b'"began_ms":1700000000000,"marks":{"verdicts_bytes":10,"dead_letters_bytes":20},"settings":"ab12",'
        b'"finished":false,"counts":{"unique":1,"duplicate":0,"retracted":0,"dead_letters":2},"emit":null,'
        b'"store":null}\n'
    )


@pytest.mark.parametrize(
    ("stamped_ms", "digest"),
    [
        (None, "59ab26dcf0262b32d99ac12e120006fcc3c190ddbbfde67a34c35faf8d369d66"),
        (7, "39b9187802c3dce095d1f80abf0fa7d3a5e7c8799484dab28cfe9287c52d90a7"),
    ],
)
def test_records_keep_their_bytes(stamped_ms: int | None, digest: str) -> None:
    """A store that settles a record compares the bytes that it has with these."""
    record = make_record(published_at=1.5, stamped_ms=stamped_ms)
    assert hashlib.sha256(encode_record(record)).hexdigest() == digest
