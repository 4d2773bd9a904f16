"""The routes of banks of known texts, with their parameters and roles."""

from typing import Annotated, Final

from fastapi import APIRouter, Depends, Path, Query
from starlette.requests import Request
from starlette.responses import Response

from consumer.service import problems
from consumer.service.access import require_role
from consumer.service.bank_articles import item_articles, one_item
from consumer.service.bank_messages import ITEMS_MAX
from consumer.service.bank_reading import bank_item, bank_list, bank_page
from consumer.service.bank_writing import BankWrites
from consumer.service.context import ServiceContext
from consumer.service.openapi import BANK_EXAMPLE, ITEMS_EXAMPLE, PATCH_EXAMPLE, json_answer, json_body, problem_answers
from consumer.service.reading import article_id_in
from consumer.service.receiving import BodyReceiver
from consumer.service.routes import BODY_PROBLEMS, COMMON_PROBLEMS, json_response
from consumer.service.service_banks import ServiceBanks
from consumer.web.problems import BUSY, STORE

PAGE_ITEMS: Final = 100
"""The default number of items in a page."""
_BANKS: Final = "banks"
_READER: Final = [Depends(require_role("reader"))]
_ADMIN: Final = [Depends(require_role("admin"))]
_REVIEWER_OR_ADMIN: Final = [Depends(require_role("reviewer", "admin"))]
"""The action of the bank decides which role is needed: reviewer for a deny bank, admin for an allow bank."""
_READING_PROBLEMS: Final = (problems.NO_BANKS, problems.BANKS, *problems.ACCESS_PROBLEMS, BUSY, STORE)
_CHANGE_PROBLEMS: Final = (problems.INVALID_REQUEST, problems.OUTCOME_UNKNOWN, *_READING_PROBLEMS)
_REPETITION: Final = "Repeating the request has no further effect."

BankInPath = Annotated[
    str, Path(description="A bank's name.", json_schema_extra={"pattern": r"^[a-z0-9][a-z0-9._-]{0,63}$"})
]
ItemInPath = Annotated[
    str,
    Path(
        description="An item's id, percent-encoded.",
        json_schema_extra={"pattern": r"^[A-Za-z0-9][A-Za-z0-9._:-]{0,63}$"},
    ),
]
PageLimit = Annotated[int, Query(description="The maximum number of items.", ge=1, le=ITEMS_MAX)]
After = Annotated[str, Query(description="The id of an item. The page begins with the next one.", max_length=64)]
Texts = Annotated[bool, Query(description="Whether to include texts. Pages may then have fewer items.")]


def bank_reading_routes(banks: ServiceBanks, context: ServiceContext) -> APIRouter:
    """Return the routes that show banks, and which stored articles repeat their items."""
    router = APIRouter(prefix="/v1/banks", tags=[_BANKS], dependencies=_READER)

    @router.get(
        "",
        operation_id="list_banks",
        summary="All banks",
        responses=json_answer("BankList", "All banks, by name.") | problem_answers(*_READING_PROBLEMS),
    )
    async def list_banks(request: Request) -> Response:
        """Return all banks, and how many items each has."""
        return json_response(await banks.read(request, bank_list))

    @router.get(
        "/{bank}",
        operation_id="get_bank",
        summary="A bank and its items",
        responses=json_answer("BankPage", "The bank, and a page of its items.")
        | problem_answers(problems.UNKNOWN_BANK, problems.INVALID_REQUEST, *_READING_PROBLEMS),
    )
    async def show_bank(
        request: Request, bank: BankInPath, limit: PageLimit = PAGE_ITEMS, after: After = "", *, texts: Texts = False
    ) -> Response:
        """Return a bank and a page of its items. Pass ``next`` as ``after`` to get the next page."""
        name = article_id_in(bank)
        return json_response(await banks.read(request, lambda found: bank_page(found, name, limit, after, texts=texts)))

    @router.get(
        "/{bank}/items/{item}",
        operation_id="get_item",
        summary="An item with its text",
        responses=json_answer("ItemSummary", "The item.")
        | problem_answers(problems.UNKNOWN_BANK, problems.UNKNOWN_ITEM, problems.INVALID_REQUEST, *_READING_PROBLEMS),
    )
    async def show_item(request: Request, bank: BankInPath, item: ItemInPath) -> Response:
        """Return an item with its text."""
        names = article_id_in(bank), article_id_in(item)
        return json_response(await banks.read(request, lambda found: bank_item(found, *names)))

    @router.get(
        "/{bank}/items/{item}/articles",
        operation_id="get_item_articles",
        summary="The stored articles that repeat an item",
        responses=json_answer("ItemArticles", "At most 100 articles, the most similar first.")
        | problem_answers(
            problems.UNKNOWN_BANK, problems.UNKNOWN_ITEM, problems.INVALID_REQUEST, *_READING_PROBLEMS, *COMMON_PROBLEMS
        ),
    )
    async def show_articles(request: Request, bank: BankInPath, item: ItemInPath) -> Response:
        """Return the kept articles of the window that repeat an item, as far as a look-up finds them.

        An item that is disabled or has expired has no articles.
        """
        key = article_id_in(bank), article_id_in(item)
        only_item = await banks.read(request, lambda every: one_item(every, *key))
        return json_response(await context.ask(request, lambda service: item_articles(service, only_item, key)))

    return router


