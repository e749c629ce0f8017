"""examples/first_crawl.py, which ``make crawl`` runs."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from examples.first_crawl import words_of_a_title
from tests.support.crawling import crawl, scrapy
from tests.support.servers.scripted import ScriptedServer

PROJECT = Path(__file__).parents[2]
MOVED = (
    301,
    {"Content-Type": "text/html", "Location": "/start"},
    b"<title>301 Moved Permanently</title>",
)

NEEDS_REDIS = pytest.mark.skipif(
    shutil.which("redis-server") is None,
    reason="redis-server is not installed (Debian package redis-server)",
)


def first_crawl(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, PROJECT / "examples" / "first_crawl.py", *options],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(PROJECT)},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )


def test_make_says_what_it_does_first() -> None:
    """It installs for a minute or two before anything else happens."""
    command = ["make", "--dry-run", "--always-make", "crawl"]
    own = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    own.pop("MFLAGS", None)  # of the make that runs the tests
    said = subprocess.check_output(command, cwd=PROJECT, env=own, text=True)
    assert said.startswith('echo "Installing larmspider and what it needs into .venv, which takes')


def test_what_was_crawled_is_found(
    scripted_server: Callable[..., ScriptedServer], tmp_path: Path
) -> None:
    """By words of a page and not of a redirect to it."""
    server = scripted_server({"/": MOVED, "/start": "<title>Our wiki</title>in the cellar"})
    options = ("--start", server.url(), "--dir", str(tmp_path / "crawl"))
    done = first_crawl(tmp_path, *options, "-s", "DOWNLOAD_DELAY=0")
    assert done.returncode == 0, done.stderr
    assert f"$ larmspider search -s LARM_DIR={tmp_path / 'crawl'} -- 'Our wiki'\n" in done.stdout
    assert "1 page found" in done.stdout


@pytest.mark.acceptance
def test_the_demo_is_kept_current_by_the_second_call(tmp_path: Path) -> None:
    assert first_crawl(tmp_path).returncode == 0
    again = first_crawl(tmp_path)
    assert again.returncode == 0, again.stderr
    said = "1 changed, 1 new, 1 missing (removed after 3 such visits over 2 days)"
    assert said in again.stdout, again.stdout


@pytest.mark.acceptance
@pytest.mark.parametrize("more", [(), pytest.param(("--workers", "2"), marks=NEEDS_REDIS)])
def test_a_crawl_that_has_ended_visits_what_is_due(
    scripted_server: Callable[..., ScriptedServer], tmp_path: Path, more: tuple[str, ...]
) -> None:
    server = scripted_server({"/": "<title>Our wiki</title>in the cellar"})
    options = ("--start", server.url(), "--dir", str(tmp_path / "crawl"), *more)
    first = first_crawl(tmp_path, *options, "-s", "DOWNLOAD_DELAY=0")
    assert "refresh=due" not in first.stdout
    again = first_crawl(tmp_path, *options, "-s", "DOWNLOAD_DELAY=0")
    assert "has ended: revisiting due pages" in again.stdout
    assert "refresh=due" in again.stdout
    assert again.returncode == 0, again.stderr


@pytest.mark.parametrize(
    ("title", "words"),
    [
        ("word " * 300, "word word word word word"),
        ("Host: a~ b~ c~ d~ e~ -f", "Host a b c d"),
        ("***", "the"),
    ],
)
def test_searches_for_words_that_must_be_found(
    scripted_server: Callable[..., ScriptedServer], tmp_path: Path, title: str, words: str
) -> None:
    """Whatever a title holds is no mistake in the query."""
    server = scripted_server({"/": f"<title>{title}</title>in the cellar"})
    assert crawl(server.url("/"), tmp_path).status == 0
    assert words_of_a_title(str(tmp_path / "crawl")) == words
    assert "1 page found" in scrapy("search", "--", words, cwd=tmp_path).out


@pytest.mark.acceptance
@pytest.mark.parametrize("option", [("--restrict", "http://wiki/.*"), ("--dir", "mine")])
def test_a_scope_or_a_directory_without_a_start_is_no_demo(
    tmp_path: Path, option: tuple[str, str]
) -> None:
    """Who names one has forgotten the start."""
    done = first_crawl(tmp_path, *option)
    assert (done.returncode, done.stdout) == (2, "")
    assert "needs --start (START)" in done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.acceptance
@NEEDS_REDIS
@pytest.mark.parametrize("more", [(), ("--workers", "2")])
def test_the_demo_leaves_the_redis_of_the_environment_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more: tuple[str, ...]
) -> None:
    """It starts over each time; no server listens there, and none is asked. The pages of several
    workers are found together."""
    monkeypatch.setenv("REDIS_URL", "redis://127.41.4.3:9/0")
    done = first_crawl(tmp_path, *more)
    assert done.returncode == 0, done.stderr
    assert "127.41.4.3" not in done.stdout + done.stderr
    assert "1 page found" in done.stdout
    assert (" pages stored, " in done.stdout) == bool(more)  # a line for each worker
