"""The feed: verdicts, sources, floods, similarity and drift."""

from typing import Final

from deploy.grafana.panels import Dashboard, Panel, Query, Row, Step, heatmap, mean, stat

_SHARE: Final = (
    'sum(rate(dupwatch_articles_total{$of, outcome="duplicate"}[%s]))'
    ' / sum(rate(dupwatch_articles_total{$of, outcome!="retracted"}[%s]))'
)
_KEYWORDS: Final = mean("dupwatch_article_keywords", "1h")
_SIMILARITY: Final = mean("dupwatch_duplicate_similarity_ratio", "1h")


def _a_week_ago(expr: str) -> str:
    return expr.replace("[1h]", "[1h] offset 1w")


def _of_articles(counted: str, window: str = "$__rate_interval") -> str:
    return f"sum(rate({counted}{{$of}}[{window}])) / sum(rate(dupwatch_articles_total{{$of}}[{window}]))"


_NOW: Final = Row(
    "Now",
    (
        stat("Articles", "Judged per second.", "sum(rate(dupwatch_articles_total{$of}[5m]))", "suffix:/s"),
        stat(
            "Duplicates",
            "Share of the articles in the last hour that were flagged.",
            _SHARE % ("1h", "1h"),
            "percentunit",
            runbooks=("feed-drift",),
        ),
        stat(
            "Flood copies",
            "Share of the articles that are copy number 100 or later of an original.",
            _of_articles("dupwatch_flood_copies_total", "15m"),
            "percentunit",
            steps=(Step(0.1, "orange"),),
            runbooks=("flood",),
        ),
        stat(
            "Without keywords",
            "Share of the articles that match nothing.",
            _of_articles("dupwatch_articles_without_keywords_total", "15m"),
            "percentunit",
            steps=(Step(0.05, "orange"),),
            runbooks=("articles-without-keywords",),
        ),
        stat(
            "Sources",
            'Different sources in the last hour; "other" counts as one.',
            "count(sum by (source) (increase(dupwatch_source_articles_total{$of}[1h])) > 0)",
        ),
        stat(
            "Dead letters",
            "Records in the last hour that could not be judged.",
            "sum(increase(dupwatch_dead_letters_total{$of}[1h]))",
            steps=(Step(1, "yellow"),),
            runbooks=("dead-letters", "dead-letters#DupwatchDeadLetterShare"),
        ),
    ),
)

_VERDICTS: Final = Row(
    "Verdicts",
    (
        Panel(
            title="Articles by outcome",
            about="Judged per second.",
            queries=(Query("sum by (outcome) (rate(dupwatch_articles_total{$of}[$__rate_interval]))", "{{outcome}}"),),
            unit="suffix:/s",
            stacked=True,
        ),
        Panel(
            title="Share of duplicates",
            about="Over an hour, compared with a week ago.",
            queries=(
                Query(_SHARE % ("1h", "1h"), "this hour"),
                Query(_a_week_ago(_SHARE % ("1h", "1h")), "a week ago"),
            ),
            unit="percentunit",
            share=True,
            runbooks=("feed-drift",),
        ),
        Panel(
            title="Copies and near duplicates",
            about="Copies have the same fingerprint and similarity 1. All other duplicates are near.",
            queries=(Query("sum by (kind) (rate(dupwatch_duplicates_total{$of}[$__rate_interval]))", "{{kind}}"),),
            unit="suffix:/s",
            stacked=True,
        ),
    ),
)

_SOURCES: Final = Row(
    "Sources",
    (
        Panel(
            title="Articles by source",
            about="The ten sources with the most articles.",
            queries=(
                Query(
                    "topk(10, sum by (source) (rate(dupwatch_source_articles_total{$of}[$__rate_interval])))",
                    "{{source}}",
                ),
            ),
            unit="suffix:/s",
        ),
        Panel(
            title="Duplicates by source",
            about="The ten sources with the most duplicates.",
            queries=(
                Query(
                    "topk(10, sum by (source) "
                    '(rate(dupwatch_source_articles_total{$of, outcome="duplicate"}[$__rate_interval])))',
                    "{{source}}",
                ),
            ),
            unit="suffix:/s",
            runbooks=("flood", "feed-drift"),
        ),
        Panel(
            title="The last hour, by source",
            about="Articles, and the share of them that was flagged.",
            queries=(
                Query("sum by (source) (increase(dupwatch_source_articles_total{$of}[1h]))", "articles"),
                Query(
                    'sum by (source) (increase(dupwatch_source_articles_total{$of, outcome="duplicate"}[1h]))'
                    " / (sum by (source) (increase(dupwatch_source_articles_total{$of}[1h])) > 0)",
                    "share of duplicates",
                ),
            ),
            kind="table",
        ),
    ),
)

