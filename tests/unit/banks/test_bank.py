"""Banks and items, the entries that change them, and what is refused."""

import msgspec
import pytest

from consumer.banks.bank import (
    BANKS_MAX,
    ENTRY_BYTES_MAX,
    ITEM_CHARS_MAX,
    Bank,
    BankError,
    BankItem,
    Banks,
    check_entry,
    decode_entry,
    encode_entry,
)

SPAM = Bank(bank="spam", action="deny")
NOTICES = Bank(bank="notices", action="allow")
OFFER = BankItem(bank="spam", item="offer", text="Win a ferry ticket now")


def test_the_last_entry_counts() -> None:
    """An item, and a bank, is what was said of it last."""
    changed = msgspec.structs.replace(OFFER, text="Win two ferry tickets now", note="a second wave")
    labelled = msgspec.structs.replace(SPAM, labels=("casino",))
    banks = Banks.of([SPAM, OFFER, changed, labelled])
    assert banks.banks == {"spam": labelled}
    assert banks.items == {("spam", "offer"): changed}


def test_what_is_removed_is_gone() -> None:
    """An item alone, or with its bank; another bank of that name begins without items."""
    item_removed = BankItem(bank="spam", item="offer", removed=True)
    bank_removed = Bank(bank="spam", removed=True)
    assert not Banks.of([SPAM, OFFER, item_removed]).items
    after = Banks.of([SPAM, NOTICES, OFFER, bank_removed])
    assert (set(after.banks), after.items) == ({"notices"}, {})
    assert Banks.of([SPAM, OFFER, bank_removed, Bank(bank="spam", action="allow")]).items == {}


def test_the_shortest_log_leaves_the_same() -> None:
    """What a file is written anew with."""
    banks = Banks.of([SPAM, OFFER, NOTICES, BankItem(bank="spam", item="b", text="letters"), OFFER])
    assert Banks.of(banks.entries()) == banks


@pytest.mark.parametrize("entry", [SPAM, NOTICES, OFFER, BankItem(bank="spam", item="x", removed=True)])
def test_an_entry_is_read_as_it_was_written(entry: Bank | BankItem) -> None:
    """Members that say nothing are left out."""
    assert decode_entry(encode_entry(entry)) == entry


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        (b"{", "truncated"),
        (b"[]", "must be an object, not a list"),
        (b'{"bank": "spam"}', "has no action"),
        (b'{"bank": "spam", "action": "block"}', "action: must be 'deny' or 'allow'"),
        (b'{"bank": "spam\\n", "action": "deny"}', "the name of a bank must have"),
        (b'{"bank": "spam", "item": "x\\n", "text": "letters"}', "the id of an item must have"),
        (b'{"bank": "spam", "action": "deny", "labels": ["a\\n"]}', "at most 20 labels"),
        (b'{"bank": "Spam", "action": "deny"}', "the name of a bank must have"),
        (b'{"bank": "ok", "action": "allow", "similarity": 0.8}', "at least 0.9"),
        (b'{"bank": "ok", "action": "deny", "similarity": 0.2}', "the similarity must be from 0.5 to 1"),
        (b'{"bank": "ok", "action": "deny", "size": 1}', "unknown field `size`"),
        (b'{"bank": "spam", "item": "a", "text": "a-b-c!!"}', "has 3 letters and digits, and needs at least 6"),
        (b'{"bank": "spam", "item": "a"}', "has 0 letters"),
        (b'{"bank": "spam", "item": "a b", "text": "letters"}', "the id of an item must have at most 64 characters"),
        (b'{"bank": "spam", "item": "a", "text": "letters", "until": "2026-13-01T00:00:00.000Z"}', "until"),
        (b'{"bank": "spam", "item": "a", "text": "\xff"}', "utf-8"),
        (b'{"bank": ' + b"[" * 5_000, "nested too deep"),
        (b'{"bank": "' + b"x" * ENTRY_BYTES_MAX + b'"}', "an entry must have at most"),
    ],
)
def test_an_invalid_entry_is_refused_in_words(line: bytes, complaint: str) -> None:
    """Whatever is in the file."""
    with pytest.raises(BankError, match=complaint):
        decode_entry(line)


def test_letters_are_letters_of_any_script() -> None:
    """A short slogan in Chinese has six; emoji and signs are none."""
    assert decode_entry(encode_entry(BankItem(bank="b", item="i", text="\u9650\u65f6\u62a2\u8d2d\u4f18\u60e0")))
    with pytest.raises(BankError, match="has 0 letters"):
        decode_entry(encode_entry(BankItem(bank="b", item="i", text="\U0001f389" * 30)))


@pytest.mark.parametrize("member", ["text", "title", "note", "by"])
def test_half_a_character_is_refused(member: str) -> None:
    """A shell passes one on where an argument is not UTF-8."""
    values = {"bank": "b", "item": "i", "text": "letters"} | {member: "letters \udcff"}
    with pytest.raises(BankError, match=r"not valid Unicode: '\\udcff'"):
        check_entry(msgspec.convert(values, BankItem))


def test_a_huge_text_is_refused() -> None:
    """By its characters."""
    entry = encode_entry(BankItem(bank="b", item="i", text="a" * (ITEM_CHARS_MAX + 1)))
    with pytest.raises(BankError, match="at most 100,000 characters"):
        decode_entry(entry)


def test_an_item_needs_its_bank() -> None:
    """The sentence says how to make one."""
    with pytest.raises(BankError, match="dupwatch bank create spam"):
        Banks.of([OFFER])


def test_the_action_of_a_bank_stays() -> None:
    """Who denied yesterday what is allowed today makes another bank."""
    with pytest.raises(BankError, match="has the action 'deny', which cannot be changed"):
        Banks.of([SPAM, Bank(bank="spam", action="allow")])


def test_what_is_allowed_needs_a_high_similarity() -> None:
    """Of items, too."""
    notice = BankItem(bank="notices", item="a", text="The ferry is cancelled", similarity=0.8)
    with pytest.raises(BankError, match=r"at least 0\.9"):
        Banks.of([NOTICES, notice])
    Banks.of([NOTICES, msgspec.structs.replace(notice, similarity=0.95)])


def test_there_are_only_so_many_banks() -> None:
    """Changing one of them is no new one."""
    many = [Bank(bank=f"b{number}", action="deny") for number in range(BANKS_MAX)]
    banks = Banks.of([*many, many[0]])
    with pytest.raises(BankError, match="labels"):
        banks.after([Bank(bank="more", action="deny")])
