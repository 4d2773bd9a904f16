"""The pages on which admins keep webhooks. Reviewers see the list, with the status of the last attempt."""

import json
import secrets
from collections.abc import Callable
from http import HTTPStatus
from typing import Final, TypeVar

from starlette.responses import Response

from consumer.console.faults import N_, PageError, not_found
from consumer.console.pages.webhooks.webhook_form import (
    NAME_CHARS_MAX,
    SOURCES_CHARS_MAX,
    WebhookFields,
    fields_in,
    fields_of,
    settings_in,
)
from consumer.console.pages.webhooks.webhook_words import KINDS, off_said, report, row_of, sentence
from consumer.console.visit import SignedInVisit
from consumer.reviews.database import Connection, identity
from consumer.reviews.outbox import webhooks
from consumer.reviews.outbox.webhooks import WEBHOOKS_MAX, Webhook, WebhookSettings
from consumer.text.timestamps import rfc3339
from consumer.webhooks.courier import AttemptOutcome, RefusedEndpoint, WebhookMessage
from consumer.webhooks.endpoint import URL_CHARS_MAX
from consumer.webhooks.signing import new_secret
from storage.clock import MS_PER_S

TEST_SCHEMA: Final = "dupwatch.test/1"
_SAID: Final = {
    "changed": N_("The webhook is changed."),
    "former": N_("Messages are signed with the new secret only."),
    "sent": N_("The waiting events are being sent."),
    "off": N_("The webhook is off. Its events are kept."),
    "removed": N_("The webhook is removed."),
}
_Result = TypeVar("_Result")


def show_webhooks(asked: SignedInVisit) -> Response:
    """Show all webhooks."""
    return _list_page(asked, said=_SAID.get(asked.query.text("done"), ""))


def show_webhook(asked: SignedInVisit) -> Response:
    """Show one webhook."""
    with asked.desk.database.reading() as connection:
        webhook = _webhook(asked, connection)
    return _page(asked, webhook, said=_SAID.get(asked.query.text("done"), ""))


def create(asked: SignedInVisit) -> Response:
    """Create a webhook, and show its secret once."""
    secret, now_ms = new_secret(), asked.desk.now_ms()

    def created(connection: Connection) -> Webhook:
        webhook_id = webhooks.create(connection, settings, secret, asked.person.person_id, now_ms)
        asked.note(connection, "webhook.add", subject=settings.name)
        return webhooks.webhook_numbered(connection, webhook_id)

    try:
        settings = _checked_settings(asked)
        webhook = _changed(asked, created)
    except PageError as error:
        return _list_page(asked, refusal=error)
    return _page(asked, webhook, secret=secret)


def change(asked: SignedInVisit) -> Response:
    """Change name, URL, kinds and sources of a webhook."""
    webhook_id: int = asked.places["webhook_id"]

    def changed(connection: Connection) -> None:
        webhooks.change(connection, webhook_id, settings)
        asked.note(connection, "webhook.change", subject=settings.name)

    try:
        settings = _checked_settings(asked)
        _changed(asked, changed)
    except PageError as error:
        if error.status == HTTPStatus.NOT_FOUND:
            raise
        with asked.desk.database.reading() as connection:
            webhook = _webhook(asked, connection)
        return _page(asked, webhook, refusal=error)
    return asked.redirect(f"/webhooks/{webhook_id}", done="changed")


def rotate(asked: SignedInVisit) -> Response:
    """Give a webhook a new secret, and show it once."""
    secret, now_ms = new_secret(), asked.desk.now_ms()

    def rotated(connection: Connection) -> Webhook:
        webhook_id = _noted(asked, connection, "webhook.secret").webhook_id
        webhooks.rotate(connection, webhook_id, secret, now_ms)
        return webhooks.webhook_numbered(connection, webhook_id)

    return _page(asked, _changed(asked, rotated), secret=secret)


def end_former(asked: SignedInVisit) -> Response:
    """Stop signing with the former secret."""
    return _done(asked, "former", "webhook.former", webhooks.end_former)


def send_waiting(asked: SignedInVisit) -> Response:
    """Turn a webhook on, and send its waiting events."""
    now_ms = asked.desk.now_ms()
    return _done(asked, "sent", "webhook.send", lambda c, webhook_id: webhooks.send_waiting(c, webhook_id, now_ms))


def turn_off(asked: SignedInVisit) -> Response:
    """Send nothing more to a webhook until somebody turns it on."""
    now_ms = asked.desk.now_ms()
    return _done(asked, "off", "webhook.off", lambda c, webhook_id: webhooks.turn_off(c, webhook_id, "person", now_ms))


def test(asked: SignedInVisit) -> Response:
    """Send a test now, and show what came of it."""
    now_ms = asked.desk.now_ms()

    def noted(connection: Connection) -> tuple[Webhook, str, tuple[str, ...]]:
        webhook = _noted(asked, connection, "webhook.test")
        return webhook, identity(connection), webhooks.secrets_of(connection, webhook.webhook_id, now_ms)

    webhook, name, signing = _changed(asked, noted)
    body = {"schema": TEST_SCHEMA, "at": rfc3339(now_ms), "webhook": webhook.settings.name}
    message = WebhookMessage(
        f"{name}-test-{secrets.token_hex(8)}", json.dumps(body, ensure_ascii=False).encode(), signing
    )
    outcome = asked.desk.courier.try_out(webhook.settings.url, message, now_ms / MS_PER_S)
    if outcome is None:
        raise PageError(HTTPStatus.CONFLICT, N_("Another test is being sent. Wait ten seconds, and try again."))
    return _page(asked, webhook, outcome=outcome)


