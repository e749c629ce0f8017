"""larmspider/pipelines/redis_items.py: items in Redis, by scrapy-redis's own pipeline."""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Callable
from pathlib import Path

from tests.support.crawling import FAST, scrapy
from tests.support.servers.redis import RedisServer
from tests.support.servers.scripted import ScriptedServer

_BOTH = """
from larmspider.settings import *
ITEM_PIPELINES["scrapy_redis.pipelines.RedisPipeline"] = 600
"""


def test_pages_go_to_redis_with_their_bodies(
    scripted_server: Callable[..., ScriptedServer],
    redis_server: Callable[..., RedisServer],
    tmp_path: Path,
) -> None:
    """Under <spider>:items, links and all, beside the stores of the chain."""
    server = scripted_server({"/": "<title>home</title><a href='/a'>x</a>", "/a": b"\xff\x00a"})
    (tmp_path / "both.py").write_text(_BOTH)
    redis = redis_server()
    given = {**FAST, "REDIS_URL": redis.unix_url}
    words = [f"-s{name}={value}" for name, value in given.items()]
    ran = scrapy(
        "crawl",
        "intranet",
        f"-astart={server.url()}",
        *words,
        cwd=tmp_path,
        settings_module="both",
    )
    assert ran.status == 0, ran.err
    items = [json.loads(item) for item in redis.client().lrange("intranet:items", 0, -1)]
    pages = {item["url"]: item for item in items if "body" in item}
    assert sorted(pages) == [server.url(), server.url("/a")]
    assert b64decode(pages[server.url("/a")]["body"]) == b"\xff\x00a"
    assert pages[server.url()]["links"][0]["url"] == server.url("/a")
    assert "Traceback" not in ran.err
