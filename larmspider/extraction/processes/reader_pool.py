"""The processes that read one kind of body, which hosts share (fair_queue.py).

    pool = ReaderPool(lambda: ExtractionProcess(30, 1 << 30), 2, "LARM_DOCUMENT_SECS")
    page = await pool.read("application/pdf", body, "http://wiki.example/a.pdf", "")

With two processes or more one host never holds all of them. The second one starts when a document
of another host waits. A document is bad if it takes all its time or memory, or ends its reader.
After `PATIENCE` bad documents in a row, each further one halves the limit of their host, down to
1/`SHORTEST` of the setting; a good document restores the limit.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from math import inf
from typing import Generic, Protocol, TypeVar

from larmspider import stats
from larmspider.extraction.processes.backlog import Backlog
from larmspider.extraction.processes.fair_queue import Turns
from larmspider.extraction.processes.helper_process import (
    ExtractionPostponed,
    ExtractionRefused,
    ExtractionStopped,
)
from larmspider.items import Outcome, Page
from larmspider.urls.syntax import without_userinfo

logger = logging.getLogger(__name__)

PATIENCE = 3
"""Failed documents in a row of one host before its limit shrinks."""
SHORTEST = 16
"""A host's limit is at least 1/16 of the setting: 1.9 s of 30."""


class Reader(Protocol):
    """An ExtractionProcess."""

    seconds: float
    used: float

    async def read(
        self, mime: str, body: bytes, url: str, content_type: str, seconds: float | None = None
    ) -> Page: ...

    def read_now(
        self, mime: str, body: bytes, url: str, content_type: str, seconds: float | None = None
    ) -> Page: ...

    def close(self) -> None: ...


R = TypeVar("R", bound=Reader)


class Sharing:
    """Decides which host is charged for a URL. ``host_of`` returns that host. ``group_of`` returns
    the group of hosts that share as one, such as the names of one address; "" for a host alone.
    ``count`` adds to a stat."""

    host_of: Callable[[str], str]
    group_of: Callable[[str], str]
    count: Callable[[str], None]

    def __init__(self) -> None:
        self.host_of, self.group_of, self.count = _netloc, lambda _host: "", lambda _key: None


def _netloc(url: str) -> str:
    return re.split("[/?#]", without_userinfo(url).partition("//")[2], maxsplit=1)[0].lower()


def limit_of(seconds: float, failures: int) -> float:
    """Seconds for a document whose host has a number of ``failures`` in a row.

    >>> [limit_of(32.0, failures) for failures in (0, 2, 3, 4, 5, 6, 7)]
    [32.0, 32.0, 16.0, 8.0, 4.0, 2.0, 2.0]
    """
    halved = min(max(0, failures - PATIENCE + 1), 30)
    return seconds / min(1 << halved, SHORTEST)


