"""The bodies of requests about banks, and of their answers. The OpenAPI document is generated from these types."""

from datetime import datetime
from typing import Annotated, Literal

import msgspec

from consumer.banks.bank import ITEM_CHARS_MAX, LABELS_MAX, SIMILARITY_MIN, TITLE_CHARS_MAX, Action
from consumer.model.verdict import REASON_CHARS_MAX, Timestamp

ITEMS_MAX = 1_000
"""The maximum number of items in a request and in a page."""
_NO_NUL = "^[^\\u0000]*$"
_ItemId = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9._:-]{0,63}$")]
_Text = Annotated[str, msgspec.Meta(max_length=ITEM_CHARS_MAX, pattern=_NO_NUL)]
_Article = Annotated[str, msgspec.Meta(min_length=1, max_length=512, pattern=_NO_NUL)]
_Title = Annotated[str, msgspec.Meta(max_length=TITLE_CHARS_MAX, pattern=_NO_NUL)]
_Lang = Annotated[str, msgspec.Meta(max_length=64, pattern=_NO_NUL)]
_Note = Annotated[str, msgspec.Meta(max_length=REASON_CHARS_MAX, pattern=_NO_NUL)]
_Labels = Annotated[
    tuple[Annotated[str, msgspec.Meta(pattern="^[^\\s\\u0000-\\u001f\\u007f-\\u009f]{1,64}$")], ...],
    msgspec.Meta(max_length=LABELS_MAX),
]
_Similarity = Annotated[float, msgspec.Meta(ge=SIMILARITY_MIN, le=1.0)]
_Until = Annotated[datetime, msgspec.Meta(tz=True)]


class BankSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The settings of a bank. Omitted members get their defaults.

    ``deny`` reports articles that repeat an item; ``allow`` never flags them. The action of a bank cannot be changed.
    ``similarity`` is the threshold for items without their own, by default 0.7. In an allow bank it must be at
    least 0.9.
    """

    action: Action
    labels: _Labels = ()
    note: _Note = ""
    similarity: _Similarity | None = None
    enabled: bool = True


class NewItem(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An item to add, with either ``text``, or ``article``, the id of a stored article whose text is copied.

    The title and the language of the article are copied, too, unless they are given. A text needs at least six letters
    or digits. ``item`` is the id, by default a digest of the text. An item with the same id is replaced. The item
    expires at ``until``. ``similarity`` is the threshold, by default that of the bank. In an allow bank it must be
    at least 0.9.
    """

    item: _ItemId | None = None
    text: _Text | None = None
    article: _Article | None = None
    title: _Title | None = None
    lang: _Lang | None = None
    labels: _Labels = ()
    note: _Note = ""
    until: _Until | None = None
    similarity: _Similarity | None = None
    enabled: bool = True


class NewItems(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The items to add, up to 1,000. Either all or none are added."""

    items: Annotated[tuple[NewItem, ...], msgspec.Meta(min_length=1, max_length=ITEMS_MAX)]


class ItemPatch(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Changes to an item. Omitted members stay unchanged. To change the text, add the item again.

    With ``until`` null the item never expires; with ``similarity`` null it uses the threshold of the bank.
    ``confirmed`` lets the item match any share of the feed; only admins may set it.
    """

    enabled: bool | msgspec.UnsetType = msgspec.UNSET
    confirmed: bool | msgspec.UnsetType = msgspec.UNSET
    title: _Title | msgspec.UnsetType = msgspec.UNSET
    labels: _Labels | msgspec.UnsetType = msgspec.UNSET
    note: _Note | msgspec.UnsetType = msgspec.UNSET
    until: _Until | msgspec.UnsetType | None = msgspec.UNSET
    similarity: _Similarity | msgspec.UnsetType | None = msgspec.UNSET


class BankSummary(msgspec.Struct, frozen=True, kw_only=True):
    """A bank and its number of ``items``. ``by`` and ``at`` say who last changed the bank itself, and when."""

    bank: str
    action: Action
    items: int
    enabled: bool
    similarity: float
    labels: tuple[str, ...]
    note: str
    by: str
    at: Timestamp | None


class BankList(msgspec.Struct, frozen=True):
    """All banks, by name."""

    banks: tuple[BankSummary, ...]


class ItemSummary(msgspec.Struct, frozen=True, kw_only=True):
    """An item. ``similarity`` is null if the item uses the bank's. ``text`` is present only if requested.

    ``confirmed`` says that an admin lets the item match any share of the feed.
    """

    bank: str
    item: str
    title: str
    lang: str
    labels: tuple[str, ...]
    note: str
    article: str | None
    until: Timestamp | None
    similarity: float | None
    enabled: bool
    confirmed: bool
    by: str
    at: Timestamp | None
    text: str | msgspec.UnsetType = msgspec.UNSET


class ItemArticle(msgspec.Struct, frozen=True, kw_only=True):
    """A stored article that repeats an item.

    ``form`` says how: the texts are ``equal`` or ``similar``, or the item is a ``part`` of the article. ``similarity``
    is from 0 to 1. For a part it is the share of the item that the article contains.
    """

    id: str
    version: str
    title: str
    source: str
    url: str
    arrived_at: Timestamp
    form: Literal["equal", "similar", "part"]
    similarity: float


class ItemArticles(msgspec.Struct, frozen=True, kw_only=True):
    """The kept articles of the window that repeat an item, as far as a look-up finds them; the most similar first.

    ``truncated`` says that there may be more articles than are shown or could be compared. ``parts`` says whether the
    search included longer articles that contain the item. ``without_text`` counts articles whose text the store does
    not keep; these were compared only as a whole.
    """

    bank: str
    item: str
    articles: tuple[ItemArticle, ...]
    truncated: bool
    parts: bool
    without_text: int


class BankPage(msgspec.Struct, frozen=True):
    """A bank and a page of its items, by id. ``next`` is the value of ``after`` for the next page, null at the end."""

    bank: BankSummary
    items: tuple[ItemSummary, ...]
    next: str | None


class AddedItems(msgspec.Struct, frozen=True):
    """The added items in the order of the request, without their texts."""

    items: tuple[ItemSummary, ...]


class Removal(msgspec.Struct, frozen=True):
    """A removed bank or item. ``existed`` is false if it did not exist. ``items`` is the number of removed items."""

    bank: str
    item: str | None
    existed: bool
    items: int
