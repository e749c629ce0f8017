"""larmspider/pipelines/outbox/outbox.py: what a crawl says of its receivers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable

import pytest
from scrapy.crawler import Crawler

from larmspider import options
from larmspider.pipelines.outbox.dummy import DummyReceiver
from larmspider.pipelines.outbox.outbox import Outbox


@pytest.mark.parametrize(
    ("credentials", "said"), [([], False), (["http://hr", "http://pay"], True)]
)
def test_a_crawl_names_receivers_that_get_restricted_pages(
    crawler_for: Callable[..., Crawler],
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    credentials: list[str],
    said: bool,
) -> None:
    """Every reader of these sees them; hosts of an earlier run count."""
    rules = json.dumps({"/hr/*": ["group:hr"]}) if said else "{}"
    crawler = crawler_for(LARM_ACCESS_RULES=rules)
    directory = options.larm_dir(crawler.settings)
    directory.mkdir()
    manifest = {"format": 2, "seeds": [], "credentials": credentials}
    (directory / "crawl.json").write_text(json.dumps(manifest))
    outbox = Outbox.of(crawler)
    outbox.add(DummyReceiver)

    async def keep_sending() -> None:
        """No sender is needed."""

    monkeypatch.setattr(outbox, "_keep_sending", keep_sending)

    async def opened() -> None:
        outbox.open()
        await asyncio.sleep(0)
        outbox.close_spool()

    asyncio.run(opened())
    line = "Pages of restricted hosts (http://hr and 1 more) are sent to DummyReceiver"
    assert (line in caplog.text) is said
    assert ("restricted" in caplog.text) is said
    line = "Pages with access lists (LARM_ACCESS_RULES) are sent to DummyReceiver"
    assert (line in caplog.text) is said
