"""The application: all routes, and the layers around them."""

from collections.abc import Sequence
from typing import Final

from starlette.convertors import Convertor, register_url_convertor
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route as StarletteRoute
from starlette.routing import Router
from starlette.types import Receive, Scope, Send

from consumer.console.answering import ConsoleFront, OpenRoute, Route, RouteEndpoint
from consumer.console.authentication import Proxies, SessionAuthentication
from consumer.console.context import ConsoleContext
from consumer.console.faults import not_found
from consumer.console.form_pages import FormPages
from consumer.console.pages import (
    account_page,
    audit_pages,
    bank_items,
    bank_pages,
    deciding,
    flag_page,
    flagged_texts,
    item_matches,
    people_pages,
    queue_pages,
    reasons_page,
    signing_in,
    story_pages,
    thresholds_page,
)
from consumer.console.pages.bank_forms import ITEM_FORM_BYTES_MAX
from consumer.console.pages.decision_report import report_files
from consumer.console.pages.decision_report import report_page as decision_page
from consumer.console.pages.look_up import article_page, report_page, text_page
from consumer.console.pages.look_up.pasted_text import TEXT_FORM_BYTES_MAX
from consumer.console.pages.repairs import merge_page, split_page
from consumer.console.pages.sources import rank_forms
from consumer.console.pages.standing import standing_pages
from consumer.console.pages.webhooks import webhook_pages
from consumer.console.probes import Probes, probe_routes
from consumer.console.rendering import ICON, POLICY
from consumer.reviews.database import identity
from consumer.web.access import Access
from consumer.web.front import Front
from consumer.web.request_threads import Workers
from consumer.web.requests import CONSOLE, ICON_PATH

SECURITY_HEADERS: Final = {
    "cache-control": "no-store",
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    # With "no-referrer", browsers would not send the origin of a form either.
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}
"""Headers of every response: no foreign content, no framing, no caching, and no information for other sites."""

