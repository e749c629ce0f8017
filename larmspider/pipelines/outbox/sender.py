"""The process that sends to one receiver; outbox.py starts it, and ends it by closing its input.

Its first line of input says what to send and where to, each further one how far the crawl has
committed. What becomes of it stands in the receiver's `Cursor`, and in its log of dead letters.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from scrapy.settings import Settings
from scrapy.utils.misc import load_object

from larmspider.errors import CrawlDirError
from larmspider.files import lock
from larmspider.formatting import printable, utc
from larmspider.pipelines.outbox.receiver import AwayError, BatchError, Receiver, RefusedError
from larmspider.pipelines.outbox.spool import Cursor, Entry, read_entries, segments
from larmspider.pipelines.records import RecordLog

DEAD_LOG_COLUMNS = ("time", "url", "stored", "reason")
FIRST_SECS, MAX_SECS = 1.0, 60.0
"""Until a batch is sent again: doubled with each failure in a row, 25 % more or less."""
_NICE = 5
MAX_WAIT_SECS = 600.0
"""Where the receiver says how long."""


def dead_log(receiver: str) -> str:
    """The name of its log of dead letters."""
    return f"{receiver}.dead.log"


class StoppedError(Exception):
    """The crawl has ended meanwhile; the cursor says from where on to send again."""


class Sender:
    """Sends what lies between the cursor and what is committed, batch by batch."""

    def __init__(
        self,
        receiver: Receiver,
        directory: Path,
        wait: Callable[[float], bool],
        clock: Callable[[], float] = time.time,
    ) -> None:
        """``wait`` waits so many seconds and says whether to go on."""
        self.receiver, self.directory = receiver, directory
        self.name = type(receiver).__name__
        self.cursor = Cursor.read(directory, self.name) or Cursor()
        self.cursor.trouble = ""  # of an earlier run
        self._wait, self._clock = wait, clock
        self._connected = False
        self._failures = 0
        self._most = receiver.max_entries
        """Entries of a batch, fewer where the receiver does not take so many."""

    def send_up_to(self, end: int) -> None:
        """Raises StoppedError; CrawlDirError where the spool is damaged, OSError where the cursor
        cannot be written."""
        oldest = min(segments(self.directory), default=0)
        self.cursor.offset = max(self.cursor.offset, oldest)
        for batch in self._batches(read_entries(self.directory, self.cursor.offset, end)):
            self._deliver(batch)
            self.cursor.offset = batch[-1].end
            self.cursor.number += len(batch)
            self.cursor.write(self.directory, self.name)
            if not self._wait(0):
                raise StoppedError

    def _batches(self, entries: Iterator[Entry]) -> Iterator[list[Entry]]:
        batch: list[Entry] = []
        size = 0
        for entry in entries:
            if batch and (len(batch) >= self._most or size + entry.size > self.receiver.max_bytes):
                yield batch
                batch, size = [], 0
            batch.append(entry)
            size += entry.size
        if batch:
            yield batch

    def _deliver(self, batch: list[Entry]) -> None:
        """Until the receiver has each entry, or has refused it."""
        groups = [batch]
        while groups:
            group = groups.pop()
            try:
                left = self._send(group)
            except BatchError as error:
                if len(group) == 1:
                    self._bury(group[0], str(error))
                    continue
                half = len(group) // 2
                groups += [group[half:], group[:half]]
                self._most = max(1, half)
            except (AwayError, RefusedError) as error:
                groups.append(group)
                self.failed(str(error), getattr(error, "secs", 0.0))
            except Exception as error:  # noqa: BLE001 - a fault of the receiver's loses nothing
                groups.append(group)
                self.failed(f"{type(error).__name__}: {error}")
            else:
                self._most = min(self.receiver.max_entries, self._most + 1 + self._most // 8)
                if left:
                    groups.append(left)
                if len(left) == len(group):
                    self.failed("it takes nothing now")
                else:
                    self._failures, self.cursor.trouble = 0, ""

    def _send(self, group: Sequence[Entry]) -> list[Entry]:
        """What is to be sent again."""
        readable = []
        for entry in group:
            try:
                entry.body  # noqa: B018 - read here: a damaged page file is no fault of others
            except CrawlDirError as error:
                self._bury(entry, str(error))
            else:
                readable.append(entry)
        if not readable:
            return []
        if not self._connected:
            self.receiver.connect()
            self._connected = True
        sent = self.receiver.send(readable)
        for number, reason in sent.rejected.items():
            self._bury(readable[number], reason)
        self.cursor.sent += len(readable) - len(sent.rejected) - len(sent.again)
        return [readable[number] for number in sorted(sent.again)]

    def failed(self, why: str, secs: float = 0.0) -> None:
        """Say so, and wait. Raises StoppedError."""
        self._connected = False
        self.receiver.close()
        self._failures += 1
        pause = min(MAX_SECS, FIRST_SECS * 2 ** min(self._failures - 1, 10))
        pause = max(pause, min(secs, MAX_WAIT_SECS)) * random.uniform(0.75, 1.25)  # noqa: S311
        if not self.cursor.trouble:
            self.cursor.since = self._clock()
        self.cursor.trouble = printable(" ".join(why.split()))[:300]
        self.cursor.write(self.directory, self.name)
        if not self._wait(pause):
            raise StoppedError

    def _bury(self, entry: Entry, reason: str) -> None:
        """Note a dead letter. One that is sent again after a crash has another line."""
        log = RecordLog(self.directory / dead_log(self.name), DEAD_LOG_COLUMNS)
        log.append(utc(self._clock()), entry.url, utc(entry.stamp / 1_000_000), reason)
        log.close()
        log.flush()  # raises what close() met
        self.cursor.dead += 1


class _Input(threading.Thread):
    """Reads how far the crawl has committed, until the input ends."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.committed = 0
        self.ended = False
        self.changed = threading.Condition()

    def run(self) -> None:
        for line in sys.stdin.buffer:
            with self.changed:
                self.committed = json.loads(line)[0]
                self.changed.notify_all()
        with self.changed:
            self.ended = True
            self.changed.notify_all()

    def wait(self, seconds: float) -> bool:
        """Whether to go on, after so many seconds."""
        with self.changed:
            self.changed.wait_for(lambda: self.ended, seconds)
            return not self.ended

    def more_than(self, offset: int) -> int:
        """Wait until more is committed; 0 when the input ended."""
        with self.changed:
            self.changed.wait_for(lambda: self.ended or self.committed > offset)
            return 0 if self.ended else self.committed


def main() -> None:
    os.nice(_NICE)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # the crawl says when
    told: dict[str, Any] = json.loads(sys.stdin.buffer.readline() or b"{}")
    if not told:
        return
    commands = _Input()
    commands.start()
    directory = Path(told["directory"])
    receiver_class = load_object(told["receiver"].replace(":", "."))
    receiver = receiver_class.from_settings(Settings(told["settings"]))
    while True:  # the sender of a crawl that was killed may still be at its last batch
        try:
            held = lock(directory / f"{receiver_class.__name__}.lock")
            break
        except BlockingIOError:
            if not commands.wait(0.1):
                return
    sender = Sender(receiver, directory, commands.wait)
    try:
        while end := commands.more_than(sender.cursor.offset):
            try:
                sender.send_up_to(end)
            except (CrawlDirError, OSError) as error:
                sender.failed(str(error))
    except StoppedError:
        pass
    finally:
        receiver.close()
        held.close()