def confirm_removal(asked: SignedInVisit) -> Response:
    """Say how many events would go, and ask."""
    with asked.desk.database.reading() as connection:
        return asked.page("webhook_remove.html", webhook=_webhook(asked, connection))


def remove(asked: SignedInVisit) -> Response:
    """Remove a webhook with the events that wait for it."""

    def removed(connection: Connection) -> None:
        webhook = _webhook(asked, connection)
        count = webhooks.remove(connection, webhook.webhook_id)
        asked.note(connection, "webhook.remove", subject=webhook.settings.name, why=f"{count} events")

    _changed(asked, removed)
    return asked.redirect("/webhooks", done="removed")


def _list_page(asked: SignedInVisit, *, said: str = "", refusal: PageError | None = None) -> Response:
    with asked.desk.database.reading() as connection:
        known = webhooks.webhooks(connection)
    return asked.page(
        "webhooks.html",
        status=HTTPStatus.OK if refusal is None else refusal.status,
        rows=[row_of(asked.language, webhook) for webhook in known],
        is_full=len(known) >= WEBHOOKS_MAX,
        most=WEBHOOKS_MAX,
        said=asked.language.gettext(said) if said else "",
        **_form_values(asked, WebhookFields(kinds=tuple(KINDS)), refusal),
    )


def _page(
    asked: SignedInVisit,
    webhook: Webhook,
    *,
    said: str = "",
    secret: str = "",
    outcome: AttemptOutcome | None = None,
    refusal: PageError | None = None,
) -> Response:
    language, failure = asked.language, webhook.failure
    return asked.page(
        "webhook.html",
        status=HTTPStatus.OK if refusal is None else refusal.status,
        webhook=webhook,
        row=row_of(language, webhook),
        off=off_said(language, webhook),
        last=None if webhook.last_ms is None else report(language, webhook.last_status, webhook.last_why),
        failing=None if failure is None else report(language, failure.status, failure.why),
        tested=None if outcome is None else report(language, outcome.status, outcome.why),
        secret=secret,
        said=language.gettext(said) if said else "",
        **_form_values(asked, fields_of(webhook.settings), refusal),
    )


def _form_values(asked: SignedInVisit, present: WebhookFields, refusal: PageError | None) -> dict[str, object]:
    """Return what the form shows: what was sent where that was refused, with the reason, and else what there is."""
    return {
        "given": present if refusal is None else fields_in(asked.form),
        "conflict": "" if refusal is None else refusal.said(asked.language),
        "event_kinds": [(kind, asked.language.gettext(said)) for kind, said in KINDS.items()],
        "limits": {"name": NAME_CHARS_MAX, "url": URL_CHARS_MAX, "sources": SOURCES_CHARS_MAX},
    }


def _checked_settings(asked: SignedInVisit) -> WebhookSettings:
    """Return the settings that a form asks for, with a URL that something can be sent to. Raises ``PageError``."""
    settings = settings_in(asked.form)
    try:
        asked.desk.courier.check(settings.url)
    except RefusedEndpoint as error:
        why = sentence(asked.language, error.cause, error.detail)
        raise PageError(HTTPStatus.BAD_REQUEST, N_("Nothing was changed: %(why)s"), why=why) from error
    return settings


def _done(asked: SignedInVisit, done: str, action: str, work: Callable[[Connection, int], object]) -> Response:
    """Do something to the webhook that the path names, with an entry in the audit log, and show it."""

    def changed(connection: Connection) -> int:
        webhook_id = _noted(asked, connection, action).webhook_id
        work(connection, webhook_id)
        return webhook_id

    return asked.redirect(f"/webhooks/{_changed(asked, changed)}", done=done)


def _noted(asked: SignedInVisit, connection: Connection, action: str) -> Webhook:
    """Return the webhook that the path names, with an entry in the audit log. Raises ``PageError``."""
    webhook = _webhook(asked, connection)
    asked.note(connection, action, subject=webhook.settings.name)
    return webhook


def _webhook(asked: SignedInVisit, connection: Connection) -> Webhook:
    try:
        return webhooks.webhook_numbered(connection, asked.places["webhook_id"])
    except webhooks.WebhookMissing as error:
        raise not_found() from error


def _changed(asked: SignedInVisit, work: Callable[[Connection], _Result]) -> _Result:
    """Change webhooks. Raises ``PageError`` where that cannot be."""
    try:
        return asked.desk.database.written(work)
    except webhooks.WebhookMissing as error:
        raise not_found() from error
    except webhooks.WebhookTaken as error:
        message = N_("There is a webhook of this name already, perhaps in another case. Choose another name.")
        raise PageError(HTTPStatus.CONFLICT, message) from error
    except webhooks.WebhooksFull as error:
        message = N_("There are %(most)s webhooks, and no room for more. Remove one first.")
        raise PageError(HTTPStatus.CONFLICT, message, most=WEBHOOKS_MAX) from error
