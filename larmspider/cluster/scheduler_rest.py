"""The end of a crawl, as every worker sees it: nobody has work, and no mail is on its way.

A worker that has nothing to fetch, nothing uncommitted and no block on its way says so in Redis;
its next commit, or block, takes that back in the same step. Who then finds that all are at rest
looks at the mail of every block and at start_urls, and then once more at the others: if nothing was
committed in between, the crawl is at its end, and every beat says so.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from larmspider.cluster.scheduler_parts import Worker
    from larmspider.cluster.start_urls import StartUrls

LOOK_SECS = 0.5
"""Between two looks, once this worker is at rest."""


class Rest:
    """``keep_alive``: LARM_KEEP_ALIVE, the crawl has no end."""

    def __init__(self, sharing: Worker, start_urls: StartUrls, *, keep_alive: bool) -> None:
        self._sharing, self._start_urls = sharing, start_urls
        self.keep_alive = keep_alive
        self.ended = False
        self.engine_idle = False
        """Scrapy has asked whether there is more: all that the spider starts with was queued."""
        self.wants_checkpoint = False
        """There is something to commit, or mail to be read, and nothing else to do."""
        self._next = 0.0

    def hear(self, *, ended: bool) -> None:
        """What Redis says of the end. It does not hold while this worker has work."""
        there = self.ended or (ended and not self.keep_alive)
        self.ended = there and not self._has_work() and not self._sharing.backend.pending

    def committed(self) -> None:
        """A checkpoint is done."""
        self.wants_checkpoint = False

    async def look(self) -> None:
        """Is the crawl at its end? Raises Fenced, and what heartbeat.UNREACHABLE lists."""
        sharing = self._sharing
        scheduler, loop = sharing.scheduler, asyncio.get_running_loop()
        if not self._at_rest() or loop.time() < self._next:
            return
        if not self.engine_idle:
            scheduler.wake()
            return
        if sharing.backend.pending:
            self.wants_checkpoint = True
            return
        self._next = loop.time() + LOOK_SECS
        async with scheduler.checkpointing:
            if self._at_rest() and not sharing.backend.pending:
                await self._ask_the_others()

    def _at_rest(self) -> bool:
        sharing = self._sharing
        quiet = sharing.lease.valid and not sharing.moving
        return quiet and not self.ended and not self._has_work()

    def _has_work(self) -> bool:
        return self._sharing.scheduler.busy or not self._sharing.frontier.finished

    async def _ask_the_others(self) -> None:
        sharing = self._sharing
        membership = sharing.membership
        commits, ended = await asyncio.to_thread(membership.idle, len(sharing.backend.owned))
        self.hear(ended=ended)
        if self.ended:
            sharing.scheduler.wake()
            return
        # the mail of others is theirs to read, unless this may be the end
        blocks = range(sharing.keys.blocks) if commits else sorted(sharing.backend.owned)
        mail = await asyncio.to_thread(self._with_mail, blocks)
        if mail & sharing.backend.owned:
            self.wants_checkpoint = True  # it brings the mail
        if not commits or mail or self.keep_alive or await self._start_urls.waiting():
            return
        if await asyncio.to_thread(membership.finish, commits):
            self.ended = True
            sharing.scheduler.wake()

    def _with_mail(self, blocks: Sequence[int]) -> frozenset[int]:
        keys, link = self._sharing.keys, self._sharing.link
        lengths = link.run([("LLEN", keys.block("inbox", block)) for block in blocks])
        return frozenset(b for b, length in zip(blocks, lengths, strict=True) if int(length))
