"""The front page and the reference of the routes, as HTML without scripts. Both are made from the OpenAPI document."""

import hashlib
import json
import re
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping
from html import escape
from typing import Any, Final

_STYLE: Final = """
:root { color-scheme: light dark; }
body { max-width: 60rem; margin: 2rem auto; padding: 0 1rem; font: 1rem/1.5 system-ui, sans-serif; }
h2 { margin-top: 2.5rem; border-top: 1px solid #8888; padding-top: 1rem; }
code, pre { font-family: ui-monospace, monospace; font-size: 0.9em; overflow-wrap: break-word; }
pre { white-space: pre-wrap; padding: 0.75rem; background: #8882; }
td, th { text-align: left; vertical-align: top; padding: 0.15rem 1rem 0.15rem 0; }
"""
_DIGEST: Final = b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
POLICY: Final = (
    f"default-src 'none'; style-src 'sha256-{_DIGEST}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""Content-Security-Policy: this style sheet, and nothing else."""
# Relative, so that links also work behind a proxy that adds a prefix.
_DOCUMENT: Final = '<a href="openapi.json">OpenAPI document</a>'
_CODE: Final = re.compile("`([^`]*)`")
_BOUNDS: Final = {
    "minimum": "at least {}",
    "maximum": "at most {}",
    "minLength": "at least {} characters",
    "maxLength": "at most {} characters",
    "minItems": "at least {} items",
    "maxItems": "at most {} items",
    "pattern": "matches `{}`",
}
"""How the constraints of a type are described."""

JsonObject = Mapping[str, Any]


def front_page(document: JsonObject) -> str:
    """Return the page that introduces the service."""
    access = "Requests need no token: only programs on this machine can connect."
    if "securitySchemes" in document["components"]:
        access = "Requests need a token: `Authorization: Bearer SECRET`."
    return _page(
        f"dupwatch {document['info']['version']}",
        _paragraphs(
            "This is the HTTP service of dupwatch, for programs. It tells whether an article is nearly the same as an "
            "earlier one, and judges and stores articles."
        ),
        '<ul>\n<li><a href="docs">Reference of the routes</a></li>\n',
        f"<li>{_DOCUMENT}, for generating clients</li>\n",
        '<li>Health: <a href="healthz">liveness</a>, <a href="readyz">readiness</a></li>\n</ul>\n',
        _paragraphs(access),
        _paragraphs("To review flags, use the console: `dupwatch console`."),
    )


def reference_page(document: JsonObject) -> str:
    """Return the reference: every route with its parameters, bodies and answers, followed by all types."""
    routes = [
        (f"{method.upper()} {path}", operation)
        for path, operations in document["paths"].items()
        for method, operation in operations.items()
    ]
    return _page(
        f"Routes of dupwatch {document['info']['version']}",
        _paragraphs(document["info"]["description"]),
        f"<p>{_DOCUMENT}</p>\n<ul>\n",
        *(f"<li>{_link(name, each['operationId'])} {_text(each['summary'])}</li>\n" for name, each in routes),
        "</ul>\n",
        *(part for name, operation in routes for part in _route(name, operation)),
        "<h2>Types</h2>\n",
        *(part for name, schema in document["components"]["schemas"].items() for part in _type(name, schema)),
    )


def _page(title: str, *parts: str) -> str:
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta name="viewport" content="width=device-width">\n<title>{escape(title)}</title>\n'
        f"<style>{_STYLE}</style>\n</head>\n<body>\n<h1>{escape(title)}</h1>\n{''.join(parts)}</body>\n</html>\n"
    )


def _route(name: str, operation: JsonObject) -> Iterator[str]:
    roles = [role for choice in operation.get("security", ()) for role in choice["token"]]
    yield f'<h2 id="{escape(operation["operationId"])}"><code>{escape(name)}</code></h2>\n'
    yield _paragraphs(f"{operation['summary']}.")
    yield _paragraphs(operation.get("description", ""))
    if roles:
        yield _paragraphs(f"Requires a token with the role {' or '.join(roles)}.")
    yield _table("Parameter", map(_parameter, operation.get("parameters", ())))
    for body in operation.get("requestBody", {}).get("content", {}).values():
        yield f"<p>Body: {_kind(body['schema'])}</p>\n{_example(body)}"
    answers = operation["responses"]
    yield _table("Status", ((status, *_answer(answer)) for status, answer in answers.items()))
    for answer in answers.values():
        yield from map(_example, answer.get("content", {}).values())


def _type(name: str, schema: JsonObject) -> Iterator[str]:
    yield f'<h3 id="{escape(name)}"><code>{escape(name)}</code></h3>\n'
    yield _paragraphs(schema.get("description", ""))
    required = schema.get("required", ())
    members = schema.get("properties", {}).items()
    yield _table("Member", (_member(member, inner, is_required=member in required) for member, inner in members))


def _member(name: str, schema: JsonObject, *, is_required: bool) -> tuple[str, str, str]:
    optional = "" if is_required else ", optional"
    return f"<code>{escape(name)}</code>", f"{_kind(schema)}{optional}", _text(schema.get("description", ""))


def _parameter(parameter: JsonObject) -> tuple[str, str, str]:
    name = f"<code>{escape(parameter['name'])}</code>"
    optional = "" if parameter["required"] else ", optional"
    kind = f"in the {escape(parameter['in'])}: {_kind(parameter['schema'])}{optional}"
    return name, kind, _text(parameter.get("description", ""))


def _answer(answer: JsonObject) -> tuple[str, str]:
    kinds = ", ".join(_kind(content["schema"]) for content in answer.get("content", {}).values())
    return kinds, _text(answer["description"])


def _kind(schema: JsonObject) -> str:
    """Describe the values of a type in HTML. A named type becomes a link."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return _link(name, name)
    for union in ("anyOf", "oneOf"):
        if union in schema:
            return " or ".join(map(_kind, schema[union]))
    if "enum" in schema:
        return _text(" or ".join(f"`{json.dumps(value)}`" for value in schema["enum"]))
    kind = schema.get("type", "any value")
    kinds = [kind] if isinstance(kind, str) else kind
    bounds = (text.format(schema[name]) for name, text in _BOUNDS.items() if name in schema)
    of_items = f" of {_kind(schema['items'])}" if "items" in schema else ""
    return _text(", ".join([" or ".join(kinds), *bounds])) + of_items


def _link(name: str, target: str) -> str:
    return f'<a href="#{escape(target)}"><code>{escape(name)}</code></a>'


def _example(content: JsonObject) -> str:
    if "example" not in content:
        return ""
    return f"<pre>{escape(json.dumps(content['example'], ensure_ascii=False, indent=2))}</pre>\n"


def _table(first: str, rows: Iterable[tuple[str, str, str]]) -> str:
    """Return a table with a column of names, one of types and one of descriptions; "" without rows."""
    cells = "".join(f"<tr><td>{name}</td><td>{kind}</td><td>{text}</td></tr>\n" for name, kind, text in rows)
    if not cells:
        return ""
    head = "".join(f'<th scope="col">{title}</th>' for title in (first, "Type", "Description"))
    return f"<table>\n<tr>{head}</tr>\n{cells}</table>\n"


def _paragraphs(text: str) -> str:
    return "".join(f"<p>{_text(part)}</p>\n" for part in text.split("\n\n") if part)


def _text(text: str) -> str:
    """Return a text as HTML, with code marked by backticks."""
    return _CODE.sub(r"<code>\1</code>", escape(text))
