"""Notes on events: when they are sent, how often, and in which order."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

NOTES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "dead-letter": r"""
The `reason` is the first fault found: size, number of values, UTF-8 and JSON, depth, then the fields. Limits are
settings of [`[source]`](settings.md#source).

- `record_too_long`: over `record_bytes_max`
- `truncated_input`: gzip or zstd data ends early or is damaged, and the record is the beginning of the last line; or a
  quote of CSV or TSV on a stream is open
- `trailing_garbage`: something else follows complete gzip or zstd data, and was not read
- `invalid_utf8`: not UTF-8 (Latin-1, GBK, UTF-16); in CSV and TSV, not `source.encoding`
- `invalid_json`: not JSON, or more than one value: `{"id":"a","body":NaN}`
- `lone_surrogate`: an escape is half a surrogate pair: `{"id":"a","body":"\ud83d"}`
- `number_out_of_range`: a number is too large: `{"id":"a","body":"","published_at":1e400}`
- `nested_too_deep`: over `depth_max` levels, with the record itself:
  `{"id":"a","x":[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]}`
- `too_many_values`: over `values_max` objects, lists, members and items; with a schema, also over 10,000 more than the
  payload has bytes
- `not_an_object`: JSON, but not an object: `["a","text"]`
- `missing_id`: the id is missing or null: `{"body":"text"}`
- `id_wrong_type`: the id is neither string nor integer: `{"id":1.5,"body":"text"}`
- `empty_id`: the id is empty: `{"id":"","body":"text"}`
- `id_too_long`: over 512 bytes
- `missing_body`: the body is missing: `{"id":"a","text":"text"}`
- `body_wrong_type`: the body is neither string nor null: `{"id":"a","body":["text"]}`
- `body_too_long`: over `body_chars_max`, or a web page over `page_chars_max`
- `folded_too_long`: after folding (NFKC, case) over `folded_chars_max`, or over 10,000 characters and `fold_growth_max`
  times as long
- `markup_too_complex`: HTML elements over 2,048 deep, a tag with over `attributes_max` different attributes, or a web
  page with over `values_max` elements and attributes
- `field_wrong_type`: another field is of the wrong type: `{"id":"a","body":"text","title":7}`
- `field_too_long`: another field exceeds its limit:
  `{"id":"a","body":"","lang":"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"}`
- `nul_character`: a field has NUL: `{"id":"a","body":"te\u0000xt"}`
- `missing_key`: the key is the id, and is missing
- `invalid_key`: the key is not UTF-8
- `key_contradicts_id`: key and id differ
- `null_value`: no value, although the id should be in it (`kafka.id_from = "value"`)
- `no_schema_id`: Avro or Protobuf without a 0 and a schema's id at the beginning
- `unknown_schema`: the registry lacks the schema, or one that it refers to
- `unusable_schema`: of another type than `kafka.value_format`, broken, or text where Protobuf needs the binary form
- `schema_mismatch`: the payload does not fit the schema, or a row its header
- `unreadable_message`: the Kafka client cannot read it; the letter has what could be read
""",
        "near-miss": """
A pair is sent if it is at most `kafka.near_miss_margin` under the threshold. The sample depends only on id and content,
so all consumers and replays draw the same pairs. Near misses are not stored.
""",
        "bank-match": """
The key is the article's id. Files and streams get no bank match: they get the verdict, even with `--emit duplicates`. A
match with nothing but [busy items](banks.md#busy-items) is withheld.

`dupwatch bank scan --send` sends a `retroactive` match at least once for each article and item. A repeated match has
the same bytes and the same `ce_id`, unless the item was changed or the article released in between.
""",
        "story": """
Each change of a story is sent at least once, with the story after the change. The key is the id of the original. Events
of a story come in order, and `event` identifies repetitions. The `cause` says what has changed:

- `began`: the story has its first copy.
- `grew`: its copies have reached 10, 100, 1,000 and so on; each number is reported once.
- `flood`: it has become a [flood](#a-flood).
- `preferred`: another article represents it.
- `decided`: a person has decided about its last open copy. Standing decisions do not cause this event.
- `split`, `merged`: a person has split an article off, or merged the story into another one. An undone merge is a
  `split` without `member`, an undone split a `merged`.

A console whose database was lost numbers stories and events from 1 again, and sends events of all stories again. After
a restore from a backup, the numbers since that backup are used again, for other events.
""",
        "flood": """
A flood is sent at least once, and `flood` identifies repetitions. The key is the id of the original. Copies are counted
over all consumers. A flood that ended more than an hour before the console saw it is not sent.
""",
        "decision": """
When a decision is taken back or changed, another event with the same `review` says so. Decisions are not written to
topics or files.
""",
        "review": """
A line is a flag or a near miss, with the decision of a person about it. A `report` is a [copy that was
missed](evaluation.md#reported-copies): its decision is always `right`, and it is not drawn at random, so estimate
nothing from it. `split` and `merge` are [repairs of stories](console.md#stories), one line for each that is not undone;
`dupwatch evaluate` skips them. Earlier versions of dupwatch refuse lines of these three kinds. Other [entries of the
queue](console.md#other-entries) say nothing about thresholds, and are left out.
""",
        "decision-count": """
Lines are in the order of days. `?first=2026-11-01&last=2026-11-30` selects days in UTC, both included; the default is
the latest 30. `/decisions.csv` has the members as columns. There null is an empty cell, and a cell that a spreadsheet
could take for a formula begins with an apostrophe.
""",
        "export": """
There is a line for each version and tombstone of the store, in any order. [Row keys](../operate/row_keys.md) explains
names and posting keys. Members that depend on the store's secret are left out with `jieba-tfidf/3`.
""",
    }
)
"""Paragraphs in Markdown, by the name of the event's schema."""
