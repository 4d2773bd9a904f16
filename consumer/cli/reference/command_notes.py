"""The notes in the reference of commands: the JSON that commands write, and exit codes."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

JSON_OUTPUT: Final[Mapping[str, str]] = MappingProxyType(
    {
        "dupwatch query": """
A file of one article is JSON over several lines, or plain text. It is plain text if its first lines have no JSON
object, even if it begins with `[` or `{`; an array of objects is refused. Standard input is
always read line by line, as JSON lines unless `source.format` is set.

Output: a line of JSON for each article.

- `outcome` (string): `duplicate`, `unique` or `error`
- `id`, `matches`, `truncated`, `ended_before`, `banks`: as in [verdicts](events.md#a-verdict-unique). There may be more
  than 5 `matches`, and each also has a `title`
- `seen_before`, `parts`: as in verdicts, with the same settings. A part also has `passages`, which are the same word
  for word in both texts: `at` (where the passage begins in this text) and `chars`; null if the store has no texts
- `text_kind` (string): how the text is compared, [as in checks](http_api.md#check)
- `line`, `error`, `detail`: only in errors: the line from 1, a reason as in [dead letters](events.md#a-dead-letter)
  (or `retraction`), and a sentence
""",
        "dupwatch show": """
`--json` writes a list: the requested version, then its originals up to the kept one.

- `id`, `version`, `title`, `source`, `url`, `lang`, `arrived_at`, `fingerprint`, `keywords`
- `ends_at`: when it was replaced or retracted
- `verdict`: the [event](events.md#a-verdict-unique), or null
- `retracted`: whether the id's latest message was a retraction
- `history`: the id's messages in order of arrival. Each has `kind` (`version` or `retraction`), `version`,
  `arrived_at`, `sequence`, and `origin`: where it came from, such as `articles:3:1200` or `feed.jsonl@1a2b3c4d:17`, or
  null. Versions also have `stretch` (how often their content had ended before), `title`, `ends_at`, `outcome` (null
  while pending), `duplicate_of`, `released`
- `passages`: only in the first entry: for each part of its verdict the `id`, the `version`, and `passages` as in
  `query`
""",
        "dupwatch explain": """
`--json` writes one object: `near`, every condition and figure, and

- `apart_ms`, `window_ms` (integer): the time between the two arrivals, and its maximum
- `a`, `b` (object): `id`, `version`, `arrived_at`, `ends_at` of both
- `other_settings` (list of strings): settings given that differ from the store's
- `difference` (list or null): every change; null if the store keeps no texts. `at_a` and `at_b` count characters from
  0, and `a` and `b` are the texts there. If `compared` is false, `a` and `b` may have text in common. If `moved` is
  true, `a` or `b` is empty, and the other one also occurs elsewhere in the other article, word for word
""",
    }
)
"""Descriptions of the JSON that commands read and write, as Markdown, by the name of the command."""

EXIT_CODES: Final = """
## Exit codes

| code | meaning |
|---|---|
| 0 | success; every record of a run got a verdict or a dead letter |
| 1 | a bug in the program, with a traceback; with a message: a worker was killed, or `demo`, `serve`, \
`console` or a run over topics hung while stopping; without one: `bank remove` was not confirmed |
| 2 | an invalid option, configuration or checkpoint; an unknown id or dead letter (`show`, `explain`, `release`, \
`dead-letters show`) |
| 3 | the input cannot be read, has another format than the command reads, or (`query`, `bank scan`) has no valid \
article; an unknown id (`query`); a wrong header or an open quote of [CSV or TSV](formats.md#csv-and-tsv) |
| 4 | the store was created with other settings (also those given to `query` or `store verify`), is not a store, or is \
damaged |
| 5 | the store failed: its disk is full, or it cannot be reached; or `store verify` found a fault or a dangling flag |
| 6 | verdicts or dead letters cannot be written; or (`topics init`) an existing topic has other settings |
| 7 | [too many records](formats.md#feeds-with-too-many-bad-records) of a file or a stream cannot be judged |
| 130, 143 | stopped by SIGINT or SIGTERM: the current batch was committed, or abandoned after `kafka.drain_s` |

A run over topics, `serve`, `console` and `demo` exit with 0 on SIGTERM and Ctrl-C, and `top` on Ctrl-C. `health` exits
with 1 if the consumer is not healthy. After codes 1 to 6 the current batch is not committed: the next run judges it
again, with the same verdicts. If standard error cannot be written, messages other than dead letters are lost silently.
"""
