"""All cases by hand, by the crawl that meets them; docs/hostile-web.md says what each ends in."""

from __future__ import annotations

from collections.abc import Sequence

from tests.hostile.document_cases import DOCUMENTS
from tests.hostile.host_cases import HOSTS, ROBOTS
from tests.hostile.limit_cases import LIMITS, LORIS
from tests.hostile.link_cases import LINKS
from tests.hostile.wire_cases import WIRE
from tests.support.hostile.server import Case

GROUPS: dict[str, Sequence[Case]] = {
    "Hosts without an end": [*LIMITS, LORIS[0]],
    "Broken HTTP": WIRE,
    "Links and redirects": LINKS,
    "Names and certificates": HOSTS,
    "robots.txt": ROBOTS,
    "Documents": DOCUMENTS,
}
"""By heading of the docs. Of the slow-loris hosts one stands for all."""
