"""The pages of a crawl that are extracted in the process beside it are those of one without."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from larmspider import stats
from tests.support.crawling import crawl, records
from tests.support.servers.scripted import ScriptedServer

pytestmark = pytest.mark.acceptance
PATHS = [f"/{number}" for number in range(30)]
LINKS = "".join(f'<li><a href="{path}">Page {path[1:]}</a>' for path in PATHS)
WHERE = ("page-file", "offset", "from-page")
"""Of store.log: by the order in which pages came."""


def page(path: str) -> str:
    text = f"What page {path} is about. " * 400
    return f"<title>{path}</title><nav>{LINKS}</nav><main><h2 id=a>Part</h2>{text}</main>"


def lines(folder: Path, log: str) -> Counter[tuple[str, ...]]:
    return Counter(
        tuple(value for name, value in record.items() if name not in WHERE)
        for record in records(folder / "crawl" / log)
    )


def test_all_lines_of_the_logs_are_the_same(
    scripted_server: Callable[..., ScriptedServer], tmp_path: Path
) -> None:
    server = scripted_server({path: page(path) for path in ("/", *PATHS)})
    folders = tmp_path / "on", tmp_path / "off"
    for folder in folders:
        folder.mkdir()
        ran = crawl(server.url(), folder, LARM_EXTRACTION_BESIDE=folder.name)
        assert ran.status == 0, ran.err
        assert (stats.EXTRACTION_BESIDE in ran.err) == (folder.name == "on")
    for log in ("store.log", "links.log"):
        found = lines(folders[0], log)
        assert found == lines(folders[1], log)
        assert len(found) >= len(PATHS)
