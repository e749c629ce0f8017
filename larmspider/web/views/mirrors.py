"""/mirrors: hosts that have the pages of another one; the operator accepts them."""

from __future__ import annotations

from collections.abc import Sequence

from larmspider.reports.mirrors import Mirror, mirrors_in, resolver_file, rules_in
from larmspider.status.crawl_view import Source
from larmspider.web.request import PageView, WebRequest, WebResponse

MIRRORS_SECS = 3_600.0
"""All pages are compared again after this."""


def mirrors(request: WebRequest) -> WebResponse:
    file = resolver_file(request.source.settings, request.source.crawl)
    known = rules_in(file)
    found = [(mirror, mirror.is_known(known)) for mirror in mirrors_of(request.source)]
    return request.render("mirrors.html", mirrors=found, file=file)


def mirrors_of(source: Source) -> Sequence[Mirror]:
    return source.kept("mirrors", lambda: mirrors_in(source.crawl), MIRRORS_SECS)


PAGES = (PageView("/mirrors", mirrors),)
