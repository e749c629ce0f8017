"""kill -9 while documents are read: each is stored and found once, with all its parts."""

from __future__ import annotations

import random
import time
from collections import Counter
from pathlib import Path

import pytest

from larmspider.search.searcher import Searcher
from tests.support.crawling import FAST, begin, crawl, records
from tests.support.documents import corpus
from tests.support.servers.scripted import Route, ScriptedServer

pytestmark = pytest.mark.acceptance

DOCUMENTS, KILLS = 60, 8


def site() -> dict[str, Route]:
    replies: dict[str, Route] = {}
    for n in range(DOCUMENTS):
        pages = [f"pdfword{n} page {page}" for page in range(100)]
        replies[f"/{n}.pdf"] = (200, {"Content-Type": "application/pdf"}, corpus.pdf(pages))
        body = corpus.zipped({f"{part}.txt": f"zipword{n} part {part}" for part in range(20)})
        replies[f"/{n}.zip"] = (200, {"Content-Type": "application/zip"}, body)
    links = "".join(f'<a href="{path}">x</a> ' for path in replies)
    return {**replies, "/": (200, {"Content-Type": "text/html"}, links.encode())}


def test_nothing_is_lost_or_doubled(tmp_path: Path) -> None:
    chance = random.Random(7)
    settings = FAST | {"LARM_CHECKPOINT_SECS": "0.1"}
    with ScriptedServer(site()) as server:
        arguments = ["crawl", "intranet", "-a", f"start={server.url('/')}"]
        for name, value in settings.items():
            arguments += ["-s", f"{name}={value}"]
        for _ in range(KILLS):
            with (tmp_path / "said").open("w") as out:
                running = begin(*arguments, cwd=tmp_path, out=out)
                asked = len(server.log)
                while running.poll() is None and len(server.log) < asked + 3:
                    time.sleep(0.01)
                time.sleep(chance.uniform(0, 0.5))
                running.kill()
                running.wait(60)
        assert crawl(server.url("/"), tmp_path, timeout=300, **settings).status == 0
    stored = Counter(line["url"] for line in records(tmp_path / "crawl" / "store.log"))
    assert set(stored.values()) == {1}
    assert len(stored) == 2 * DOCUMENTS + 1
    searcher = Searcher.open(tmp_path / "crawl" / "index")
    assert searcher.count() == 2 * DOCUMENTS + 1 + 20 * DOCUMENTS
    for n in range(DOCUMENTS):
        assert searcher.search(f"pdfword{n}").total == 1
        assert searcher.search(f"zipword{n}").total == 20
