"""WARC files through kill -9 and a full disk: each page once, every record whole."""

from __future__ import annotations

import json
import random
from itertools import islice
from pathlib import Path

import pytest

from larmspider import open_crawl
from larmspider.plugins.warc.pipeline import cdxj_of, warc_files
from larmspider.settings import ITEM_PIPELINES
from tests.support.recovery.killed_crawl import Kill, KilledCrawl, Site, kills
from tests.support.warcs import check, pages_in

pytestmark = pytest.mark.acceptance
_POINTS = {"AfterPageFiles": 250, "AfterLinkLog": 350, "AfterFetchLog": 450, "AfterAllStores": 900}
SETTINGS = {
    "ITEM_PIPELINES": json.dumps(
        ITEM_PIPELINES
        | {f"tests.support.recovery.kill_points.{name}": at for name, at in _POINTS.items()}
        | {"larmspider.plugins.warc.pipeline.WarcPipeline": 190}
    ),
    "LARM_WARC_BYTES": "400000",
}


def _check_warcs(crawl: KilledCrawl) -> None:
    """They and their CDXJ have every page of the site once, and readers accept them."""
    paths = list(warc_files(crawl.crawl / "warc").values())
    assert len(paths) > 2
    assert pages_in(*paths) == {url: one.body for url, one in crawl.site.answers.items()}
    for path in paths:
        check(path)
    lines = [line for path in paths for line in cdxj_of(path).read_text().splitlines()]
    urls = sorted(json.loads(line.split(" ", 2)[2])["url"] for line in lines)
    assert urls == sorted(crawl.site.answers)


def _check_bodies(crawl: KilledCrawl) -> None:
    """store.log says where in the WARC files each one is; there are no page files."""
    with open_crawl(crawl.crawl) as found:
        bodies = {page.url: page.body for page in found.pages()}
    assert bodies == {url: one.body for url, one in crawl.site.answers.items()}
    assert not sum(path.stat().st_size for path in crawl.crawl.glob("pagefile_*"))


@pytest.mark.parametrize("bodies", ["page-files", "warc"])
def test_what_a_full_disk_and_kills_leave_is_whole(tmp_path: Path, bodies: str) -> None:
    """RLIMIT_FSIZE ends the first run; named points and random moments end others."""
    chance = random.Random(19)
    with Site() as site:
        crawl = KilledCrawl(site, tmp_path, **SETTINGS, LARM_BODIES=bodies)
        assert not crawl.run(None, file_limit=300_000, may_break=True)
        assert "the crawl broke off: " in crawl.log
        for kill in [Kill("after-page-files", 20), *islice(kills(chance), 3)]:
            if crawl.run(kill):
                break
        else:
            assert crawl.run(None)
        if bodies == "warc":
            _check_bodies(crawl)
        else:
            crawl.check_end()
        _check_warcs(crawl)
