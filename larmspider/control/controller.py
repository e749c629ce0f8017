"""Controllers: gauges of a running crawl and actions on it, in this process or another one.

A crawl writes its address and token to LARM_DIR/web.json, which only its user can read; `scrapy
serve` passes requests on to it. Without that file, or a reply, pages show the data on disk.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import aiohttp

from larmspider import options, stats
from larmspider.control.operator import KEPT, operator_of
from larmspider.errors import ConfigError, HttpError, LarmspiderError
from larmspider.files import socket_path
from larmspider.frontier.overrides import Overrides
from larmspider.scheduler.scheduler import scheduler_of
from larmspider.status.crawl_workers import Access, own_access
from larmspider.status.monitor import what_it_waits_for
from larmspider.status.snapshot import Gauges, in_flight, resident_bytes

if TYPE_CHECKING:
    from scrapy.crawler import Crawler
    from scrapy.settings import BaseSettings


SECONDS = 2.0
ACT_SECONDS = 60.0
ANSWER_BYTES = 1_000_000
NOT_REACHED = "The crawl's own server cannot be reached."
ONCE = frozenset({"seeds"})
"""Actions that one worker carries out for all."""


class RemoteController:
    """Controller of `scrapy serve`. Reads web.json at each request, because a crawl may begin or
    end.

    ``directories`` returns the directories of the workers. With many workers gauges are added up,
    and each worker gets each action. Workers that do not own a host keep its overrides for later.
    """

    def __init__(self, directories: Callable[[], Sequence[Path]]) -> None:
        self._directories = directories

    async def gauges(self) -> Gauges | None:
        servers = await asyncio.to_thread(self._servers)
        asked = [_ask(server, "GET", "stats.json", {}, SECONDS) for server in servers]
        found = []
        for reply in await asyncio.gather(*asked):
            with suppress(KeyError, TypeError, ValueError, AttributeError):
                found.append(Gauges.from_json((reply or {})["numbers"]))
        return Gauges.together(found) if found else None

    async def act(self, name: str, form: Mapping[str, str], who: str) -> str:
        fields = {key: value for key, value in form.items() if key not in ("csrf", "next")}
        fields["everywhere"] = "yes"  # overrides are for all workers
        servers = await asyncio.to_thread(self._servers)
        replies: list[dict[str, Any] | None] = []
        if name in ONCE:  # the worker that takes them passes them on
            for server in servers:
                replies = [await _ask(server, "POST", f"control/{name}", fields, ACT_SECONDS)]
                if replies[0] is not None:
                    break
        else:
            asked = [_ask(one, "POST", f"control/{name}", fields, ACT_SECONDS) for one in servers]
            replies = await asyncio.gather(*asked)
        return _result(replies, of_a_host=bool(fields.get("host")))

    def _servers(self) -> list[Access]:
        try:
            directories = self._directories()
        except LarmspiderError:
            return []
        return [server for one in directories if (server := own_access(one)) is not None]


def _result(replies: Sequence[dict[str, Any] | None], *, of_a_host: bool) -> str:
    """The results of the workers, in a sentence. Raises HttpError if no worker did anything."""
    done = [str(reply["done"]) for reply in replies if reply and "done" in reply]
    refused = [str(reply["error"]) for reply in replies if reply and "error" in reply]
    if not done:
        raise HttpError(refused[0] if refused else NOT_REACHED, 409)
    here = [text for text in done if not text.endswith(KEPT)] or done
    result = "; ".join(dict.fromkeys(here))
    if len(replies) > len(done) and not of_a_host:
        why = f": {refused[0]}" if refused else ": the others do not answer"
        result += f" (by {len(done):,} of {len(replies):,} workers{why})"
    return result


async def _ask(
    server: Access, method: str, path: str, form: Mapping[str, str], seconds: float
) -> dict[str, Any] | None:
    timeout = aiohttp.ClientTimeout(total=seconds)
    headers = {"Authorization": f"Bearer {server.key}"}
    url, data = server.url + path, form or None
    try:
        async with AsyncExitStack() as stack:
            connector = None
            if server.socket:
                name = stack.enter_context(socket_path(Path(server.socket)))
                connector = aiohttp.UnixConnector(name)
            session = await stack.enter_async_context(
                aiohttp.ClientSession(timeout=timeout, trust_env=False, connector=connector)
            )
            response = await stack.enter_async_context(
                session.request(method, url, data=data, headers=headers, allow_redirects=False)
            )
            answer = await response.content.read(ANSWER_BYTES)
            if response.status >= 500:
                where = server.socket or server.url
                return {"error": f"{where} answers {response.status}, its log says why"}
            found = json.loads(answer)
    except (aiohttp.ClientError, OSError, TimeoutError, ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


class LocalController:
    """Controller of the crawl in this process. ``settings``: the settings of its pages."""

    def __init__(self, crawler: Crawler, settings: BaseSettings, began: float) -> None:
        self.crawler, self.settings, self.began = crawler, settings, began
        self._go_by_the_scope()

    def _go_by_the_scope(self) -> None:
        """Let pages explain URLs by the scope in force, in place of the command's scope."""
        operator = operator_of(self.crawler)
        if operator is not None and (restrict := operator.scope.restrict):
            self.settings.set("LARM_RESTRICT", restrict, priority="cmdline")

    async def gauges(self) -> Gauges | None:
        """Takes some 50 us: everything is in memory."""
        crawler = self.crawler
        engine = crawler.engine
        assert crawler.stats is not None
        if engine.spider is None:
            return None  # it has closed
        scheduler = scheduler_of(crawler)
        found = crawler.stats.get_stats()
        counters = {
            key: value
            for key, value in found.items()
            if stats.is_ours(key) and isinstance(value, int)
        }
        pages, failures = stats.pages_and_failures(counters)
        urls, hosts, paused, orders = {}, 0, False, Overrides()
        threads = options.integer(crawler.settings, "CONCURRENT_REQUESTS", minimum=1)
        if scheduler is not None and not scheduler.closed:
            paused = scheduler.frontier.control.paused
            orders = scheduler.frontier.control.overrides.copy()
            threads = scheduler.frontier.slots.total
            urls = asdict(scheduler.frontier.backend.counts())
            hosts = len(scheduler.frontier.hosts)
        return Gauges(
            time=time.time(),
            began=self.began,
            pages=pages,
            bytes=counters.get(stats.FETCH_BYTES, 0),
            links=counters.get(stats.FOLLOW_LINKS, 0),
            in_flight=in_flight(crawler),
            failures=failures,
            memory=resident_bytes(),
            paused=paused,
            waiting=what_it_waits_for(crawler, time.time()),
            broken="" if scheduler is None else scheduler.broken,
            hosts=hosts,
            urls=urls,
            counters=counters,
            scope=options.text(self.settings, "LARM_RESTRICT"),
            orders=orders,
            threads=threads,
        )

    async def act(self, name: str, form: Mapping[str, str], who: str) -> str:
        operator = operator_of(self.crawler)
        if operator is None:
            raise HttpError("This crawl's EXTENSIONS do not include the operator.", 409)
        try:
            done = await operator.act(name, form, who)
        except ConfigError as error:
            raise HttpError(f"Refused: {error}", 409) from None
        self._go_by_the_scope()
        return done
