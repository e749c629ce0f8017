"""Sites for the benchmarks: folders of Debian packages, as in tests/support/servers/nginx.py.

The documentation of the JDK (openjdk-17-doc) has 10,136 pages and is not installed for the tests.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

from tests.support.servers.nginx import DOCS_SITES


class DocsSite(NamedTuple):
    """A folder, and the page in it that a crawl starts with."""

    package: str
    folder: Path
    start: str

    @property
    def installed(self) -> bool:
        return (self.folder / self.start.lstrip("/")).is_file()

    def warm(self) -> int:
        """Read every page, so that nobody waits for the disk; how many there are."""
        walk = os.walk(self.folder, followlinks=True)
        pages = [Path(at, name) for at, _, names in walk for name in names if name[-5:] == ".html"]
        return sum(bool(page.read_bytes()) for page in pages)


SITES = {
    "openjdk-17-doc": DocsSite(
        "openjdk-17-doc", Path("/usr/share/doc/openjdk-17-doc"), "/api/index.html"
    ),
    **{package: DocsSite(package, folder, "/index.html") for package, folder in DOCS_SITES.items()},
}
"""Debian package -> its site, the largest first."""
