"""/control/search: the operator edits synonyms, best bets and labels (search/curated.py)."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote_plus

from larmspider.errors import ConfigError
from larmspider.search.curated import MAX_NAMED, CuratedFile, digest
from larmspider.web.request import PageView, WebRequest, WebResponse
from larmspider.web.views.control import login

MAX_FORM = 60_000
"""Bytes of a file as a form sends it; a larger one is not edited here."""


def curated(request: WebRequest) -> WebResponse:
    if not request.signed_in:
        return login(request)
    files = request.curated
    return request.render(
        "curated.html",
        synonyms=_shown(files.synonyms, request, "synonyms"),
        best_bets=_shown(files.best_bets, request, "best-bets"),
        labels=_shown(files.labels, request, "labels"),
    )


def _shown(file: CuratedFile[Any], request: WebRequest, name: str) -> dict[str, Any]:
    """The content of a file; if the typed text could not be saved, that text."""
    try:
        content = file.content()
        problems = [f"line {number}: {text}" for number, text in file.parsed(content)[1]]
    except ConfigError as error:
        content, problems = b"", [str(error)]
    typed = request.flash.typed if request.flash else {}
    return {
        "act": name,
        "path": file.path,
        "text": typed.get(name, content.decode("utf-8", "replace")),
        "seen": digest(content),
        "problems": problems[:MAX_NAMED],
        "too_long": len(quote_plus(content)) > MAX_FORM,
    }


PAGES = (PageView("/control/search", curated),)
