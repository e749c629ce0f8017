"""examples/first_crawl.py, which ``make crawl`` runs."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.servers.scripted import ScriptedServer

PROJECT = Path(__file__).parents[2]
HTML = {"Content-Type": "text/html"}
MOVED = (301, {**HTML, "Location": "/start"}, b"<title>301 Moved Permanently</title>")


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
    done = subprocess.run(
        [
            *(sys.executable, PROJECT / "examples" / "first_crawl.py", "--start", server.url()),
            *("--dir", tmp_path / "crawl", "-s", "DOWNLOAD_DELAY=0"),
        ],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(PROJECT)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert f"-- {words}\n".replace("'", "") in done.stdout.replace("'", "")
    assert "1 page found" in done.stdout
