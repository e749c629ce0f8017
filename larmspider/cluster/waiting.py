"""Asks the Redis of a crawl what waits in its queues, where it can be asked.

    with waiting_of(Path("crawl"), description, settings) as (waiting, why_not):
        waiting.hosts() if waiting else why_not

It is the one that REDIS_URL names, or the private one of ``scrapy workers`` while that runs.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from larmspider import options
from larmspider.cluster.redis_keys import Keys
from larmspider.errors import ConfigError, CrawlDirError
from larmspider.workdir.directory import REDIS_DIR
from larmspider.workdir.manifest import SHARED

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

    from larmspider.cluster.reader import RedisReader

ANSWER_SECS = 2.0
SOCKET = "redis.sock"


@contextmanager
def waiting_of(
    root: Path, description: dict[str, Any], settings: BaseSettings
) -> Iterator[tuple[RedisReader | None, str]]:
    """The reader, or None and why there is none."""
    where = str(description.get(SHARED, {}).get("redis", "Redis"))
    wanted = settings
    if not options.many_workers(settings):
        socket = root / REDIS_DIR / SOCKET
        if not socket.exists():
            yield None, f"the queues of this crawl are in Redis ({where}): REDIS_URL names it"
            return
        wanted = settings.copy()
        wanted.set("REDIS_URL", f"unix://{quote(str(socket))}", priority="cmdline")
    # here, as most crawls have no Redis: its client costs every command 0.1 s
    from larmspider.cluster.reader import RedisReader
    from larmspider.cluster.scheduler_redis import connect

    try:
        client, where = connect(
            wanted, socket_timeout=ANSWER_SECS, socket_connect_timeout=ANSWER_SECS
        )
        blocks = options.integer(settings, "LARM_BLOCKS", minimum=1)
        reader = RedisReader(client, Keys(str(description.get("spider")), blocks))
        reader.ping()
    except (ConfigError, CrawlDirError) as error:
        why = " ".join(str(error).split())
        yield None, f"the queues of this crawl are in Redis ({where}), which does not answer: {why}"
        return
    try:
        yield reader, ""
    finally:
        client.close()
