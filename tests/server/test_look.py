"""The look at a crawl before it is kept."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from larmspider.server.config.crawl_file import parse_crawl
from larmspider.server.home import Home
from larmspider.server.runs.look import Looks
from tests.support.servers.scripted import ScriptedServer

Servers = Callable[..., ScriptedServer]


def test_a_look_is_no_worker_of_the_crawl(
    scripted_server: Servers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither by the crawl file nor by the environment of the server: its pages go."""
    site = scripted_server({"/": "<title>Start</title>"})
    text = f"seeds = ['{site.url('/')}']\n[settings]\nREDIS_HOST = '127.0.0.1'\n"
    monkeypatch.setenv("REDIS_URL", "redis://127.0.0.1:9/0")
    crawl = parse_crawl(text, "wiki.toml")
    found = asyncio.run(Looks(Home.open(tmp_path / "home")).at(crawl))
    assert ([page.title for page in found.pages], found.said) == (["Start"], "")
