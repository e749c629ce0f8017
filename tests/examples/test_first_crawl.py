"""examples/first_crawl.py, which ``make crawl`` runs."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.servers.scripted import ScriptedServer

PROJECT = Path(__file__).parents[2]
HTML = {"Content-Type": "text/html"}
MOVED = (301, {**HTML, "Location": "/start"}, b"<title>301 Moved Permanently</title>")


def first_crawl(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, PROJECT / "examples" / "first_crawl.py", *options],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(PROJECT)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize(
    ("title", "words"),
    [
        ("Our wiki", "Our wiki"),
        ("word " * 300, "word word word word word"),
        ("Host: a~ b~ c~ d~ e~ -f", "Host a b c d"),
        ("***", "the"),
    ],
)
def test_searches_for_words_that_must_be_found(
    scripted_server: Callable[..., ScriptedServer], tmp_path: Path, title: str, words: str
) -> None:
    """Of a page and not of a redirect to it; whatever a title holds is no mistake in the query."""
    server = scripted_server({"/": MOVED, "/start": f"<title>{title}</title>in the cellar"})
    directory = str(tmp_path / "crawl")
    options = ("--start", server.url(), "--dir", directory, "-s", "DOWNLOAD_DELAY=0")
    done = first_crawl(tmp_path, *options)
    assert done.returncode == 0, done.stderr
    assert f"-- {words}\n".replace("'", "") in done.stdout.replace("'", "")
    assert "1 page found" in done.stdout


@pytest.mark.parametrize("option", [("--restrict", "http://wiki/.*"), ("--dir", "mine")])
def test_a_scope_or_a_directory_without_a_start_is_no_demo(
    tmp_path: Path, option: tuple[str, str]
) -> None:
    """Who names one has forgotten the start."""
    done = first_crawl(tmp_path, *option)
    assert (done.returncode, done.stdout) == (2, "")
    assert "needs --start (START)" in done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(
    shutil.which("redis-server") is None,
    reason="redis-server is not installed (Debian package redis-server)",
)
@pytest.mark.skipif(
    shutil.which("redis-server") is None,
    reason="redis-server is not installed (Debian package redis-server)",
)
@pytest.mark.parametrize("more", [(), ("--workers", "2")])
def test_the_demo_leaves_the_redis_of_the_environment_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more: tuple[str, ...]
) -> None:
    """It starts over each time; nobody listens there, and nobody is asked."""
    monkeypatch.setenv("REDIS_URL", "redis://127.41.4.3:9/0")
    done = first_crawl(tmp_path, *more)
    assert done.returncode == 0, done.stderr
    assert "127.41.4.3" not in done.stdout + done.stderr


@pytest.mark.skipif(
    shutil.which("redis-server") is None,
    reason="redis-server is not installed (Debian package redis-server)",
)
def test_several_workers(scripted_server: Callable[..., ScriptedServer], tmp_path: Path) -> None:
    """As ``make crawl WORKERS=2`` has it: their pages are found together."""
    server = scripted_server({"/": (200, HTML, b"<title>Our wiki</title>in the cellar")})
    directory = str(tmp_path / "crawl")
    options = ("--start", server.url(), "--dir", directory, "-s", "DOWNLOAD_DELAY=0")
    done = first_crawl(tmp_path, *options, "--workers", "2")
    assert done.returncode == 0, done.stderr
    assert "in all    1 page stored" in done.stdout
    assert "1 page found" in done.stdout
