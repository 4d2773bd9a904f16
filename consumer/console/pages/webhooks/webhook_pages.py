"""The pages on which admins manage webhooks. Reviewers only see the list, with the status of the last attempts."""

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
from consumer.console.pages.webhooks.webhook_words import KINDS, off_text, report, row_of, sentence
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
_NOTICES: Final = {
    "changed": N_("Webhook changed."),
    "former": N_("Messages are signed with the new secret only."),
    "sent": N_("The waiting events are being sent."),
    "off": N_("The webhook is off. Its events are kept."),
    "removed": N_("Webhook removed."),
}
_Result = TypeVar("_Result")


def show_webhooks(visit: SignedInVisit) -> Response:
    """Show all webhooks."""
    return _list_page(visit, notice=_NOTICES.get(visit.query.text("done"), ""))


def show_webhook(visit: SignedInVisit) -> Response:
    """Show a webhook."""
    with visit.context.database.read_connection() as connection:
        webhook = _webhook(visit, connection)
    return _page(visit, webhook, notice=_NOTICES.get(visit.query.text("done"), ""))


def create(visit: SignedInVisit) -> Response:
    """Create a webhook, and show its secret once."""
    secret, now_ms = new_secret(), visit.context.now_ms()

    def create_webhook(connection: Connection) -> Webhook:
        webhook_id = webhooks.create(connection, settings, secret, visit.person.person_id, now_ms)
        visit.add_audit_entry(connection, "webhook.add", subject=settings.name)
        return webhooks.webhook_numbered(connection, webhook_id)

    try:
        settings = _checked_settings(visit)
        webhook = _write(visit, create_webhook)
    except PageError as error:
        return _list_page(visit, refusal=error)
    return _page(visit, webhook, secret=secret)


def change(visit: SignedInVisit) -> Response:
    """Change name, URL, kinds and sources of a webhook."""
    webhook_id: int = visit.path_parameters["webhook_id"]

    def change_settings(connection: Connection) -> None:
        webhooks.change(connection, webhook_id, settings)
        visit.add_audit_entry(connection, "webhook.change", subject=settings.name)

    try:
        settings = _checked_settings(visit)
        _write(visit, change_settings)
    except PageError as error:
        if error.status == HTTPStatus.NOT_FOUND:
            raise
        with visit.context.database.read_connection() as connection:
            webhook = _webhook(visit, connection)
        return _page(visit, webhook, refusal=error)
    return visit.redirect(f"/webhooks/{webhook_id}", done="changed")


def rotate(visit: SignedInVisit) -> Response:
    """Give a webhook a new secret, and show it once."""
    secret, now_ms = new_secret(), visit.context.now_ms()

    def rotate_secret(connection: Connection) -> Webhook:
        webhook_id = _webhook_with_audit_entry(visit, connection, "webhook.secret").webhook_id
        webhooks.rotate(connection, webhook_id, secret, now_ms)
        return webhooks.webhook_numbered(connection, webhook_id)

    return _page(visit, _write(visit, rotate_secret), secret=secret)


def end_former_secret(visit: SignedInVisit) -> Response:
    """Stop signing with the former secret."""
    return _change_and_show(visit, "former", "webhook.former", webhooks.end_former_secret)


def send_waiting(visit: SignedInVisit) -> Response:
    """Turn a webhook on, and send its waiting events."""
    now_ms = visit.context.now_ms()
    return _change_and_show(
        visit, "sent", "webhook.send", lambda c, webhook_id: webhooks.send_waiting(c, webhook_id, now_ms)
    )


def turn_off(visit: SignedInVisit) -> Response:
    """Stop sending to a webhook until somebody turns it on."""
    now_ms = visit.context.now_ms()
    return _change_and_show(
        visit, "off", "webhook.off", lambda c, webhook_id: webhooks.turn_off(c, webhook_id, "person", now_ms)
    )


def test(visit: SignedInVisit) -> Response:
    """Send a test now, and show its result."""
    now_ms = visit.context.now_ms()

    def prepare_test(connection: Connection) -> tuple[Webhook, str, tuple[str, ...]]:
        webhook = _webhook_with_audit_entry(visit, connection, "webhook.test")
        return webhook, identity(connection), webhooks.secrets_of(connection, webhook.webhook_id, now_ms)

    webhook, database_name, signing_secrets = _write(visit, prepare_test)
    body = {"schema": TEST_SCHEMA, "at": rfc3339(now_ms), "webhook": webhook.settings.name}
    message_id = f"{database_name}-test-{secrets.token_hex(8)}"
    message = WebhookMessage(message_id, json.dumps(body, ensure_ascii=False).encode(), signing_secrets)
    outcome = visit.context.courier.try_out(webhook.settings.url, message, now_ms / MS_PER_S)
    if outcome is None:
        raise PageError(HTTPStatus.CONFLICT, N_("Another test is being sent. Wait ten seconds, and try again."))
    return _page(visit, webhook, outcome=outcome)