def bank_changing_routes(receiving: BodyReceiver, writes: BankWrites) -> APIRouter:
    """Return the routes that create, change and remove banks."""
    router = APIRouter(prefix="/v1/banks", tags=[_BANKS], dependencies=_ADMIN)

    @router.put(
        "/{bank}",
        operation_id="put_bank",
        summary="Create or change a bank",
        description=f"Create a bank, or replace its settings. Its items stay. {_REPETITION}",
        responses=json_answer("BankSummary", "The bank after the change.")
        | problem_answers(*BODY_PROBLEMS, problems.OTHER_ACTION, *_CHANGE_PROBLEMS),
        openapi_extra=json_body("BankSettings", BANK_EXAMPLE),
    )
    async def put(request: Request, bank: BankInPath) -> Response:
        name = article_id_in(bank)
        async with receiving.receive(request) as body:
            return json_response(await writes.put(request, name, body))

    @router.delete(
        "/{bank}",
        operation_id="remove_bank",
        summary="Remove a bank with its items",
        description=f"Remove a bank with its items. Verdicts that name its items do not change. {_REPETITION}",
        responses=json_answer("Removal", "What was removed.") | problem_answers(*_CHANGE_PROBLEMS),
    )
    async def remove(request: Request, bank: BankInPath) -> Response:
        return json_response(await writes.remove(request, article_id_in(bank)))

    return router


def item_routes(receiving: BodyReceiver, writes: BankWrites) -> APIRouter:
    """Return the routes that add, change and remove the items of banks."""
    router = APIRouter(prefix="/v1/banks/{bank}/items", tags=[_BANKS], dependencies=_REVIEWER_OR_ADMIN)

    @router.post(
        "",
        operation_id="add_items",
        summary="Add items to a bank",
        description=f"Add up to 1,000 items, all or none. They replace items with the same ids. {_REPETITION}",
        responses=json_answer("AddedItems", "The added items.")
        | problem_answers(
            *BODY_PROBLEMS, problems.UNKNOWN_BANK, problems.UNKNOWN_ARTICLE, *_CHANGE_PROBLEMS, *COMMON_PROBLEMS
        ),
        openapi_extra=json_body("NewItems", ITEMS_EXAMPLE),
    )
    async def add(request: Request, bank: BankInPath) -> Response:
        name = article_id_in(bank)
        async with receiving.receive(request) as body:
            return json_response(await writes.add(request, name, body))

    @router.patch(
        "/{item}",
        operation_id="change_item",
        summary="Change an item",
        description=f"Change an item, or enable or disable it. Only an admin may set `confirmed`. {_REPETITION}",
        responses=json_answer("ItemSummary", "The item after the change.")
        | problem_answers(*BODY_PROBLEMS, problems.UNKNOWN_BANK, problems.UNKNOWN_ITEM, *_CHANGE_PROBLEMS),
        openapi_extra=json_body("ItemPatch", PATCH_EXAMPLE),
    )
    async def patch(request: Request, bank: BankInPath, item: ItemInPath) -> Response:
        names = article_id_in(bank), article_id_in(item)
        async with receiving.receive(request) as body:
            return json_response(await writes.patch(request, *names, body))

    @router.delete(
        "/{item}",
        operation_id="remove_item",
        summary="Remove an item",
        description=f"Remove an item of a bank. {_REPETITION}",
        responses=json_answer("Removal", "What was removed.")
        | problem_answers(problems.UNKNOWN_BANK, *_CHANGE_PROBLEMS),
    )
    async def remove(request: Request, bank: BankInPath, item: ItemInPath) -> Response:
        return json_response(await writes.remove_item(request, article_id_in(bank), article_id_in(item)))

    return router
