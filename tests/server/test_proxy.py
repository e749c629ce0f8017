"""People whom a proxy names: by headers that are believed, and by a real Apache with Kerberos."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import threading
from collections.abc import Iterator
from ipaddress import ip_network
from pathlib import Path

import pytest
from aiohttp import web
from scrapy.settings import Settings

from larmspider.errors import ConfigError
from larmspider.web.readers import Readers
from tests.support.crawling import PROJECT
from tests.support.servers.kerberos import KerberosSite, missing_packages
from tests.support.web.serving import request

BELIEVED = Readers({}, "X-Groups", (ip_network("127.0.0.1"),), "X-User")


class Naming:
    """A server that says as whom it knows the sender of a request."""

    def __init__(self, readers: Readers) -> None:
        self.readers, self.port = readers, 0
        self._ready, self._stop = threading.Event(), asyncio.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()))

    async def _answer(self, asked: web.Request) -> web.Response:
        found = self.readers.said_of(asked)
        text = "" if found is None else f"{found.name}: {', '.join(sorted(found.principals))}"
        return web.Response(text=text)

    async def _run(self) -> None:
        self._loop = asyncio.get_running_loop()
        app = web.Application()
        app.router.add_get("/{path:.*}", self._answer)
        runner = web.AppRunner(app)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        self.port = runner.addresses[0][1]
        self._ready.set()
        await self._stop.wait()
        await runner.cleanup()

    def __enter__(self) -> Naming:
        self._thread.start()
        assert self._ready.wait(60)
        return self

    def __exit__(self, *error: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(60)

    def asked(self, **headers: str) -> str:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return request(f"http://127.0.0.1:{self.port}/", headers=named).text


@pytest.fixture(scope="module")
def naming() -> Iterator[Naming]:
    with Naming(BELIEVED) as running:
        yield running


@pytest.mark.parametrize(
    ("user", "groups", "known"),
    [
        ("anna", "hr, staff", "anna: group:hr, group:staff, user:anna"),
        ("CORP\\anna", None, "CORP\\anna: user:CORP\\anna"), ("anna", "", "anna: user:anna"),
        ("Zoë".encode().decode("latin-1"), None, "Zoë: user:Zoë"), (None, "hr", ": group:hr"),
        (" ", "hr", ": group:hr"), (None, None, ""), (None, "", ": "),
        ("", None, ""), (" ", " ", ""),
        ("a\u202eb".encode().decode("latin-1"), "hr", ""), ("x" * 257, "hr", ""),
    ],
)  # fmt: skip
def test_names_that_are_believed(
    naming: Naming, user: str | None, groups: str | None, known: str
) -> None:
    """A name that could pass for another belongs to no reader."""
    sent = {"X_User": user, "X_Groups": groups}
    assert naming.asked(**{name: value for name, value in sent.items() if value is not None}) == (
        known
    )


def test_other_addresses_are_not_believed() -> None:
    with Naming(Readers({}, "X-Groups", (ip_network("10.0.0.0/8"),), "X-User")) as naming:
        assert naming.asked(X_User="anna", X_Groups="hr") == ""


def test_a_header_without_proxies_is_refused() -> None:
    settings = Settings({"LARM_SEARCH_USER_HEADER": "X-User"})
    settings.setmodule("larmspider.settings", priority="default")
    with pytest.raises(ConfigError, match="LARM_SEARCH_USER_HEADER=X-User: anybody can send it"):
        Readers.from_settings(settings)


@pytest.mark.acceptance
@pytest.mark.skipif(bool(missing_packages()), reason="not installed: Kerberos and Apache")
def test_apache_with_kerberos(tmp_path: Path) -> None:
    """The lines of docs/people.md: the ticket's name arrives, headers of the browser do not."""
    page = (PROJECT / "docs" / "people.md").read_text("utf-8")
    found = re.search(r'<Location "/search">(.*?)</Location>', page, re.DOTALL)
    assert found
    lines = [line for line in found[1].splitlines() if "RequestHeader" in line]
    readers = Readers({}, "X-Forwarded-Groups", (ip_network("127.0.0.1"),), "X-Forwarded-User")
    with (
        Naming(readers) as naming,
        KerberosSite({}, f"http://127.0.0.1:{naming.port}/", "\n".join(lines)) as site,
    ):

        def fetched(environment: dict[str, str]) -> str:
            done = subprocess.run(
                ["curl", "-s", "--negotiate", "-u", ":", "-H", "X-Forwarded-User: eve",
                 "-H", "X-Forwarded-Groups: admins", "-w", " %{http_code}", site.url("/search")],
                env={**os.environ, **environment}, capture_output=True, text=True, check=True,
                timeout=60,
            )  # fmt: skip
            return done.stdout

        name = "crawler@TEST.EXAMPLE"
        assert fetched(site.client) == f"{name}: user:{name} 200"
        assert fetched(site.stranger).endswith(" 401")
