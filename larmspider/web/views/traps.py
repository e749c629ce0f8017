"""/traps: the classes of URLs that are held as traps; the operator accepts or rejects them."""

from __future__ import annotations

from collections.abc import Sequence

from larmspider.reports.traps import Trap, rules_file, rules_in, traps_in
from larmspider.status.crawl_view import Source
from larmspider.web.request import PageView, WebRequest, WebResponse

TRAPS_SECS = 60.0
"""Seconds after which the traps are read again."""


def traps(request: WebRequest) -> WebResponse:
    file = rules_file(request.source.settings, request.source.crawl)
    rules = rules_in(file).splitlines() if file else []
    return request.render("traps.html", traps=traps_of(request.source), file=file, rules=rules)


def traps_of(source: Source) -> Sequence[Trap]:
    return source.kept("traps", lambda: traps_in(source.crawl), TRAPS_SECS)


PAGES = (PageView("/traps", traps),)
