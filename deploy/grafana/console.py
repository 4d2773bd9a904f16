"""The moderators' console: what waits for people, what they decide, and whether flags come in and releases go out."""

from typing import Final

from deploy.grafana.panels import Dashboard, Panel, Query, Row, Step, quantiles, stat

_OPEN: Final = 'max(dupwatch_console_flags{$of, state="open"})'

_NOW: Final = Row(
    "Now",
    (
        stat("Open flags", "Flags that nobody has decided on.", _OPEN, runbooks=("console-flags-unreviewed",)),
        stat(
            "Oldest open flag",
            "Time since its article arrived.",
            "max(dupwatch_console_oldest_open_flag_seconds{$of})",
            "s",
            steps=(Step(86_400, "orange"),),
            runbooks=("console-flags-unreviewed",),
        ),
        stat(
            "Releases due",
            "Final decisions whose release has not been sent yet.",
            "max(dupwatch_console_releases_due{$of})",
            runbooks=("console-releases-waiting",),
        ),
        stat(
            "Other entries to look at",
            "Near misses, repeats of retracted articles, and bank matches.",
            'sum(max by (kind) (dupwatch_console_open_entries{$of, kind!="flag"}))',
        ),
        stat(
            "Flags not indexed yet",
            "Flags that a search finds only by id and source, not yet by words of their texts.",
            "max(dupwatch_console_search_waiting_flags{$of})",
        ),
    ),
)

_PEOPLE: Final = Row(
    "Decisions",
    (
        Panel(
            title="Flags by state",
            about="Flags of the whole queue. Every process of a console counts the same database.",
            queries=(Query("max by (state) (dupwatch_console_flags{$of})", "{{state}}"),),
            runbooks=("console-flags-unreviewed",),
        ),
        Panel(
            title="Open entries by kind",
            about="Entries without a decision: flags, near misses, repeats of retracted articles, and bank matches.",
            queries=(Query("max by (kind) (dupwatch_console_open_entries{$of})", "{{kind}}"),),
        ),
        Panel(
            title="Decisions",
            about="Flags decided per hour, by decision and decider: a person, or a standing decision.",
            queries=(
                Query(
                    "sum by (decision, decider) (increase(dupwatch_console_decisions_total{$of}[1h]))",
                    "{{decision}}, {{decider}}",
                ),
            ),
            stacked=True,
        ),
        Panel(
            title="Standing decisions in force",
            about="Stories whose further copies are right, and pairs of sources that are muted.",
            queries=(Query("max by (about) (dupwatch_console_standing_decisions{$of})", "{{about}}"),),
        ),
        Panel(
            title="Releases",
            about="Releases sent or refused for good, per hour.",
            queries=(Query("sum by (outcome) (increase(dupwatch_console_releases_total{$of}[1h]))", "{{outcome}}"),),
            runbooks=("console-releases-waiting",),
        ),
    ),
)

_INTAKE: Final = Row(
    "What comes in",
    (
        Panel(
            title="Events taken in",
            about="Events read from the sink, per second, by kind.",
            queries=(Query("sum by (kind) (rate(dupwatch_console_events_total{$of}[$__rate_interval]))", "{{kind}}"),),
            unit="suffix:/s",
            stacked=True,
            runbooks=("console-behind",),
        ),
        Panel(
            title="Records that were skipped",
            about="Records that are invalid for their topic or file, by reason. The log says where they are.",
            queries=(
                Query(
                    "sum by (reason) (increase(dupwatch_console_events_skipped_total{$of}[$__rate_interval])) > 0",
                    "{{reason}}",
                ),
            ),
        ),
        Panel(
            title="Floods seen",
            about="Stories that got many copies within a short time, over all consumers, per hour.",
            queries=(Query("sum(increase(dupwatch_console_floods_total{$of}[1h]))", "floods"),),
            runbooks=("flood",),
        ),
        Panel(
            title="What the console reaches",
            about="Its database, the store, and the brokers as source of flags and as sink of releases.",
            queries=(Query("max by (instance, part) (dupwatch_unreachable{$of})", "{{instance}} {{part}}"),),
            kind="state-timeline",
            steps=(Step(1, "red"),),
            texts=((0, "reachable", "green"), (1, "unreachable", "red")),
            runbooks=("console-cut-off",),
        ),
    ),
)