ROUTES: Final[Sequence[Route | OpenRoute]] = (
    OpenRoute("GET", "/sign-in", signing_in.show_form),
    OpenRoute("POST", "/sign-in", signing_in.sign_in),
    Route("POST", "/sign-out", "reviewer", signing_in.sign_out),
    Route("GET", "/", "reviewer", queue_pages.show_queue),
    Route("GET", "/flags", "reviewer", queue_pages.find_flag),
    Route("GET", "/queue/changes", "reviewer", queue_pages.show_changes, is_use=False),
    Route("GET", "/flags/{flag_id:int}", "reviewer", flag_page.show_flag),
    Route("GET", "/flags/{flag_id:int}/text/{side}", "reviewer", flag_page.show_text),
    Route("GET", "/flags/{flag_id:int}/next", "reviewer", deciding.show_next),
    Route("GET", "/flags/{flag_id:int}/leave", "reviewer", deciding.leave),
    Route("POST", "/flags/{flag_id:int}/leave", "reviewer", deciding.close, is_use=False),
    Route("POST", "/flags/decide", "reviewer", deciding.decide_selected),
    Route("POST", "/flags/undo", "reviewer", deciding.undo_selected),
    Route("POST", "/flags/{flag_id:int}/decide", "reviewer", deciding.decide),
    Route("POST", "/flags/{flag_id:int}/note", "reviewer", deciding.add_note),
    Route("POST", "/reviews/{review_id:int}/undo", "reviewer", deciding.undo),
    Route("GET", "/look-up", "reviewer", article_page.show_article),
    Route("GET", "/look-up/text", "reviewer", text_page.show_form),
    Route("POST", "/look-up/text", "reviewer", text_page.try_text, form_bytes_max=TEXT_FORM_BYTES_MAX),
    Route("GET", "/look-up/report", "reviewer", report_page.show_form),
    Route("POST", "/look-up/report", "reviewer", report_page.compare, form_bytes_max=TEXT_FORM_BYTES_MAX),
    Route("POST", "/reports", "reviewer", report_page.report, form_bytes_max=TEXT_FORM_BYTES_MAX),
    Route("GET", "/reports/{report_id:int}", "reviewer", report_page.show_report),
    Route("POST", "/reports/{report_id:int}/undo", "reviewer", report_page.undo),
    Route(
        "POST",
        "/reports/{report_id:int}/bank",
        "reviewer",
        flagged_texts.add_reported,
        of_banks=True,
        form_bytes_max=TEXT_FORM_BYTES_MAX,
    ),
    Route("GET", "/thresholds", "reviewer", thresholds_page.show_thresholds),
    Route("GET", "/decisions", "reviewer", decision_page.show_report),
    Route("GET", "/decisions.csv", "reviewer", report_files.export_csv),
    Route("GET", "/decisions.jsonl", "reviewer", report_files.export_json_lines),
    Route("GET", "/stories", "reviewer", story_pages.show_stories),
    Route("GET", "/stories/{story_id:int}", "reviewer", story_pages.show_story),
    Route("GET", "/sources", "reviewer", story_pages.show_sources),
    Route("POST", "/sources/ranks", "admin", rank_forms.set_named),
    Route("POST", "/sources/{source_id:int}/rank", "admin", rank_forms.change),
    Route("GET", "/stories/{story_id:int}/decide", "reviewer", deciding.confirm),
    Route("POST", "/stories/{story_id:int}/decide", "reviewer", deciding.decide_all),
    Route("POST", "/stories/{story_id:int}/undo", "reviewer", deciding.undo_all),
    Route("POST", "/stories/{story_id:int}/standing", "reviewer", standing_pages.begin_for_story),
    Route("POST", "/stories/{story_id:int}/bank", "admin", flagged_texts.add_original, of_banks=True),
    Route("GET", "/standing", "reviewer", standing_pages.show_standing),
    Route("GET", "/standing/mute", "reviewer", standing_pages.confirm_mute),
    Route("POST", "/standing/mute", "reviewer", standing_pages.mute),
    Route("POST", "/standing/{standing_id:int}/end", "reviewer", standing_pages.end),
    Route("GET", "/stories/{story_id:int}/merge", "reviewer", merge_page.confirm),
    Route("POST", "/stories/{story_id:int}/merge", "reviewer", merge_page.merge_stories),
    Route("POST", "/stories/{story_id:int}/unmerge", "reviewer", merge_page.undo),
    Route("GET", "/flags/{flag_id:int}/split", "reviewer", split_page.confirm),
    Route("POST", "/flags/{flag_id:int}/split", "reviewer", split_page.split_off),
    Route("POST", "/flags/{flag_id:int}/unsplit", "reviewer", split_page.undo),
    Route("POST", "/flags/{flag_id:int}/bank", "reviewer", flagged_texts.add_flagged, of_banks=True),
    Route("GET", "/banks", "reviewer", bank_pages.show_banks, of_banks=True),
    Route("POST", "/banks", "admin", bank_pages.create, of_banks=True),
    Route("GET", "/banks/{bank}", "reviewer", bank_items.show_bank, of_banks=True),
    Route("POST", "/banks/{bank}", "admin", bank_pages.change_bank, of_banks=True),
    Route("POST", "/banks/{bank}/enable", "admin", bank_pages.enable, of_banks=True),
    Route("POST", "/banks/{bank}/disable", "admin", bank_pages.disable, of_banks=True),
    Route("GET", "/banks/{bank}/remove", "admin", bank_pages.confirm_removal, of_banks=True),
    Route("POST", "/banks/{bank}/remove", "admin", bank_pages.remove, of_banks=True),
    Route(
        "POST",
        "/banks/{bank}/items",
        "reviewer",
        bank_items.add_item,
        of_banks=True,
        form_bytes_max=ITEM_FORM_BYTES_MAX,
    ),
    Route("GET", "/banks/{bank}/items/{item}", "reviewer", bank_items.show_item, of_banks=True),
    Route("POST", "/banks/{bank}/items/{item}", "reviewer", bank_items.change_item, of_banks=True),
    Route("POST", "/banks/{bank}/items/{item}/enable", "reviewer", bank_items.enable_item, of_banks=True),
    Route("POST", "/banks/{bank}/items/{item}/disable", "reviewer", bank_items.disable_item, of_banks=True),
    Route("POST", "/banks/{bank}/items/{item}/confirm", "admin", bank_items.confirm_item, of_banks=True),
    Route("POST", "/banks/{bank}/items/{item}/unconfirm", "admin", bank_items.unconfirm_item, of_banks=True),
    Route("GET", "/banks/{bank}/items/{item}/matches", "reviewer", item_matches.show_matches),
    Route("GET", "/banks/{bank}/items/{item}/release", "admin", item_matches.confirm_release),
    Route("POST", "/banks/{bank}/items/{item}/release", "admin", item_matches.release),
    Route("POST", "/banks/{bank}/items/{item}/undo", "admin", item_matches.undo),
    Route("POST", "/banks/{bank}/items/{item}/remove", "reviewer", bank_items.remove_item, of_banks=True),
    Route("GET", "/me", "reviewer", account_page.show_account),
    Route("POST", "/me/language", "reviewer", account_page.change_language),
    Route("POST", "/me/password", "reviewer", account_page.change_password),
    Route("GET", "/reasons", "admin", reasons_page.show_reasons),
    Route("POST", "/reasons", "admin", reasons_page.add),
    Route("POST", "/reasons/{reason_id:int}", "admin", reasons_page.change),
    Route("GET", "/webhooks", "reviewer", webhook_pages.show_webhooks),
    Route("POST", "/webhooks", "admin", webhook_pages.create),
    Route("GET", "/webhooks/{webhook_id:int}", "admin", webhook_pages.show_webhook),
    Route("POST", "/webhooks/{webhook_id:int}", "admin", webhook_pages.change),
    Route("POST", "/webhooks/{webhook_id:int}/test", "admin", webhook_pages.test),
    Route("POST", "/webhooks/{webhook_id:int}/send", "admin", webhook_pages.send_waiting),
    Route("POST", "/webhooks/{webhook_id:int}/off", "admin", webhook_pages.turn_off),
    Route("POST", "/webhooks/{webhook_id:int}/secret", "admin", webhook_pages.rotate),
    Route("POST", "/webhooks/{webhook_id:int}/former", "admin", webhook_pages.end_former_secret),
    Route("GET", "/webhooks/{webhook_id:int}/remove", "admin", webhook_pages.confirm_removal),
    Route("POST", "/webhooks/{webhook_id:int}/remove", "admin", webhook_pages.remove),
    Route("GET", "/people", "admin", people_pages.show_people),
    Route("POST", "/people/add", "admin", people_pages.add),
    Route("POST", "/people/{person_id:int}/disable", "admin", people_pages.disable),
    Route("POST", "/people/{person_id:int}/enable", "admin", people_pages.enable),
    Route("POST", "/people/{person_id:int}/role", "admin", people_pages.change_role),
    Route("POST", "/people/{person_id:int}/password", "admin", people_pages.give_password),
    Route("GET", "/audit", "admin", audit_pages.show_audit),
    Route("GET", "/audit.csv", "admin", audit_pages.export),
)
"""All pages with their roles. ``web.requests.CONSOLE`` also lists their paths, to count requests."""


