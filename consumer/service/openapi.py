"""The OpenAPI document: the routes of FastAPI, with our own types and examples."""

from collections.abc import Sequence
from inspect import cleandoc
from typing import Any, Final

import msgspec
from fastapi import APIRouter, FastAPI
from fastapi.openapi.utils import get_openapi

from consumer.model.verdict import Verdict
from consumer.service import problems
from consumer.service.access import roles_of
from consumer.service.bank_messages import (
    AddedItems,
    BankList,
    BankPage,
    BankSettings,
    BankSummary,
    ItemArticles,
    ItemPatch,
    ItemSummary,
    NewItems,
    Removal,
)
from consumer.service.messages import (
    ArticleAnswer,
    CheckAnswer,
    CheckRequest,
    FailedArticle,
    ReleaseRequest,
    StatsAnswer,
    StoreRequest,
)
from consumer.web.probes import Readiness
from consumer.web.problems import CONTENT_TYPE, Problem, ProblemKind, type_of

_TOKEN: Final = "token"  # noqa: S105  # the name of a scheme
_REFERENCE: Final = "#/components/schemas/{name}"
_DESCRIPTION: Final = """Tells whether an article is nearly the same as an earlier one.

Errors are problem details (RFC 9457): `type` names the problem, `detail` says what to do."""
_MATCH: Final = {
    "id": "wire-1",
    "version": "0f7c9d1b6c1e4d0a8b9be1b0a4a5d2c3",
    "title": "Terminal opens",
    "url": "",
    "arrived_at": "2026-11-23T09:00:00.000Z",
    "distance": 4,
    "similarity": 0.83,
    "shared_keywords": ["ferry", "terminal"],
    "cluster": "wire-1",
}
_TEXT: Final = "The harbour council opened the new ferry terminal on Tuesday, said the mayor."
_OFFER: Final = "Ferry tickets at half the price: call the harbour today and pay by card."
"""Both texts are long enough to be compared by fingerprint and sketch."""
# FastAPI leaves out members that are null, so examples have none.
CHECK_EXAMPLE: Final = {
    "articles": [
        {"id": "blog-7", "body": _TEXT},
        {"id": "blog-8", "title": "Markets", "body": "Shares fell on Tuesday.", "lang": "en"},
    ]
}
CHECK_ANSWER_EXAMPLE: Final = {
    "results": [
        {
            "outcome": "duplicate",
            "id": "blog-7",
            "text_kind": "long",
            "truncated": False,
            "pending": False,
            "matches": [_MATCH],
            "matches_found": 1,
        },
        {"outcome": "unique", "id": "blog-8", "text_kind": "short", "truncated": False, "pending": False},
    ]
}
STORE_EXAMPLE: Final = {
    "articles": [
        {
            "id": "blog-9",
            "title": "Terminal opens",
            "body": _TEXT,
            "lang": "en",
        },
    ]
}
STORE_ANSWER_EXAMPLE: Final = {
    "results": [
        {
            "schema": "dupwatch.verdict/1",
            "id": "blog-9",
            "version": "0f7c9d1b6c1e4d0a8b9be1b0a4a5d2c4",
            "outcome": "duplicate",
            "duplicate_of": "wire-1",
            "duplicate_of_version": "0f7c9d1b6c1e4d0a8b9be1b0a4a5d2c3",
            "distance": 4,
            "similarity": 0.83,
            "cluster": "wire-1",
            "matches": [
                {"id": "wire-1", "version": "0f7c9d1b6c1e4d0a8b9be1b0a4a5d2c3", "distance": 4, "similarity": 0.83}
            ],
            "shared_keywords": ["ferry", "terminal"],
            "fingerprint": "9c6ad2a5b0cf0e71",
            "scheme": "jieba-tfidf/3+1f0c55b7",
            "truncated": False,
            "arrived_at": "2026-11-23T09:05:00.000Z",
            "decided_at": "2026-11-23T09:05:00.012Z",
            "source": "",
            "original_source": "wire",
        },
    ],
    "text_kinds": ["long"],
}
RELEASE_EXAMPLE: Final = {"by": "An Na", "reason": "It is the correction."}
BANK_EXAMPLE: Final = {"action": "deny", "labels": ["tickets"], "note": "campaigns since May"}
ITEMS_EXAMPLE: Final = {
    "items": [
        {"text": "Win a ferry ticket now: send your number to the harbour.", "note": "seen on Tuesday"},
        {"item": "offer-2", "text": _OFFER, "until": "2026-12-31T00:00:00Z"},
    ]
}
PATCH_EXAMPLE: Final = {"enabled": False, "note": "The campaign is over."}
_EXPLANATION: Final = "Explanation"
_STORE_ANSWER: Final = "StoreAnswer"
_OTHER_SCHEMAS: Final[dict[str, Any]] = {
    _EXPLANATION: {
        "type": "object",
        "description": "The output of `dupwatch explain --json`: every condition with its figures, and the difference.",
        "required": ["near"],
        "properties": {"near": {"type": "boolean"}},
    },
    # Answers contain verdict events as bytes from the store, so no type describes them.
    _STORE_ANSWER: {
        "type": "object",
        "description": "The verdict on each article, in the order of the request, and how each text is compared.",
        "required": ["results", "text_kinds"],
        "properties": {
            "text_kinds": {
                "type": "array",
                "description": "The `text_kind` of each article, as in a check, for example `long`; null for an error.",
                "items": {"type": ["string", "null"]},
            },
            "results": {
                "type": "array",
                "items": {
                    "oneOf": [{"$ref": _REFERENCE.format(name=kind.__name__)} for kind in (Verdict, FailedArticle)]
                },
            },
        },
    },
}