_EVENTS: Final = Row(
    "What goes out",
    (
        Panel(
            title="Events that wait",
            about="Events that wait for the sink or a webhook: at most console.outbox_events_max for each receiver.",
            queries=(Query("max by (receiver) (dupwatch_console_outbox_events{$of})", "{{receiver}}"),),
            runbooks=("console-events#DupwatchConsoleOutboxWaits",),
        ),
        Panel(
            title="Age of the oldest event",
            about="How long the oldest event has waited, by receiver.",
            queries=(Query("max by (receiver) (dupwatch_console_outbox_oldest_seconds{$of})", "{{receiver}}"),),
            unit="s",
            runbooks=("console-events#DupwatchConsoleOutboxWaits",),
        ),
        Panel(
            title="Events sent",
            about="Events on stories and floods sent to the sink, per second, by kind.",
            queries=(
                Query("sum by (kind) (rate(dupwatch_console_events_sent_total{$of}[$__rate_interval]))", "{{kind}}"),
            ),
            unit="suffix:/s",
            stacked=True,
            runbooks=("console-events#DupwatchConsoleOutboxWaits",),
        ),
        Panel(
            title="Events that were not kept",
            about="Events dropped because too many waited for the same receiver, per hour.",
            queries=(
                Query("sum by (receiver) (increase(dupwatch_console_events_missed_total{$of}[1h]))", "{{receiver}}"),
            ),
            runbooks=("console-events#DupwatchConsoleEventsMissed",),
        ),
    ),
)

_WEBHOOKS: Final = Row(
    "Webhooks",
    (
        stat(
            "Webhooks that are off",
            "Webhooks that the console has turned off: deliveries failed for a day, or the receiver answered 410 Gone.",
            "max(dupwatch_console_webhooks_off{$of})",
            steps=(Step(1, "red"),),
            runbooks=("console-webhooks#DupwatchConsoleWebhookOff",),
        ),
        stat(
            "Oldest event that waits",
            "How long an event has waited for a webhook that is on.",
            "max(dupwatch_console_webhook_oldest_waiting_seconds{$of})",
            "s",
            steps=(Step(7_200, "orange"),),
            runbooks=("console-webhooks#DupwatchConsoleWebhooksBehind",),
        ),
        Panel(
            title="Deliveries to webhooks",
            about="Attempts per second, by outcome.",
            queries=(
                Query(
                    "sum by (outcome) (rate(dupwatch_console_webhook_deliveries_total{$of}[$__rate_interval]))",
                    "{{outcome}}",
                ),
            ),
            unit="suffix:/s",
            stacked=True,
            runbooks=("console-webhooks#DupwatchConsoleWebhookOff", "console-webhooks#DupwatchConsoleWebhooksBehind"),
        ),
    ),
)

_PAGES: Final = Row(
    "Pages",
    (
        Panel(
            title="Requests to the console",
            about="Requests per second, by method and status.",
            queries=(
                Query(
                    "sum by (method, status) (rate(dupwatch_console_requests_total{$of}[$__rate_interval])) > 0",
                    "{{method}} {{status}}",
                ),
            ),
            unit="suffix:/s",
            stacked=True,
        ),
        Panel(
            title="Duration of pages",
            about="From the head of a request to the end of its answer, by route.",
            queries=quantiles("dupwatch_console_request_seconds", "route"),
            unit="s",
        ),
        Panel(
            title="Failed attempts to sign in",
            about="Failed attempts per hour. After console.failures_max of them, a name or an address must wait.",
            queries=(Query("sum(increase(dupwatch_console_sign_in_failures_total{$of}[1h]))", "attempts"),),
        ),
    ),
)

CONSOLE: Final = Dashboard(
    "console",
    "dupwatch: moderators' console",
    "What waits for people, what they decide, and whether flags come in and releases go out.",
    (_NOW, _PEOPLE, _INTAKE, _EVENTS, _WEBHOOKS, _PAGES),
    listed_by="dupwatch_console_releases_due",
)
