"""The pages, in the order of the navigation: one module each."""

from larmspider import plugin
from larmspider.web.views import (
    control,
    curated,
    deletes,
    hosts,
    links,
    overview,
    queries,
    search,
    service,
    traps,
    url,
)

_mirrors = plugin.find("mirrors.view")
PAGES = (
    *overview.PAGES,
    *search.PAGES,
    *hosts.PAGES,
    *links.PAGES,
    *url.PAGES,
    *control.PAGES,
    *curated.PAGES,
    *queries.PAGES,
    *deletes.PAGES,
    *(_mirrors.PAGES if _mirrors else ()),
    *traps.PAGES,
    *service.PAGES,
)
"""All pages; a new page is a line here."""
