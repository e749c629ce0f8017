"""Sites of many hosts whose pages link to each other's, and to pages that are gone.

with CrossLinked(8, pages=8, net="127.40.0") as sites:
    sites.seed, sites.restrict, sites.gone
"""

from __future__ import annotations

from contextlib import ExitStack
from types import TracebackType
from typing import Self

from tests.support.servers.scripted import Route, ScriptedServer

HTML = {"Content-Type": "text/html"}


class CrossLinked:
    """Host k's page n links to page n + 1 of its own, to page n of the next host, and to /gone of
    the one after; its start page to all of its pages, to all hosts, and out of the scope."""

    def __init__(self, hosts: int, *, pages: int, net: str) -> None:
        self._addresses = [f"{net}.{number + 1}" for number in range(hosts)]
        self._pages = pages
        self._stack = ExitStack()
        self.servers: list[ScriptedServer] = []

    @property
    def seed(self) -> str:
        return self.servers[0].url("/")

    @property
    def restrict(self) -> str:
        return (
            "http://" + self._addresses[0].rpartition(".")[0].replace(".", r"\.") + r"\.[0-9]+:.*"
        )

    @property
    def gone(self) -> list[str]:
        """Linked from the pages of another host."""
        return [server.url("/gone") for server in self.servers]

    def __enter__(self) -> Self:
        for address in self._addresses:
            self.servers.append(self._stack.enter_context(ScriptedServer({}, address)))
        for number, server in enumerate(self.servers):
            server.routes.update(self._routes(number))
        return self

    def _routes(self, number: int) -> dict[str, Route]:
        around = [*self.servers[number + 1 :], *self.servers[: number + 1]]
        pages = range(self._pages)
        links = [f"/{n}" for n in pages] + [server.url("/") for server in around]
        links += ["http://elsewhere.invalid/"]
        start = "".join(f"<a href='{link}'>to {link}</a>" for link in links)
        routes: dict[str, Route] = {
            "/": (200, HTML, f"<title>start {number}</title>{start}".encode()),
            "/robots.txt": (200, {}, b"User-agent: *\nDisallow: /private"),
        }
        for n in pages:
            text = f"<title>page {n} of {number}</title>same words on all pages"
            text += f"<a href='/{(n + 1) % self._pages}'>next</a><a href=/private>no</a>"
            text += f"<a href='{around[0].url(f'/{n}')}'>beside</a>"
            text += f"<a href='{around[1].url('/gone')}'>lost {n}</a>"
            routes[f"/{n}"] = (200, HTML, text.encode())
        routes["/same"] = (200, HTML, b"the same")
        return routes

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._stack.close()
