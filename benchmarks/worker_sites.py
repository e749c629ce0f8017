"""Sites of many hosts for benchmarks/workers.py, served by nginx, some 0.1 ms of it a page.

    with Site("web", pages=10_000) as site:
        site.seeds, site.restrict          # of a crawl
        site.sent(since)                   # which pages were sent when, to whom

A host belongs to one worker, so work is shared only where there are many. "docs" are the pages of
one module of the JDK's documentation (Debian's openjdk-17-doc), at as many addresses as it takes:
real pages, which never link to another host. "web" is generated_web.py's, written to files: pages
as large and with as many links as documentation has, where one link of ten leads to another host.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

from benchmarks.generated_web import Web
from benchmarks.sites import SITES
from tests.support.servers.nginx import Nginx, NginxRequest

KINDS = ("docs", "web")
JDK = SITES["openjdk-17-doc"]
_MODULE, _MODULE_PAGES = "/api/java.sql/", 155
_WEB_PAGES = 50
"""Of a host."""


def address(number: int) -> str:
    """The loopback address of a host: 127.39.0.1 and so on, as in generated_web.address()."""
    third, last = divmod(number, 250)
    return f"127.39.{third}.{last + 1}"


class Site:
    """About ``pages`` pages; files that have to be made lie in ``scratch``."""

    def __init__(self, kind: str, pages: int, scratch: Path | None = None) -> None:
        self.kind, self.pages, self._scratch = kind, pages, scratch
        self.hosts = max(1, pages // (_MODULE_PAGES if kind == "docs" else _WEB_PAGES))
        self._stack = ExitStack()

    @property
    def seeds(self) -> list[str]:
        start = f"{_MODULE}module-summary.html" if self.kind == "docs" else "/"
        return [self.nginx.url(address(host), start) for host in range(self.hosts)]

    @property
    def restrict(self) -> str:
        """For spider argument ``restrict``."""
        below = _MODULE if self.kind == "docs" else "/"
        return rf"http://127[.]39[.][0-9.]+:{self.nginx.port}{below}.*"

    def sent(self, since: float) -> Iterator[NginxRequest]:
        """Pages that were sent after a time."""
        for one in self.nginx.requests():
            path = one.target.partition("?")[0]
            if one.time >= since and one.status == 200 and path.endswith((".html", "/")):
                yield one

    def __enter__(self) -> Self:
        folder = Path(
            self._stack.enter_context(tempfile.TemporaryDirectory("-site", dir=self._scratch))
        )
        folder.chmod(0o755)
        roots = [JDK.folder if self.kind == "docs" else folder / str(h) for h in range(self.hosts)]
        for root in roots:
            root.mkdir(exist_ok=True)
        served: dict[str, Path | str] = {address(host): root for host, root in enumerate(roots)}
        self.nginx = self._stack.enter_context(Nginx(served))
        if self.kind == "docs":
            JDK.warm()
        else:
            self._write(roots)
        return self

    def _write(self, roots: list[Path]) -> None:
        """The pages, now that their port is known."""
        web = Web(self.pages, self.hosts, self.nginx.port)
        for host, root in enumerate(roots):
            for page in range(web.of_host(host)):
                path = root / (web.path(page)[1:] or "index.html")
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(web.page(host, page).replace(b"//127.22.", b"//127.39."))

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stack.close()
