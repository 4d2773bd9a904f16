"""What requests about banks and their answers contain. The OpenAPI document is made of these types."""

from datetime import datetime
from typing import Annotated, Literal

import msgspec

from consumer.banks.bank import ITEM_CHARS_MAX, LABELS_MAX, SIMILARITY_MIN, TITLE_CHARS_MAX, Action
from consumer.model.verdict import REASON_CHARS_MAX, Timestamp

ITEMS_MAX = 1_000
"""Items of one request, and of one page."""
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
    """All that a bank has, besides its name and its items. What is left out gets its default.

    ``deny`` reports articles that repeat an item, ``allow`` never flags them. The action of a bank never changes.
    ``similarity`` is how similar an article must be to items which have none of their own: by default 0.7. A bank that
    allows asks for 0.9 at least.
    """

    action: Action
    labels: _Labels = ()
    note: _Note = ""
    similarity: _Similarity | None = None
    enabled: bool = True


class NewItem(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An item to add, with either ``text``, or ``article``, the id of a stored article whose text is copied.

    Of an article, the title and the language are copied too, unless they are given. A text needs at least six letters
    or digits. ``item`` is the id, by default a digest of the text; an item that has the same id is replaced. The item
    ends at ``until``. ``similarity`` is by default that of the bank, and 0.9 at least where the bank allows.
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
    """The items to add, up to 1,000: all of them, or none."""

    items: Annotated[tuple[NewItem, ...], msgspec.Meta(min_length=1, max_length=ITEMS_MAX)]


class ItemPatch(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What to change of an item; what is left out stays as it is. Add the item again to change its text.

    With ``until`` null it never ends; with ``similarity`` null that of the bank counts. ``confirmed``, for admins
    alone, says that the item may match any share of the feed.
    """

    enabled: bool | msgspec.UnsetType = msgspec.UNSET
    confirmed: bool | msgspec.UnsetType = msgspec.UNSET
    title: _Title | msgspec.UnsetType = msgspec.UNSET
    labels: _Labels | msgspec.UnsetType = msgspec.UNSET
    note: _Note | msgspec.UnsetType = msgspec.UNSET
    until: _Until | msgspec.UnsetType | None = msgspec.UNSET
    similarity: _Similarity | msgspec.UnsetType | None = msgspec.UNSET


class BankSummary(msgspec.Struct, frozen=True, kw_only=True):
    """A bank, and how many items it has. ``by`` and ``at`` say who changed the bank itself last, and when."""

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
    """An item. ``similarity`` is null where that of the bank counts. ``text`` is there where it was asked for.

    ``confirmed`` says that an admin lets it match any share of the feed.
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

    ``form`` is how: the ``equal`` text, a ``similar`` one, or with the item as a ``part``. ``similarity``, from 0 to 1,
    is that of the two texts; of a part it is the share of the item that stands in the article.
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
    """The kept articles of the window that repeat an item, the most similar first, as far as a look-up finds them.

    ``truncated`` says that there may be more than are shown, or than could be compared. ``parts`` says whether longer
    articles that contain the item were looked for. ``without_text`` counts articles whose text the store does not keep,
    so that only the whole could be compared.
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
    """The items as they are now, in the order of the request, without their texts."""

    items: tuple[ItemSummary, ...]


class Removal(msgspec.Struct, frozen=True):
    """A bank or an item that is no longer there. ``existed`` is false if there was none; ``items`` were removed."""

    bank: str
    item: str | None
    existed: bool
    items: int
