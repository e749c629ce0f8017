"""Seeds that cannot be had: said in words, and a crawl that has no other ends."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.crawling import crawl
from tests.support.servers.scripted import Raw, ScriptedServer

Start = Callable[..., ScriptedServer]
NOWHERE = f"http://{'x' * 64}.example/"
"""No name in DNS has so long a label: the system says so without asking a server."""
NOBODY = "http://127.0.0.9:9/"


def test_a_seed_that_is_not_found_is_no_page(scripted_server: Start, tmp_path: Path) -> None:
    """0 pages, status 1, and what is wrong."""
    server = scripted_server({"/robots.txt": ""})
    ran = crawl(server.url("/gone"), tmp_path)
    assert ran.status == 1
    assert f"Seed {server.url('/gone')}: not found (HTTP 404)" in ran.err
    last = f"0 pages stored, 1 not found; {server.url('/gone')}: not found (HTTP 404)"
    assert ran.err.splitlines()[-1].endswith(last)
    assert ran.out.splitlines()[1].startswith("stored      0 pages, ")
    assert "known       1 URL: 0 stored, 1 failed" in ran.out


@pytest.mark.acceptance
def test_a_crawl_whose_seeds_cannot_be_had_ends(scripted_server: Start, tmp_path: Path) -> None:
    """Each is named with the reason, long before the crawl would give up; what is queued stays."""
    silent = scripted_server({"/robots.txt": Raw(b"", hang=True)}, host="127.0.0.8")
    seeds = f"{NOWHERE} {NOBODY} {NOBODY}b {silent.url('/')}"
    ran = crawl(seeds, tmp_path, LARM_SEED_PATIENCE_SECS="3")
    assert ran.status == 1
    assert f"Seed {NOWHERE}: no such host: {'x' * 64}.example" in ran.err
    words = "connection refused while asking for robots.txt"
    assert f"Seed {NOBODY} and 1 more of its host: {words}" in ran.err
    assert "No seed answered within 3 s: the crawl ends" in ran.err
    last = ran.err.splitlines()[-1]
    assert last.startswith("scrapy crawl: no seed answered (LARM_SEED_PATIENCE_SECS): ")
    assert f"{NOWHERE}: no such host: " in last
    assert f"; {NOBODY} and 1 more of its host: {words}" in last
    assert "ended       no-seed" in ran.out
    assert "4 URLs still queued; run the same command to continue" in ran.out
    assert json.loads((tmp_path / "crawl" / "crawl.json").read_text())["end"] == "no-seed"


@pytest.mark.acceptance
def test_an_error_of_another_page_is_none_of_a_stored_seed(
    scripted_server: Start, tmp_path: Path
) -> None:
    server = scripted_server({"/": "the start <a href=/a>a</a>", "/a": "one page"})
    assert crawl(server.url("/"), tmp_path).status == 0
    server.routes["/a"] = (503, {}, b"")
    fast = {"LARM_BACKOFF_MAX_SECS": "0.1", "LARM_HOST_PARK_SECS": "1"}
    again = crawl(server.url("/"), tmp_path, refresh="all", **fast)
    assert "1 failed" in again.out, again.out
    assert "Seed " not in again.err


@pytest.mark.acceptance
def test_a_crawl_with_a_page_goes_on(scripted_server: Start, tmp_path: Path) -> None:
    """One seed cannot be had, and is named; the other can."""
    server = scripted_server({"/": "<a href=/a>a</a>", "/a": "a"})
    ran = crawl(
        f"{NOBODY} {server.url('/')}", tmp_path,
        LARM_SEED_PATIENCE_SECS="1", LARM_HOST_MAX_FAILURES="3", LARM_HOST_MAX_PARKS="0",
        LARM_BACKOFF_SECS="1",
    )  # fmt: skip
    assert ran.status == 0
    assert f"Seed {NOBODY}: connection refused" in ran.err
    assert "stored      2 pages" in ran.out
    assert "ended       finished" in ran.out