class ReaderPool(Generic[R]):
    """``places``: processes at most; ``setting``: the name of the setting for their seconds."""

    def __init__(
        self,
        make: Callable[[], R],
        places: int,
        setting: str,
        sharing: Sharing | None = None,
        backlog: Backlog | None = None,
    ) -> None:
        self._make, self._setting = make, setting
        self.sharing = sharing or Sharing()
        self.backlog = backlog or Backlog(inf, lambda _host, _held: None)
        self.turns = Turns(places, places - 1)
        self.first = make()
        """The process that reads where no queue is needed."""
        self.closed = False
        self._all, self._idle = [self.first], [self.first]

    @property
    def seconds(self) -> float:
        return self.first.seconds

    @seconds.setter
    def seconds(self, seconds: float) -> None:
        for reader in self._all:
            reader.seconds = seconds

    async def read(self, mime: str, body: bytes, url: str, content_type: str) -> Page:
        """The Page that a process makes of ``body``, once it is its host's turn. Raises
        ExtractionRefused, ExtractionStopped, ExtractionPostponed."""
        if self.closed:
            raise ExtractionStopped("the crawl is being stopped")
        turns, sharing, backlog = self.turns, self.sharing, self.backlog
        host = sharing.host_of(url)
        group = sharing.group_of(host)
        turn = turns.push(host, group)

        def give_back() -> None:
            turns.refuse(turn, ExtractionPostponed("no room for documents that wait"))

        def debt() -> float:
            return turns.queue.debt(turn)

        waiting = backlog.enter(host, len(body), give_back, debt, begun=turn.begun)
        try:
            await turns.begin(turn)
            backlog.begin(waiting)
            cost = 0.0
            failed: bool | None = None
            try:
                reader = self._idle.pop() if self._idle else self._another()
                limit, failures = self._limit(host, group)
                reader.used = 0.0
                try:
                    page = await reader.read(mime, body, url, content_type, limit)
                finally:
                    cost = reader.used
                    self._idle.append(reader)
                failed = _is_failed(page)
                return self._explained(page, limit, failures)
            except ExtractionRefused as refused:
                failed = refused.is_costly or None
                raise self._shortened(refused, limit, failures) from None
            finally:
                logger.debug("%.3f CPU s to read %s", cost, without_userinfo(url))
                turns.end(turn, cost, failed=failed)
        except ExtractionPostponed:
            sharing.count(stats.EXTRACTION_POSTPONED)
            raise
        finally:
            backlog.leave(waiting)

    def read_now(self, mime: str, body: bytes, url: str, content_type: str) -> Page:
        """`read` for a thread that may wait, one at a time, while no other call waits."""
        host = self.sharing.host_of(url)
        limit, failures = self._limit(host)
        queue = self.turns.queue
        try:
            page = self.first.read_now(mime, body, url, content_type, limit)
        except ExtractionRefused as refused:
            queue.judge(host, refused.is_costly or None)
            raise self._shortened(refused, limit, failures) from None
        queue.judge(host, _is_failed(page))
        return self._explained(page, limit, failures)

    def _another(self) -> R:
        """Raises ExtractionStopped."""
        if self.closed:
            raise ExtractionStopped("the crawl is being stopped")
        reader = self._make()
        reader.seconds = self.seconds
        self._all.append(reader)
        return reader

    def _limit(self, host: str, group: str = "") -> tuple[float, int]:
        """The seconds that a document of the host has now, and its failures in a row."""
        failures = self.turns.queue.failures(host, group)
        limit = limit_of(self.seconds, failures)
        if limit < self.seconds:
            self.sharing.count(stats.EXTRACTION_SHORTENED)
        return limit, failures

    def _shortened(
        self, refused: ExtractionRefused, limit: float, failures: int
    ) -> ExtractionRefused:
        """``refused``, with a reason where the limit was shorter than the setting."""
        if limit >= self.seconds or not str(refused).startswith(Outcome.TOO_LONG):
            return refused
        explained = ExtractionRefused(
            f"{refused}{self._why(limit, failures)}", is_costly=refused.is_costly
        )
        explained.kept = refused.kept
        if explained.kept is not None:
            explained.kept.unread = str(explained)
        return explained

    def _explained(self, page: Page, limit: float, failures: int) -> Page:
        if limit < self.seconds and "LARM_OCR_SECS" in page.unread:
            page.unread += self._why(limit, failures)
        return page

    def _why(self, limit: float, failures: int) -> str:
        return (
            f"; the limit of its host is {limit:g} s in place of {self.seconds:g}"
            f" ({self._setting}), as {failures} in a row took too long or too much memory,"
            " or ended their reader"
        )

    def close(self) -> None:
        """May be called twice."""
        self.closed = True
        for turn in self.turns.queue.waiting():
            self.turns.refuse(turn, ExtractionStopped("the crawl is being stopped"))
        for reader in self._all:
            reader.close()


def _is_failed(page: Page) -> bool | None:
    """Whether a document counts as bad. None: it says nothing about its host, because it was cheap
    to refuse, or was read in part."""
    if not page.unread:
        return False
    is_late = page.unread.startswith(Outcome.TOO_LONG)
    return (is_late and not page.text and not page.parts) or None