_BANKS: Final = Row(
    "Banks",
    (
        Panel(
            title="Matches of banks",
            about="Items that articles repeat, per second; the ten banks with the most matches.",
            queries=(
                Query(
                    "topk(10, sum by (bank, action) (rate(dupwatch_bank_matches_total{$of}[$__rate_interval])))",
                    "{{bank}} ({{action}})",
                ),
            ),
            unit="suffix:/s",
        ),
        Panel(
            title="Items of banks",
            about="Items that articles are compared with, by consumer. All consumers should have the same number.",
            queries=(Query("max by (instance) (dupwatch_bank_items{$of})", "{{instance}}"),),
        ),
        Panel(
            title="Banks used only in part",
            about="Failed reads, invalid entries, and articles with more matches than are looked at.",
            queries=(
                Query("sum(increase(dupwatch_bank_failures_total{$of}[$__rate_interval]))", "failed reads"),
                Query("sum(increase(dupwatch_bank_entries_invalid_total{$of}[$__rate_interval]))", "invalid entries"),
                Query("sum(increase(dupwatch_bank_matches_limited_total{$of}[$__rate_interval]))", "limited articles"),
            ),
        ),
        Panel(
            title="Busy items of banks",
            about="Unconfirmed items that match more than banks.busy_share of the articles at some consumer.",
            queries=(Query("max by (bank, action) (dupwatch_bank_items_busy{$of})", "{{bank}} ({{action}})"),),
            steps=(Step(1, "orange"),),
            runbooks=("bank-items-busy",),
        ),
        Panel(
            title="Bank matches withheld",
            about="Matches withheld because only busy items cause them, per second; the ten banks with the most.",
            queries=(
                Query(
                    "topk(10, sum by (bank) (rate(dupwatch_bank_matches_withheld_total{$of}[$__rate_interval])))",
                    "{{bank}}",
                ),
            ),
            unit="suffix:/s",
            runbooks=("bank-items-busy",),
        ),
        Panel(
            title="Items of banks without a match",
            about="Items without a match since the consumer started. After weeks, such an item may not be needed.",
            queries=(Query("max by (instance) (dupwatch_bank_items_unmatched{$of})", "{{instance}}"),),
        ),
    ),
)

_FLOODS: Final = Row(
    "Floods",
    (
        Panel(
            title="Share of flood copies",
            about="Copies of originals that already had 99 copies, as a share of all articles.",
            queries=(Query(_of_articles("dupwatch_flood_copies_total"), "flood copies"),),
            unit="percentunit",
            share=True,
            steps=(Step(0.1, "orange"),),
            runbooks=("flood",),
        ),
        Panel(
            title="New floods",
            about="Originals whose 100th copy arrived.",
            queries=(Query("sum(increase(dupwatch_floods_total{$of}[$__rate_interval]))", "floods"),),
            runbooks=("flood",),
        ),
        Panel(
            title="Duplicates of known originals",
            about="Share of the articles settled without writing postings, which keeps a flood cheap.",
            queries=(Query(_of_articles("dupwatch_known_copies_total"), "known copies"),),
            unit="percentunit",
            share=True,
        ),
    ),
)

_SIMILARITIES: Final = Row(
    "Similarity of duplicates",
    (
        heatmap(
            "Similarity of duplicates",
            "Similarity of a duplicate to its original.",
            "dupwatch_duplicate_similarity_ratio",
            "percentunit",
            runbooks=("feed-drift",),
        ),
        heatmap(
            "Distance of duplicates",
            "Number of fingerprint bits that differ from the original.",
            "dupwatch_duplicate_distance",
        ),
        heatmap(
            "Similarity of compared pairs",
            "All pairs. Many pairs just below the threshold mean templates, or a threshold that is too high.",
            "dupwatch_compared_similarity_ratio",
            "percentunit",
        ),
    ),
)

