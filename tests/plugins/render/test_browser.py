"""larmspider/plugins/render/browser.py: where pages can be rendered; test_render.py runs it."""

from __future__ import annotations

import asyncio
import importlib.util
from pathlib import Path

import pytest
from scrapy.http import HtmlResponse

from larmspider.errors import ConfigError
from larmspider.plugins.render import browser


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A chromium on PATH, for a user who is not root."""
    path = tmp_path / "chromium"
    path.write_text("#!/bin/sh\necho '<p>well'\n")
    path.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(browser.os, "geteuid", lambda: 1000)
    return path


def test_it_is_found_on_path(program: Path) -> None:
    assert browser.find_browser() == str(program)
    browser.check_browser()


def test_it_is_not_run_as_root(program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(browser.os, "geteuid", lambda: 0)
    with pytest.raises(ConfigError, match="Chromium is never run as root: crawl as another user"):
        browser.find_browser()


def test_it_is_missing(program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program.unlink()
    with pytest.raises(ConfigError, match="chromium is not found on PATH: apt-get install"):
        browser.find_browser()
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=r"pip install 'larmspider\[render\]'"):
        browser.find_browser()


@pytest.mark.parametrize(
    "script, reason",
    [
        ("echo 'FATAL: No usable sandbox!' >&2; exit 1", "not run without: FATAL: No usable sand"),
        ("echo other >&2; kill -9 $$", "is not run without: other"),
        ("exit 0", "and is not run without"),
    ],
)
def test_it_does_not_start_with_its_sandbox(program: Path, script: str, reason: str) -> None:
    program.write_text(f"#!/bin/sh\n{script}\n")
    with pytest.raises(ConfigError) as caught:
        browser.check_browser()
    assert reason in str(caught.value)
    assert "\n" not in str(caught.value)


def test_pages_of_one_host_leave_a_place_to_another() -> None:
    """And the places go by the seconds that each host has held them."""
    places = browser.Browser("chromium", browser.RenderLimits())
    order: list[str] = []

    async def render(host: str, ends: asyncio.Event) -> None:
        async with places._place(host, ""):
            order.append(host)
            await ends.wait()

    async def tried() -> None:
        ends = asyncio.Event()
        slow = [asyncio.ensure_future(render("slow:80", ends)) for _ in range(9)]
        quick = [asyncio.ensure_future(render("quick:80", ends)) for _ in range(3)]
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert order == ["slow:80"] * browser.EACH + ["quick:80"]
        ends.set()
        await asyncio.gather(*slow, *quick)

    asyncio.run(tried())
    assert len(order) == 12


def test_a_script_that_goes_elsewhere_for_ever_leaves_few_links() -> None:
    """It may go to URLs of 2 MB, thousands a second."""

    async def answer(*_: object) -> None:
        return None

    page = browser._Rendering(HtmlResponse("http://h/"), answer, browser.RenderLimits())
    page._note_link("http://h/" + "a" * browser.LONGEST_LINK)
    for number in range(2 * browser.MOST_LINKS):
        page._note_link(f"http://h/{number}")
    assert page._leads_to == [f"http://h/{number}" for number in range(browser.MOST_LINKS)]
    assert page.rendered.cut == ["100 links of 8,192 characters by its script"]
