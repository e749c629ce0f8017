"""The applications of the crawls below the server: made once, and again when crawls change."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from larmspider.errors import HttpError
from larmspider.server import mount
from larmspider.server.api.api import BASE
from larmspider.server.mount import Mounts
from larmspider.web.request import Work
from tests.server.test_app import SEEDS
from tests.server.test_principals import indexed
from tests.server.test_search_api import Asking, guide


def test_the_search_follows_the_crawls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A crawl that begins later is searched, and one that was deleted is not, nor is it in the
    way."""
    monkeypatch.setattr(mount, "LOOK_SECS", 0.0, raising=False)
    with Asking(tmp_path, sessions={}) as running:
        operate, data = running.token("operate"), tmp_path / "data"

        def found(query: str) -> Any:
            return running.get("search", operate, q=query)["total"]

        running.manager.home.write("wiki", f"seeds = {SEEDS['seeds']}\n", new=True)
        indexed(data / "wiki")
        assert (found("canteen"), found("pump")) == (3, 0)
        body = {"name": "guide", "crawl": SEEDS}
        assert running.ask(f"{BASE}/crawls", "POST", body, operate).status == 201
        assert found("pump") == 0
        guide(data / "guide")
        assert found("pump") == 1
        body = {"name": "wiki", "pages": True}
        assert running.ask(f"{BASE}/crawls/wiki", "DELETE", body, operate).status == 200
        assert (found("canteen"), found("pump")) == (0, 1)
        assert running.ask("/crawls/wiki/search?q=canteen", headers=operate).status == 404


def test_a_crawl_that_has_not_begun(tmp_path: Path) -> None:
    """Its pages say so and lead to its own page; nothing is broken."""
    with Asking(tmp_path, sessions={}) as running:
        operate = running.token("operate")
        body = {"name": "wiki", "crawl": SEEDS}
        assert running.ask(f"{BASE}/crawls", "POST", body, operate).status == 201
        page = running.ask("/crawls/wiki/", headers=operate)
        assert page.status == 404
        assert "Not begun yet" in page.text
        assert 'href="/manage/wiki"' in page.text
        assert "larmspider crawl" not in page.text
        health = running.ask("/crawls/wiki/healthz", headers=operate)
        assert (health.status, health.json["status"]) == (200, "ok")
        (tmp_path / "data" / "wiki").mkdir(parents=True)
        (tmp_path / "data" / "wiki" / "crawl.json").write_text("{")
        assert "Not begun yet" not in running.ask("/crawls/wiki/", headers=operate).text


def test_the_overview_leads_to_the_page_of_its_crawl(tmp_path: Path) -> None:
    with Asking(tmp_path, sessions={}) as running:
        running.manager.home.write("wiki", f"seeds = {SEEDS['seeds']}\n", new=True)
        indexed(tmp_path / "data" / "wiki")
        page = running.ask("/crawls/wiki/", headers=running.token("operate"))
        assert page.status == 200
        assert 'id="next"' in page.text
        assert 'href="/manage/wiki"' in page.text


def test_an_application_is_made_once() -> None:
    """Also for requests that come together."""
    made, ended = list[str](), list[str]()

    async def make(name: str) -> web.Application:
        await asyncio.sleep(0.01)
        made.append(name)
        app = web.Application()

        async def end(_: web.Application) -> None:
            ended.append(name)

        app.on_cleanup.append(end)
        return app

    async def ask() -> None:
        mounts = Mounts(make)
        first, second = await asyncio.gather(mounts._app("wiki"), mounts._app("wiki"))
        assert first is second
        await mounts.close()

    asyncio.run(ask())
    assert (made, ended) == (["wiki"], ["wiki"])


def test_a_crawl_that_hangs_keeps_no_other_waiting() -> None:
    async def ask() -> None:
        go_on = asyncio.Event()

        async def make(name: str) -> web.Application:
            if name == "hangs":
                await go_on.wait()
            return web.Application()

        mounts = Mounts(make)
        hangs = asyncio.create_task(mounts._app("hangs"))
        await asyncio.sleep(0)
        await asyncio.wait_for(mounts._app("wiki"), 5)
        assert not hangs.done()
        go_on.set()
        await hangs
        assert not mounts._making, "names of requests are not kept"
        await mounts.close()

    asyncio.run(ask())


def test_requests_of_an_application_that_ends_are_answered() -> None:
    async def ask() -> None:
        work, go_on = Work(threads=1), asyncio.Event()
        loop = asyncio.get_running_loop()

        def wait() -> int:
            asyncio.run_coroutine_threadsafe(go_on.wait(), loop).result(10)
            return 7

        under_way = asyncio.create_task(work.run(wait))
        waiting = asyncio.create_task(work.run(int))
        await asyncio.sleep(0.05)
        work.close()
        go_on.set()
        assert await under_way == 7
        for late in (waiting, work.run(int)):
            with pytest.raises(HttpError, match="The crawls have changed") as error:
                await late
            assert error.value.status == 503

    asyncio.run(ask())