def confirm_removal(visit: SignedInVisit) -> Response:
    """Show how many events would be removed, and ask for confirmation."""
    with visit.context.database.read_connection() as connection:
        return visit.page("webhook_remove.html", webhook=_webhook(visit, connection))


def remove(visit: SignedInVisit) -> Response:
    """Remove a webhook with the events that wait for it."""

    def remove_webhook(connection: Connection) -> None:
        webhook = _webhook(visit, connection)
        count = webhooks.remove(connection, webhook.webhook_id)
        visit.add_audit_entry(connection, "webhook.remove", subject=webhook.settings.name, why=f"{count} events")

    _write(visit, remove_webhook)
    return visit.redirect("/webhooks", done="removed")


def _list_page(visit: SignedInVisit, *, notice: str = "", refusal: PageError | None = None) -> Response:
    with visit.context.database.read_connection() as connection:
        known = webhooks.webhooks(connection)
    return visit.page(
        "webhooks.html",
        status=HTTPStatus.OK if refusal is None else refusal.status,
        rows=[row_of(visit.language, webhook) for webhook in known],
        is_full=len(known) >= WEBHOOKS_MAX,
        most=WEBHOOKS_MAX,
        notice=visit.language.gettext(notice) if notice else "",
        **_form_values(visit, WebhookFields(kinds=tuple(KINDS)), refusal),
    )


def _page(
    visit: SignedInVisit,
    webhook: Webhook,
    *,
    notice: str = "",
    secret: str = "",
    outcome: AttemptOutcome | None = None,
    refusal: PageError | None = None,
) -> Response:
    language, failure = visit.language, webhook.failure
    return visit.page(
        "webhook.html",
        status=HTTPStatus.OK if refusal is None else refusal.status,
        webhook=webhook,
        row=row_of(language, webhook),
        off=off_text(language, webhook),
        last=None if webhook.last_ms is None else report(language, webhook.last_status, webhook.last_why),
        failing=None if failure is None else report(language, failure.status, failure.error),
        tested=None if outcome is None else report(language, outcome.status, outcome.explanation),
        secret=secret,
        notice=language.gettext(notice) if notice else "",
        **_form_values(visit, fields_of(webhook.settings), refusal),
    )


def _form_values(visit: SignedInVisit, current: WebhookFields, refusal: PageError | None) -> dict[str, object]:
    """Return the values of the form: a refused form with the reason, otherwise the current settings."""
    return {
        "given": current if refusal is None else fields_in(visit.form),
        "conflict": "" if refusal is None else refusal.text(visit.language),
        "event_kinds": [(kind, visit.language.gettext(label)) for kind, label in KINDS.items()],
        "limits": {"name": NAME_CHARS_MAX, "url": URL_CHARS_MAX, "sources": SOURCES_CHARS_MAX},
    }


def _checked_settings(visit: SignedInVisit) -> WebhookSettings:
    """Return the settings in a form, with a URL that passed the check. Raises ``PageError``."""
    settings = settings_in(visit.form)
    try:
        visit.context.courier.check(settings.url)
    except RefusedEndpoint as error:
        why = sentence(visit.language, error.cause, error.detail)
        raise PageError(HTTPStatus.BAD_REQUEST, N_("Nothing was changed: %(why)s"), why=why) from error
    return settings


def _change_and_show(
    visit: SignedInVisit, done: str, action: str, work: Callable[[Connection, int], object]
) -> Response:
    """Change the webhook in the path, record that in the audit log, and show the webhook."""

    def change_webhook(connection: Connection) -> int:
        webhook_id = _webhook_with_audit_entry(visit, connection, action).webhook_id
        work(connection, webhook_id)
        return webhook_id

    return visit.redirect(f"/webhooks/{_write(visit, change_webhook)}", done=done)


def _webhook_with_audit_entry(visit: SignedInVisit, connection: Connection, action: str) -> Webhook:
    """Record an action on the webhook in the path, and return the webhook. Raises ``PageError``."""
    webhook = _webhook(visit, connection)
    visit.add_audit_entry(connection, action, subject=webhook.settings.name)
    return webhook


def _webhook(visit: SignedInVisit, connection: Connection) -> Webhook:
    try:
        return webhooks.webhook_numbered(connection, visit.path_parameters["webhook_id"])
    except webhooks.WebhookMissing as error:
        raise not_found() from error


def _write(visit: SignedInVisit, work: Callable[[Connection], _Result]) -> _Result:
    """Run a change of webhooks in a transaction. Raises ``PageError`` if it is refused."""
    try:
        return visit.context.database.write(work)
    except webhooks.WebhookMissing as error:
        raise not_found() from error
    except webhooks.WebhookTaken as error:
        message = N_("A webhook of this name already exists, perhaps with other capitals. Choose another name.")
        raise PageError(HTTPStatus.CONFLICT, message) from error
    except webhooks.WebhooksFull as error:
        message = N_("There are already %(most)s webhooks, which is the limit. Remove one first.")
        raise PageError(HTTPStatus.CONFLICT, message, most=WEBHOOKS_MAX) from error
