"""The description of /api/v1/ (OpenAPI 3.1), from the table of operations and the types.

python -m larmspider.server.api.openapi > docs/openapi.json
"""

from __future__ import annotations

import json
import re
import sys
from typing import Any

import msgspec

from larmspider import __version__
from larmspider.server.api.api import BASE, OPERATIONS, Operation
from larmspider.server.api.api_types import Error, PushDocument
from larmspider.server.config.crawl_schema import Crawl

_REFUSED = {
    "400": "The body or a value cannot be used", "401": "No token", "403": "Not with this token",
    "404": "Not there", "409": "Not in this state", "413": "Too large", "415": "Not this type",
    "429": "Too many wrong tokens, or documents", "507": "The disk is full",
}  # fmt: skip


def description() -> dict[str, Any]:
    """The document."""
    kinds = [Error, Crawl, *(one.answer for one in OPERATIONS)]
    kinds += [one.body for one in OPERATIONS if one.body is not None]
    kinds += [one.lines for one in OPERATIONS if one.lines is not None]
    kinds = list(dict.fromkeys([*kinds, PushDocument]))
    template = "#/components/schemas/{name}"
    _, components = msgspec.json.schema_components(kinds, ref_template=template)
    paths: dict[str, dict[str, Any]] = {}
    for one in OPERATIONS:
        paths.setdefault(BASE + one.path, {})[one.method.lower()] = _operation(one)
    return {
        "openapi": "3.1.0",
        "info": {"title": "larmspider server", "version": __version__},
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"token": []}],
    }


def _operation(one: Operation) -> dict[str, Any]:
    answers = {str(one.status): {"description": "Done", "content": _content(one.answer)}}
    if one.kinds:  # 200: nothing is new, or several documents
        kinds = [one.answer, *([one.lines] if one.lines else [])]
        answers["200"] = {"description": "Done", "content": _content(*kinds)}
    answers |= {
        status: {"description": text, "content": _content(Error)}
        for status, text in _REFUSED.items()
    }
    found: dict[str, Any] = {
        "operationId": one.name,
        "summary": one.text,
        "description": f"Needs a token with the scope {one.scope}.",
        "parameters": [
            {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
            for name in re.findall(r"\{(\w+)\}", one.path)
        ]
        + [
            {"name": name, "in": "query", "required": name == "url", "schema": {"type": "string"}}
            for name in one.query
        ],
        "responses": answers,
    }
    if one.body is not None:
        found["requestBody"] = {"required": True, "content": _content(one.body)}
    if one.kinds:
        file = {"type": "string", "format": "binary"}
        document = _content(PushDocument)["application/json"]["schema"]
        bodies = {kind: {"schema": file if kind == "*/*" else document} for kind in one.kinds}
        found["requestBody"] = {"required": True, "content": bodies}
    return found


def _content(*kinds: type) -> dict[str, Any]:
    named = [{"$ref": f"#/components/schemas/{kind.__name__}"} for kind in kinds]
    return {"application/json": {"schema": {"anyOf": named} if len(named) > 1 else named[0]}}


def as_text() -> str:
    """The file docs/openapi.json."""
    return json.dumps(description(), indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    sys.stdout.write(as_text())
