"""larmspider/extensions/preflight.py: what any part would refuse, without a crawl."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from scrapy.crawler import Crawler
from scrapy.settings import Settings

from larmspider.errors import ConfigError
from larmspider.extensions.preflight import (
    check_components,
    name_unproven,
    name_unused,
    settle_canonical_rules,
)
from larmspider.extensions.tuning import LarmStats
from larmspider.options import log_level
from larmspider.spiders.intranet import IntranetSpider
from larmspider.workdir.manifest import FORMAT


def check(**changed: object) -> None:
    settings = Settings({"LARM_START": "http://127.41.5.1/"})
    settings.setmodule("larmspider.settings", priority="default")
    for name, value in changed.items():
        settings.set(name, value, priority="cmdline")
    crawler = Crawler(IntranetSpider, settings)
    crawler.stats = LarmStats(crawler)
    crawler.spider = IntranetSpider.from_crawler(crawler)
    check_components(crawler)


def test_the_defaults_are_accepted() -> None:
    check()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("LARM_RESTRICT", "("),
        ("LARM_PATH_DEPTH_LIMIT", "x"),
        ("LARM_KNOWN_PATHS_FILE", "nowhere"),
        ("LARM_HOST_RESOLVER_FILE", "nowhere"),
        ("LARM_FILTER_LOGS", "perhaps"),
        ("LARM_PAGEFILE_BYTES", "0"),
        ("LARM_INDEX_STEMMER", "klingon"),
        ("LARM_CHECKPOINT_SECS", "soon"),
        ("LARM_MONITOR_SECS", "0"),
        ("LARM_PAGERANK_SECS", "x"),
        ("LARM_WEB_PORT", "99999"),
        ("URLLENGTH_LIMIT", "-1"),
    ],
)
def test_every_parts_settings_are_read(name: str, value: str) -> None:
    """Settings of filters, stores and extensions; the message names the setting, or its value."""
    with pytest.raises(ConfigError) as caught:
        check(**{name: value})
    assert name in str(caught.value) or value in str(caught.value)


def test_settings_of_scrapy_redis_that_mean_nothing_are_named_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """In one line, with what does it instead; not under another scheduler, and not where none is
    set."""
    settings = Settings()
    settings.setmodule("larmspider.settings")
    name_unused(settings)
    assert caplog.messages == []
    for name, value in (("SCHEDULER_PERSIST", True), ("SCHEDULER_QUEUE_KEY", "x")):
        settings.set(name, value)
    settings.set("SCHEDULER_IDLE_BEFORE_CLOSE", 0)
    settings.set("MAX_IDLE_TIME_BEFORE_CLOSE", 10)
    name_unused(settings)
    assert caplog.messages == [
        "Settings of scrapy-redis that have no effect here: SCHEDULER_PERSIST (the crawl in Redis"
        " always stays); SCHEDULER_QUEUE_KEY (keys begin with the spider's name);"
        " SCHEDULER_IDLE_BEFORE_CLOSE, MAX_IDLE_TIME_BEFORE_CLOSE (LARM_KEEP_ALIVE waits for seeds)"
    ]
    settings.set("SCHEDULER", "scrapy.core.scheduler.Scheduler")
    name_unused(settings)
    assert len(caplog.messages) == 1


@pytest.mark.parametrize(
    ("changed", "warnings"),
    [
        ({}, 1),
        ({"LARM_CANONICAL_RULES": "always"}, 0),
        ({"SCHEDULER": "scrapy.core.scheduler.Scheduler"}, 0),
    ],
)
def test_a_crawl_that_compares_no_pages_is_warned(
    changed: dict[str, str], warnings: int, caplog: pytest.LogCaptureFixture
) -> None:
    """SPIDER_MIDDLEWARES of the user's own may have no CopiesMiddleware."""
    settings = Settings()
    settings.setmodule("larmspider.settings")
    name_unproven(settings)
    assert caplog.messages == []
    path = "larmspider.middlewares.copies.CopiesMiddleware"
    settings.set("SPIDER_MIDDLEWARES", {**settings["SPIDER_MIDDLEWARES"], path: None})
    settings.setdict(changed)
    name_unproven(settings)
    assert len(caplog.messages) == warnings
    assert all(path in message for message in caplog.messages)


class Untouchable:
    """A component of the user's own, of no kind that is known."""

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Untouchable:
        raise AssertionError("it may open what it likes")


def test_components_of_others_are_left_alone() -> None:
    check(EXTENSIONS={f"{__name__}.Untouchable": 1})


@pytest.mark.parametrize(("said", "level"), [("debug", "DEBUG"), ("30", 30)])
def test_the_log_level_is_a_name_or_a_number(said: str, level: int | str) -> None:
    assert log_level(Settings({"LOG_LEVEL": said})) == level
    with pytest.raises(ConfigError, match="LOG_LEVEL=LOUD: expected DEBUG, INFO"):
        log_level(Settings({"LOG_LEVEL": "loud"}))


@pytest.mark.parametrize(
    "began_with, asked, resume, expected",
    [
        ({"LARM_CANONICAL_RULES": "proven"}, "always", "", "always"),
        ({"LARM_CANONICAL_RULES": "proven"}, "always", "anyway", "proven"),
        ({"LARM_CANONICAL_RULES": "never"}, "proven", "anyway", "never"),
    ],
)
def test_a_crawl_keeps_the_rules_that_make_its_keys(
    tmp_path: Path, began_with: dict[str, object], asked: str, resume: str, expected: str
) -> None:
    """Without resume=anyway another rule is refused."""
    manifest = {"format": FORMAT, "settings": began_with}
    (tmp_path / "crawl.json").write_text(json.dumps(manifest))
    settings = Settings({"LARM_DIR": str(tmp_path), "LARM_CANONICAL_RULES": asked})
    settings.set("LARM_RESUME", resume)
    settle_canonical_rules(settings)
    assert settings["LARM_CANONICAL_RULES"] == expected


def test_a_new_crawl_has_the_rules_that_are_asked_for(tmp_path: Path) -> None:
    """Also one that starts over."""
    (tmp_path / "crawl.json").write_text(json.dumps({"format": FORMAT, "settings": {}}))
    for directory, fresh in ((tmp_path, "yes"), (tmp_path / "none", "")):
        settings = Settings({"LARM_DIR": str(directory), "LARM_FRESH": fresh})
        settle_canonical_rules(settings)
        assert "LARM_CANONICAL_RULES" not in settings