def json_answer(type_name: str, description: str, example: object = None) -> dict[int | str, dict[str, Any]]:
    """Return the description of an answer of this type."""
    content: dict[str, Any] = {"schema": {"$ref": _REFERENCE.format(name=type_name)}}
    if example is not None:
        content["example"] = example
    return {200: {"description": description, "content": {"application/json": content}}}


def explain_answer() -> dict[int | str, dict[str, Any]]:
    """Return the description of an explanation, whose members follow the conditions of the judge."""
    return json_answer(_EXPLANATION, "Every condition.")


def problem_answers(*kinds: ProblemKind) -> dict[int | str, dict[str, Any]]:
    """Return the descriptions of the problems of a route, by status."""
    return {
        status: {
            "description": ", or ".join(kind.title for kind in kinds if kind.status == status),
            "content": {CONTENT_TYPE: {"schema": {"$ref": _REFERENCE.format(name=Problem.__name__)}}},
        }
        for status in sorted({kind.status for kind in kinds})
    }


def json_body(type_name: str, example: object) -> dict[str, Any]:
    """Return the description of a request body of this type."""
    schema = {"$ref": _REFERENCE.format(name=type_name)}
    content = {"application/json": {"schema": schema, "example": example}}
    return {"requestBody": {"required": True, "content": content}}


def store_answer() -> dict[int | str, dict[str, Any]]:
    """Return the description of the answer to stored articles: their verdict events, as bytes from the store."""
    return json_answer(_STORE_ANSWER, "The verdict on each article, in their order.", STORE_ANSWER_EXAMPLE)


def _nullable(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a schema of one type or null with a list of types instead of ``anyOf``, and any other schema unchanged.

    OpenAPI Generator fails on two objects whose members have the same ``anyOf`` with null.
    """
    inner: dict[str, Any]
    inner, *others = schema.get("anyOf", [{}])
    if others != [{"type": "null"}] or not isinstance(inner.get("type"), str) or "enum" in inner:
        return schema
    rest = {name: value for name, value in schema.items() if name != "anyOf"}
    return inner | {"type": [inner["type"], "null"]} | rest


def document(app: FastAPI, routers: Sequence[APIRouter], *, needs_token: bool) -> dict[str, Any]:
    """Return the OpenAPI document of these routers. If tokens are needed, it names the roles of each route."""
    openapi = get_openapi(title=app.title, version=app.version, description=_DESCRIPTION, routes=app.routes)
    types = (
        CheckRequest, CheckAnswer, StoreRequest, FailedArticle, Verdict, ReleaseRequest, ArticleAnswer, StatsAnswer,
        BankSettings, BankSummary, BankList, BankPage, NewItems, AddedItems, ItemPatch, ItemSummary, Removal,
        ItemArticles, Readiness, Problem,
    )  # fmt: skip
    _, components = msgspec.json.schema_components(types, ref_template=_REFERENCE)
    for component in components.values():
        for name, schema in component.get("properties", {}).items():
            component["properties"][name] = _nullable(schema)
        component["description"] = cleandoc(component.get("description", "")).replace("``", "`")
    problem = components[Problem.__name__]
    problem["properties"]["type"]["enum"] = [type_of(kind) for kind in problems.KINDS]
    openapi["components"] = {"schemas": dict(sorted((components | _OTHER_SCHEMAS).items()))}
    if needs_token:
        openapi["components"]["securitySchemes"] = {_TOKEN: {"type": "http", "scheme": "bearer"}}
        for path, method, roles in roles_of(routers):
            openapi["paths"][path][method.lower()]["security"] = [{_TOKEN: [role]} for role in roles]
    return openapi
