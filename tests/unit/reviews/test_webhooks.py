"""Webhooks: which there are, what they get, and their secrets."""

import pytest

from consumer.reviews.database import Database
from consumer.reviews.outbox import deliveries, webhooks
from consumer.reviews.outbox.webhooks import (
    FORMER_SECRET_MS,
    WEBHOOKS_MAX,
    WebhookMissing,
    WebhooksFull,
    WebhookTaken,
    secrets_of,
)
from tests.unit.reviews.made import NOW_MS, at_once, read, write
from tests.unit.reviews.webhooks_made import (
    SECRET,
    add_webhook,
    change,
    found,
    happened,
    outbox,
    settings,
    tell,
    waiting,
)


def test_a_webhook_gets_the_kinds_and_sources_that_it_takes(database: Database) -> None:
    """From when it is created; without sources, those of all."""
    tell(database, happened("before"))
    ops = add_webhook(database, settings("ops", kinds=["flag", "decision"], sources=["wire", "报"]))
    site = add_webhook(database, settings("site", kinds=["story"]))
    assert outbox(database) == []
    tell(
        database,
        happened("a", kind="flag", sources=["报", "post"]),
        happened("b", kind="flag", sources=["post"]),
        happened("c", 1, "story", sources=[]),
        happened("d", kind="bank_match"),
        happened("e"),
    )
    assert waiting(database, ops) == [1, 3]
    assert waiting(database, site) == [2]
    change(database, ops, settings("ops", kinds=["bank_match"]))
    tell(database, happened("f", kind="bank_match", sources=["post"]), happened("g"))
    assert waiting(database, ops) == [1, 3, 4]


def test_a_name_is_there_once(database: Database, second: Database) -> None:
    """Also in another case, and where two admins create it at the same moment."""
    ops = add_webhook(database, settings("ops"))
    with pytest.raises(WebhookTaken):
        add_webhook(database, settings("OPS"))
    site = add_webhook(database, settings("site"))
    with pytest.raises(WebhookTaken):
        change(database, site, settings("Ops"))
    change(database, ops, settings("Ops"))
    assert [each.settings.name for each in read(database, webhooks.webhooks)] == ["Ops", "site"]

    def added(at: Database) -> bool:
        try:
            return bool(add_webhook(at, settings("new")))
        except WebhookTaken:
            return False

    assert sorted(at_once([lambda: added(database), lambda: added(second)])) == [False, True]


def test_there_are_not_many(database: Database) -> None:
    """And none of a number that is not there."""
    for number in range(WEBHOOKS_MAX):
        add_webhook(database, settings(f"hook {number}"))
    with pytest.raises(WebhooksFull):
        add_webhook(database, settings("one more"))
    for missing in (webhooks.end_former_secret, webhooks.remove):
        with pytest.raises(WebhookMissing):
            write(database, missing, 4_711)
    with pytest.raises(WebhookMissing):
        read(database, webhooks.webhook_numbered, 4_711)
    with pytest.raises(WebhookMissing):
        read(database, secrets_of, 4_711, NOW_MS)


def test_two_secrets_sign_for_a_day(database: Database) -> None:
    """Until it is over, or somebody ends it; a former one is forgotten then."""
    hook = add_webhook(database, settings(), SECRET)

    def signing(now_ms: int) -> tuple[str, ...]:
        (destination,) = read(database, deliveries.destinations, now_ms)
        assert destination.secrets == read(database, secrets_of, hook, now_ms)
        return destination.secrets

    write(database, webhooks.rotate, hook, "whsec_bmV3", NOW_MS)
    assert signing(NOW_MS + FORMER_SECRET_MS - 1) == ("whsec_bmV3", SECRET)
    assert signing(NOW_MS + FORMER_SECRET_MS) == ("whsec_bmV3",)
    write(database, webhooks.end_expired_secrets, NOW_MS + FORMER_SECRET_MS - 1)
    assert found(database, hook).former_until_ms == NOW_MS + FORMER_SECRET_MS
    write(database, webhooks.end_expired_secrets, NOW_MS + FORMER_SECRET_MS)
    assert found(database, hook).former_until_ms is None
    assert signing(NOW_MS) == ("whsec_bmV3",)
    write(database, webhooks.rotate, hook, "whsec_YWdhaW4=", NOW_MS)
    write(database, webhooks.end_former_secret, hook)
    assert signing(NOW_MS) == ("whsec_YWdhaW4=",)


def test_a_webhook_goes_with_what_waits_for_it(database: Database) -> None:
    """What others wait for stays, and so does the latest event."""
    ops, site = add_webhook(database, settings("ops")), add_webhook(database, settings("site", kinds=["flag"]))
    tell(database, happened("a"), happened("b", kind="flag"), happened("c"))
    assert write(database, webhooks.remove, ops) == 3
    assert outbox(database) == [2, 3]
    assert waiting(database, site) == [2]
    assert [each.settings.name for each in read(database, webhooks.webhooks)] == ["site"]


def test_a_number_is_given_once(database: Database) -> None:
    """A page that still shows a webhook which was removed changes no other, and neither does an attempt."""
    first = add_webhook(database, settings())
    write(database, webhooks.remove, first)
    assert add_webhook(database, settings()) != first
