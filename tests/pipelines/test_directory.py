"""larmspider/pipelines/directory.py: one directory, one crawl."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from scrapy.crawler import Crawler

from larmspider.errors import ConfigError, CrawlDirError
from larmspider.pipelines.directory import DirectoryPipeline

CrawlerFor = Callable[..., Crawler]


def opened(crawler_for: CrawlerFor, **settings: object) -> DirectoryPipeline:
    pipeline = DirectoryPipeline.from_crawler(crawler_for(**settings))
    pipeline.open_spider()
    return pipeline


def test_describes_the_crawl(crawler_for: CrawlerFor, tmp_path: Path) -> None:
    """Seeds and settings at the start, the reason at the end."""
    pipeline = opened(crawler_for, LARM_RESTRICT="http://h/.*", LARM_KNOWN_PATHS_FILE="known.txt")
    described = json.loads((tmp_path / "crawl" / "crawl.json").read_text())
    assert described["seeds"] == ["http://h/"]
    assert described["settings"]["LARM_RESTRICT"] == "http://h/.*"
    assert described["settings"]["LARM_KNOWN_PATHS_FILE"] == str(Path.cwd() / "known.txt")
    assert "end" not in described
    pipeline.spider_closed("finished")
    assert json.loads((tmp_path / "crawl" / "crawl.json").read_text())["end"] == "finished"


def test_a_directory_in_use_is_refused(crawler_for: CrawlerFor) -> None:
    """Two crawls never write into one directory, not even with fresh=yes."""
    running = opened(crawler_for)
    with pytest.raises(CrawlDirError, match="is in use"):
        opened(crawler_for, LARM_FRESH=True)
    running.spider_closed("finished")


def test_an_old_crawl_is_kept_unless_told_otherwise(
    crawler_for: CrawlerFor, tmp_path: Path
) -> None:
    """Without fresh=yes nothing is touched; with it the crawl goes and other files stay."""
    opened(crawler_for).spider_closed("finished")
    directory = tmp_path / "crawl"
    (directory / "store.log").write_text("x")
    (directory / "index").mkdir()
    (directory / "notes.txt").write_text("mine")
    with pytest.raises(CrawlDirError, match="fresh=yes"):
        opened(crawler_for)
    assert (directory / "store.log").read_text() == "x"
    opened(crawler_for, LARM_FRESH="yes").spider_closed("finished")
    names = {path.name for path in directory.iterdir()}
    assert names == {"crawl.json", "lock", "notes.txt"}


def test_somebody_elses_directory_is_refused(crawler_for: CrawlerFor, tmp_path: Path) -> None:
    """Even with fresh=yes: what is no crawl is not ours to delete, and nothing is left there."""
    directory = tmp_path / "crawl"
    directory.mkdir()
    (directory / "thesis.tex").write_text("mine")
    with pytest.raises(CrawlDirError, match=r"holds other files \(thesis.tex\)"):
        opened(crawler_for, LARM_FRESH=True)
    assert not (directory / "crawl.json").exists()


@pytest.mark.parametrize("name", ["/proc/crawl", "/dev/null/crawl"])
def test_a_directory_that_cannot_be_written_is_refused(crawler_for: CrawlerFor, name: str) -> None:
    """The error names setting, path and reason."""
    with pytest.raises(ConfigError, match=f"LARM_DIR={name} cannot be written"):
        opened(crawler_for, LARM_DIR=name)


def test_an_unknown_setting_is_refused_with_a_suggestion(crawler_for: CrawlerFor) -> None:
    """A typo must not silently mean the default."""
    with pytest.raises(ConfigError, match=r"LARM_PAGEFILE_BYTE is no setting.*LARM_PAGEFILE_BYTES"):
        DirectoryPipeline.from_crawler(crawler_for(LARM_PAGEFILE_BYTE=1))
