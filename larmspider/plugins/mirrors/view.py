"""/mirrors: hosts that have the pages of another one; the operator accepts them."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from larmspider.errors import HttpError
from larmspider.plugins.mirrors.mirrors import Mirror, accept, mirrors_in, resolver_file, rules_in
from larmspider.status.crawl_view import Source
from larmspider.web.request import PageView, WebRequest, WebResponse
from larmspider.web.site import Site

logger = logging.getLogger(__name__)

MIRRORS_SECS = 3_600.0
"""Seconds after which all pages are compared again."""


def mirrors(request: WebRequest) -> WebResponse:
    file = resolver_file(request.source.settings, request.source.crawl)
    known = rules_in(file)
    found = [(mirror, mirror.is_known(known)) for mirror in mirrors_of(request.source)]
    return request.render("mirrors/mirrors.html", mirrors=found, file=file)


def mirrors_of(source: Source) -> Sequence[Mirror]:
    return source.kept("mirrors", lambda: mirrors_in(source.crawl), MIRRORS_SECS)


def accept_mirror(site: Site, host: str) -> str:
    """Add a mirror to the host resolver file. Raises LarmspiderError."""
    found = {mirror.host: mirror for mirror in mirrors_of(site.source)}
    if host not in found:
        raise HttpError(f"{host[:300]!r} is not a mirror.", 409)
    file = resolver_file(site.source.settings, site.source.crawl)
    line = found[host].line
    path = accept(found[host], file)
    logger.info("Control: %s added to %s", line, path)
    return f"{line} is in {path}, for new crawls"


PAGES = (PageView("/mirrors", mirrors),)
