"""Approvals of deletes are taken up, and LARM_NOTIFY is told what waits for somebody.

    LARM_NOTIFY = "mail -s larmspider me@example"      # a command: the message is its input
    LARM_NOTIFY = "https://chat.example/hooks/larm"    # a webhook: {"what": ..., "host": ..., ...}

Looked for at each checkpoint. An approval lasts until a run begins that finds its pages gone or
back, whatever becomes of the runs before. Each thing is told once, in however many runs it is
found: the brake holds deletes of a host, a login has expired, a host is dead. It is told again if
a run in between has found that it was over.
"""

from __future__ import annotations

import asyncio
import json
import logging
import shlex
import time
import urllib.request
from contextlib import suppress
from typing import TYPE_CHECKING, Self

from scrapy import signals

from larmspider import options
from larmspider import signals as larm_signals
from larmspider.control.deletes import approved_in, write_approved
from larmspider.errors import ConfigError
from larmspider.files import replace_file
from larmspider.formatting import printable
from larmspider.scheduler.scheduler import scheduler_of

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

    from larmspider.frontier.delete_gate import Notice
    from larmspider.scheduler.scheduler import FrontierScheduler

logger = logging.getLogger(__name__)

TIMEOUT_SECS = 30.0
"""For the command or the webhook."""
TOLD = "deletes-told.json"
"""In LARM_DIR: what was told, and when."""
_LOOK_SECS = 2.0


class NotifyExtension:
    """``target`` is LARM_NOTIFY, "" for nobody."""

    def __init__(self, crawler: Crawler, target: str) -> None:
        self.crawler, self.target = crawler, target
        self._approved: dict[str, dict[bytes, float]] = {}
        self._read = -1.0
        self._taken_up: set[str] = set()  # hosts with approvals; with workers some come later
        self._told: dict[str, float] = {}
        self._logged: set[str] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        extension = cls(crawler, notify_target(crawler))
        crawler.signals.connect(extension.spider_opened, signal=signals.spider_opened)
        crawler.signals.connect(extension.look, signal=larm_signals.commit)
        crawler.signals.connect(extension.spider_closed, signal=signals.spider_closed)
        return extension

    @property
    def _scheduler(self) -> FrontierScheduler | None:
        return scheduler_of(self.crawler)

    def spider_opened(self) -> None:
        scheduler = self._scheduler
        if scheduler is None:
            return
        with suppress(OSError, ValueError):  # a damaged file: it is told again
            self._told = dict(json.loads((scheduler.directory.path / TOLD).read_bytes()))
        self._drop_done(scheduler)
        self._take_approvals(scheduler)

    def look(self) -> None:
        """At a checkpoint."""
        scheduler = self._scheduler
        if scheduler is None or scheduler.closed:
            return
        self._take_approvals(scheduler)
        self._tell(scheduler)

    def _take_approvals(self, scheduler: FrontierScheduler) -> None:
        path, frontier = scheduler.directory.path, scheduler.frontier
        with suppress(OSError):
            changed = (path / "deletes-approved.json").stat().st_mtime
            if changed != self._read:
                self._read, self._taken_up = changed, set()
                self._approved = approved_in(path)
        self._taken_up.intersection_update(frontier.hosts)  # others may come back
        for host in self._approved.keys() - self._taken_up:
            if host in frontier.hosts:
                self._taken_up.add(host)
                frontier.gate.approve(host, self._approved[host])
                scheduler.wake()

    def _tell(self, scheduler: FrontierScheduler) -> None:
        notices, now = scheduler.frontier.gate.notices, time.time()
        for notice in notices:
            name = f"{notice.what} {notice.host}"
            if name not in self._logged:
                self._logged.add(name)
                logger.warning("%s", printable(notice.message))
            if name in self._told:
                continue
            self._told[name] = now
            if self.target:
                task = asyncio.get_running_loop().create_task(self._send(notice))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)
        if notices:
            notices.clear()
            self._keep_told(scheduler)

    def _keep_told(self, scheduler: FrontierScheduler) -> None:
        with suppress(OSError):  # not the frontier: that is closed when the last ones come
            replace_file(scheduler.directory.path / TOLD, json.dumps(self._told).encode())

    def _forget_over(self, scheduler: FrontierScheduler) -> None:
        gate = scheduler.frontier.gate
        lasting = {name: at for name, at in self._told.items() if not gate.is_over(*name.split())}
        if lasting != self._told:
            self._told = lasting
            self._keep_told(scheduler)

    async def _send(self, notice: Notice) -> None:
        """The crawl goes on whatever becomes of it."""
        try:
            async with asyncio.timeout(TIMEOUT_SECS):
                if self.target.startswith(("http://", "https://")):
                    await asyncio.to_thread(_post, self.target, notice)
                else:
                    await _run(self.target, notice)
        except (OSError, ValueError, TimeoutError) as error:
            logger.error("LARM_NOTIFY could not be told: %s", printable(str(error) or "time-out"))

    async def spider_closed(self) -> None:
        scheduler = self._scheduler
        if scheduler is not None and scheduler.opened:
            self._tell(scheduler)
            self._forget_over(scheduler)
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=TIMEOUT_SECS)

    def _drop_done(self, scheduler: FrontierScheduler) -> None:
        """An approval is over when its page has left, or has come back, by the last commit."""
        gate, hosts = scheduler.frontier.gate, scheduler.frontier.hosts
        approved = approved_in(scheduler.directory.path)
        left = {
            host: gate.still_waiting(host, keys) if host in hosts else keys
            for host, keys in approved.items()
        }
        if left != approved:
            with suppress(OSError):
                write_approved(scheduler.directory.path, left)


def notify_target(crawler: Crawler) -> str:
    """LARM_NOTIFY. Raises ConfigError for a command that cannot be split into words."""
    target = options.text(crawler.settings, "LARM_NOTIFY").strip()
    try:
        shlex.split(target)
    except ValueError as error:
        raise ConfigError(
            f"LARM_NOTIFY={target}: expected a command, or a URL with http or https: {error}"
        ) from None
    return target


def _post(url: str, notice: Notice) -> None:
    body = json.dumps(notice._asdict()).encode()
    headers = {"Content-Type": "application/json"}
    request = urllib.request.Request(url, body, headers)  # noqa: S310 - http or https
    with urllib.request.urlopen(request, timeout=TIMEOUT_SECS):  # noqa: S310
        pass


async def _run(command: str, notice: Notice) -> None:
    process = await asyncio.create_subprocess_exec(
        *shlex.split(command),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        _, said = await process.communicate(notice.message.encode() + b"\n")
    except BaseException:
        process.kill()
        await process.wait()
        raise
    if process.returncode:
        raise OSError(f"{command}: status {process.returncode}: {said.decode(errors='replace')}")