_DRIFT: Final = Row(
    "Drift",
    (
        heatmap(
            "Keywords of articles",
            "Distinct keywords of an article.",
            "dupwatch_article_keywords",
            runbooks=("feed-drift#DupwatchKeywordsDrift",),
        ),
        Panel(
            title="Mean keywords",
            about="Over an hour, compared with a week ago.",
            queries=(Query(_KEYWORDS, "this hour"), Query(_a_week_ago(_KEYWORDS), "a week ago")),
            runbooks=("feed-drift#DupwatchKeywordsDrift",),
        ),
        Panel(
            title="Mean similarity of duplicates",
            about="Over an hour, compared with a week ago.",
            queries=(Query(_SIMILARITY, "this hour"), Query(_a_week_ago(_SIMILARITY), "a week ago")),
            unit="percentunit",
            share=True,
            runbooks=("feed-drift",),
        ),
        Panel(
            title="Articles without keywords",
            about="They match nothing and are kept.",
            queries=(Query(_of_articles("dupwatch_articles_without_keywords_total"), "without keywords"),),
            unit="percentunit",
            share=True,
            steps=(Step(0.05, "orange"),),
            width=12,
            runbooks=("articles-without-keywords",),
        ),
        Panel(
            title="Texts that came back",
            about="Articles whose text was seen before the window, flagged or not. Needs judge.seen_days.",
            queries=(Query(_of_articles("dupwatch_seen_before_total"), "seen before"),),
            unit="percentunit",
            share=True,
            width=12,
        ),
        Panel(
            title="Retracted texts that return",
            about="Articles kept although they repeat an earlier text of another id, which was retracted or replaced.",
            queries=(Query(_of_articles("dupwatch_ended_before_total"), "ended before"),),
            unit="percentunit",
            share=True,
            steps=(Step(0.01, "orange"),),
            width=12,
            runbooks=("retracted-texts-return",),
        ),
        Panel(
            title="Near misses",
            about="Kept articles for which a pair just under the threshold was sent. Needs kafka.near_miss_share.",
            queries=(Query(_of_articles("dupwatch_near_misses_total"), "near misses"),),
            unit="percentunit",
            share=True,
            width=12,
        ),
        Panel(
            title="Parts",
            about="Articles that share a long stretch with an earlier one. Needs judge.parts.",
            queries=(Query(_of_articles("dupwatch_with_parts_total"), "with parts"),),
            unit="percentunit",
            share=True,
            width=12,
        ),
        Panel(
            title="Looking for parts",
            about="Per article: rows and postings of anchors read, and anchors left out as too common.",
            queries=(
                Query(_of_articles("dupwatch_part_row_reads_total"), "rows"),
                Query(_of_articles("dupwatch_part_postings_read_total"), "postings"),
                Query(_of_articles("dupwatch_common_anchors_total"), "common anchors"),
            ),
            width=12,
        ),
        Panel(
            title="Record times replaced",
            about="Shares of all articles: record times that were missing or impossible, far behind their partition, "
            "or moved into a header; records with headers that the client cannot read; unreadable published_at.",
            queries=(
                Query(_of_articles("dupwatch_record_times_replaced_total"), "replaced"),
                Query(_of_articles("dupwatch_record_times_behind_total"), "behind"),
                Query(_of_articles("dupwatch_record_times_moved_total"), "moved into a header"),
                Query(_of_articles("dupwatch_records_headers_lost_total"), "headers lost"),
                Query(_of_articles("dupwatch_published_at_unread_total"), "published_at unread"),
            ),
            unit="percentunit",
            share=True,
            steps=(Step(0.01, "orange"),),
            width=12,
            runbooks=("record-times-replaced",),
        ),
        Panel(
            title="Web pages",
            about="Shares of the pages from which the article or the whole text was taken, and share of all articles "
            "whose markup has no text.",
            queries=(
                Query(
                    "sum by (extracted) (rate(dupwatch_pages_total{$of}[$__rate_interval]))"
                    " / ignoring (extracted) group_left () sum(rate(dupwatch_pages_total{$of}[$__rate_interval]))",
                    "{{extracted}}",
                ),
                Query(_of_articles("dupwatch_without_text_total"), "no text"),
            ),
            unit="percentunit",
            share=True,
            width=12,
        ),
    ),
)

FEED: Final = Dashboard(
    "feed",
    "dupwatch: feed",
    "Articles and their verdicts: duplicates by source, floods, similarity, drift.",
    (_NOW, _VERDICTS, _SOURCES, _BANKS, _FLOODS, _SIMILARITIES, _DRIFT),
)