def build_console(
    context: ConsoleContext, workers: Workers, probes: Probes, *, is_tls: bool = False, fixed_person: str | None = None
) -> Front:
    """Return the application. ``workers`` make the pages; the caller must close them.

    ``is_tls``: this process has a certificate. ``fixed_person``: nobody signs in, and everybody acts as that person;
    allowed only on loopback. Raises ``ConfigError`` and ``DatabaseUnavailable``.
    """
    proxies = Proxies(context.section.proxy_addresses)
    with context.database.read_connection() as connection:
        database_identity = identity(connection)
    pages = FormPages(route.path for route in ROUTES if route.method == "GET")
    console = ConsoleFront(
        context,
        workers,
        SessionAuthentication(context, proxies, fixed_person),
        proxies,
        is_tls,
        database_identity,
        pages,
    )

    async def not_found_page(scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        await console.error_page(request, console.visit(request), not_found())(scope, receive, send)

    async def icon(request: Request) -> Response:
        request.state.route = ICON_PATH
        return Response(ICON, media_type="image/svg+xml")

    paths = [
        StarletteRoute(_with_row_ids(path), RouteEndpoint(console, routes)) for path, routes in by_path(ROUTES).items()
    ]
    router = Router(
        [*paths, StarletteRoute(ICON_PATH, icon), *probe_routes(probes)], redirect_slashes=False, default=not_found_page
    )
    access = Access(names=context.section.names)
    return Front(router, CONSOLE, access, context.hooks, SECURITY_HEADERS, console.problem_page)


def by_path(routes: Sequence[Route | OpenRoute]) -> dict[str, list[Route | OpenRoute]]:
    """Return the routes by path, one for each method."""
    found: dict[str, list[Route | OpenRoute]] = {}
    for route in routes:
        found.setdefault(route.path, []).append(route)
    return found


class _RowId(Convertor[int]):
    """The id of a row in a path. Starlette's ``int`` accepts thousands of digits, which Python refuses to convert."""

    regex = "[0-9]{1,19}"

    def convert(self, value: str) -> int:
        return int(value)

    def to_string(self, value: int) -> str:
        return str(value)


_ROW_ID: Final = "dupwatch_row_id"
register_url_convertor(_ROW_ID, _RowId())


def _with_row_ids(path: str) -> str:
    return path.replace(":int}", f":{_ROW_ID}}}")
