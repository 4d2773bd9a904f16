"""The requests that servers answer, and the occurrences that servers report.

Metrics, spans and logs must not need a web framework, so this module imports none.
"""

from collections.abc import Mapping
from typing import Final, Literal, NamedTuple

HEAD_BYTES_MAX: Final = 32 * 1024
"""The maximum size of a request's head, so that many open requests do not fill the memory."""
ICON_PATH: Final = "/icon.svg"
"""The icon that browsers show next to the title of the console's pages."""
OTHER: Final = "other"
"""The label of requests with a path or a method that the server does not have."""

LimitName = Literal[
    "answer_s",
    "articles_max",
    "body_bytes_max",
    "body_chars_max",
    "connections_max",
    "depth_max",
    "fold_growth_max",
    "folded_chars_max",
    "head_bytes_max",
    "id_bytes_max",
    "inbox_bytes_max",
    "inbox_records_max",
    "items_max",
    "key_chars_max",
    "lang_chars_max",
    "page_chars_max",
    "receive_s",
    "received_bytes_max",
    "record_bytes_max",
    "requests_max",
    "send_s",
    "source_chars_max",
    "title_chars_max",
    "unread_bytes_max",
    "url_chars_max",
    "values_max",
    "waiting_max",
]
CheckOutcome = Literal["unique", "duplicate", "error"]


class HttpInterface(NamedTuple):
    """The path templates of a server, and the label of each method.

    ``section`` is the section of the configuration with the server's settings.
    """

    section: str
    paths: tuple[str, ...]
    methods: Mapping[str, str]

    @property
    def route_labels(self) -> tuple[str, ...]:
        """The values of the label ``route``."""
        return (*self.paths, OTHER)

    @property
    def method_labels(self) -> tuple[str, ...]:
        """The values of the label ``method``."""
        return (*dict.fromkeys(self.methods.values()), OTHER)

    def route_label(self, path: str | None) -> str:
        """Return the label of a request for this path; None means that no route matched."""
        return path if path in self.paths else OTHER

    def method_label(self, method: str) -> str:
        """Return the label of a request with this method."""
        return self.methods.get(method, OTHER)


SERVICE: Final = HttpInterface(
    "service",
    (
        "/v1/check",
        "/v1/articles",
        "/v1/articles/{id}",
        "/v1/articles/{id}/explain/{other}",
        "/v1/articles/{id}/release",
        "/v1/stats",
        "/v1/banks",
        "/v1/banks/{bank}",
        "/v1/banks/{bank}/items",
        "/v1/banks/{bank}/items/{item}",
        "/v1/banks/{bank}/items/{item}/articles",
        "/healthz",
        "/readyz",
        "/metrics",
        "/",
        "/docs",
        "/openapi.json",
    ),
    {method: method for method in ("GET", "POST", "PUT", "PATCH", "DELETE")},
)
CONSOLE: Final = HttpInterface(
    "console",
    (
        "/",
        "/flags",
        "/queue/changes",
        "/flags/decide",
        "/flags/undo",
        "/flags/{flag_id:int}",
        "/flags/{flag_id:int}/text/{side}",
        "/flags/{flag_id:int}/next",
        "/flags/{flag_id:int}/leave",
        "/flags/{flag_id:int}/decide",
        "/flags/{flag_id:int}/note",
        "/flags/{flag_id:int}/split",
        "/flags/{flag_id:int}/unsplit",
        "/flags/{flag_id:int}/bank",
        "/reviews/{review_id:int}/undo",
        "/look-up",
        "/look-up/text",
        "/look-up/report",
        "/reports",
        "/reports/{report_id:int}",
        "/reports/{report_id:int}/undo",
        "/reports/{report_id:int}/bank",
        "/stories",
        "/stories/{story_id:int}",
        "/stories/{story_id:int}/decide",
        "/stories/{story_id:int}/undo",
        "/stories/{story_id:int}/standing",
        "/stories/{story_id:int}/bank",
        "/standing",
        "/standing/mute",
        "/standing/{standing_id:int}/end",
        "/stories/{story_id:int}/merge",
        "/stories/{story_id:int}/unmerge",
        "/sources",
        "/sources/ranks",
        "/sources/{source_id:int}/rank",
        "/thresholds",
        "/decisions",
        "/decisions.csv",
        "/decisions.jsonl",
        "/banks",
        "/banks/{bank}",
        "/banks/{bank}/enable",
        "/banks/{bank}/disable",
        "/banks/{bank}/remove",
        "/banks/{bank}/items",
        "/banks/{bank}/items/{item}",
        "/banks/{bank}/items/{item}/enable",
        "/banks/{bank}/items/{item}/disable",
        "/banks/{bank}/items/{item}/confirm",
        "/banks/{bank}/items/{item}/unconfirm",
        "/banks/{bank}/items/{item}/remove",
        "/banks/{bank}/items/{item}/matches",
        "/banks/{bank}/items/{item}/release",
        "/banks/{bank}/items/{item}/undo",
        "/sign-in",
        "/sign-out",
        "/me",
        "/me/language",
        "/me/password",
        "/reasons",
        "/reasons/{reason_id:int}",
        "/webhooks",
        "/webhooks/{webhook_id:int}",
        "/webhooks/{webhook_id:int}/test",
        "/webhooks/{webhook_id:int}/send",
        "/webhooks/{webhook_id:int}/off",
        "/webhooks/{webhook_id:int}/secret",
        "/webhooks/{webhook_id:int}/former",
        "/webhooks/{webhook_id:int}/remove",
        "/people",
        "/people/add",
        "/people/{person_id:int}/disable",
        "/people/{person_id:int}/enable",
        "/people/{person_id:int}/role",
        "/people/{person_id:int}/password",
        "/audit",
        "/audit.csv",
        ICON_PATH,
        "/healthz",
        "/readyz",
        "/metrics",
    ),
    {"GET": "GET", "HEAD": "GET", "POST": "POST"},
)


class RequestStarted(NamedTuple):
    """The head of a request has arrived."""


class RequestEnded(NamedTuple):
    """A request was answered, or its client disconnected.

    ``route`` and ``method`` are labels of the server's interface. ``began_ns`` is in nanoseconds since 1970.
    ``trace_parent`` is the client's header ``traceparent``.
    """

    route: str
    method: str
    status: int
    began_ns: int
    seconds: float
    request_id: str
    trace_parent: str | None


class ConnectionsChanged(NamedTuple):
    """A connection was opened or closed. ``open`` is the number of open ones."""

    open: int


class LimitExceeded(NamedTuple):
    """A request, an article or a connection exceeded a limit."""

    limit: LimitName


class TextsChecked(NamedTuple):
    """A check gave this outcome to some of its texts; ``texts`` is their number."""

    outcome: CheckOutcome
    texts: int


class RequestFailed(NamedTuple):
    """A request for a consumer's page was not answered, or was answered only in part, or had wrong credentials."""
