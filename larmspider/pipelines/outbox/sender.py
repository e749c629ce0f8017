"""The process that sends to one receiver; outbox.py starts it, and ends it by closing its input.

Its first line of input names the receiver and the outbox, each further line the crawl's committed
position. The results are in the receiver's `Cursor`, and in its log of dead letters.

A server is not trusted with this process: it ends where it needs more memory or time than a batch
may take, and the next one sends the batch again.
"""

from __future__ import annotations

import json
import os
import random
import re
import resource
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scrapy.settings import Settings
from scrapy.utils.misc import load_object

from larmspider.errors import ConfigError, CrawlDirError, is_panic
from larmspider.files import lock
from larmspider.formatting import counted, utc
from larmspider.pipelines.outbox.receiver import (
    AwayError,
    BatchError,
    Receiver,
    RefusedError,
    Unfit,
)
from larmspider.pipelines.outbox.spool import (
    FINISH,
    Cursor,
    Entry,
    outbox_of,
    read_entries,
    segments,
)
from larmspider.pipelines.records import RecordLog
from larmspider.redaction import keep_secrets_of, keep_secrets_of_environment, told

DEAD_LOG_COLUMNS = ("time", "url", "stored", "reason")
FIRST_SECS, MAX_SECS = 1.0, 60.0
"""Seconds until a failed batch is sent again: doubled with each failure, 25% more or less."""
_NICE = 5
MAX_WAIT_SECS = 600.0
"""Most seconds that a receiver may ask the sender to wait."""
CONNECT_SECS, BATCH_SECS = 120.0, 1_800.0
"""How long connect() and send() may take: 64 MB at 0.3 Mbit/s are there after 1,700 s. Then the
process ends."""
_LATE = 70
"""The sender's exit status after that time."""
MEMORY_BYTES = 2_000_000_000
"""Limit of the process; a batch has up to 64 MB, in a few copies."""
_VALUE = re.compile(r"""'[^']*'|"[^"]*"|`[^`]*`|\[[^\]]*\]|\([^)]*\)|\S*(?:://|\d)\S*""")
_WORD = re.compile(r"[^\W\d]+")
_KIND_WORDS = 8
_REASON = 500
"""Characters of the reason of a dead letter."""


def dead_log(receiver: str) -> str:
    """The name of its log of dead letters."""
    return f"{receiver}.dead.log"


class StoppedError(Exception):
    """The crawl has ended meanwhile; the cursor says from where on to send again."""


@dataclass(slots=True)
class _Refused:
    """``unfit`` as in BatchError."""

    entry: Entry
    reason: str
    unfit: bool


def _kind_of(reason: str) -> str:
    """A reason without what is an entry's: the first words, but no names, numbers and values.

    >>> _kind_of("400 strict_mapping: field [a1] of 'http://h/1' is not allowed")
    'strict_mapping field of is not allowed'
    """
    words = _WORD.findall(_VALUE.sub(" ", reason))
    return " ".join(words[:_KIND_WORDS])


class Sender:
    """Sends the entries from the cursor to the committed position, batch by batch."""

    def __init__(
        self,
        receiver: Receiver,
        directory: Path,
        wait: Callable[[float], bool],
        clock: Callable[[], float] = time.time,
        committed: Callable[[], int] = lambda: 0,
    ) -> None:
        """``wait`` waits a number of seconds and returns whether to continue; ``committed`` returns
        the crawl's position."""
        self.receiver, self.directory = receiver, directory
        self.name = type(receiver).__name__
        self.cursor = Cursor.read(directory, self.name) or Cursor()
        self.cursor.trouble = ""  # of an earlier run
        self._wait, self._clock, self._committed = wait, clock, committed
        self._alone: str | None = None
        """The kind of reason for which an entry was refused alone, until another one is taken."""
        self._connected = False
        self._failures = 0
        receiver.begin(directory)
        self._most = receiver.max_entries
        """Entries of a batch, fewer if the receiver refuses larger batches."""

    def send_up_to(self, end: int) -> None:
        """Raises StoppedError; CrawlDirError if the spool is damaged, OSError if the cursor
        cannot be written."""
        oldest = min(segments(self.directory), default=0)
        self.cursor.offset = max(self.cursor.offset, oldest)
        while self.cursor.offset < end:
            self._send_on(max(end, self._committed()))

    def _send_on(self, end: int) -> None:
        """Send until all entries are sent, or until none is taken; then wait once."""
        refused: list[_Refused] = []  # since an entry was taken; the cursor is before them
        number = 0
        for batch in self._batches(read_entries(self.directory, self.cursor.offset, end)):
            sent = self.cursor.sent
            refused += self._deliver(batch)
            number += len(batch)
            unsure = [one for one in refused if not one.unfit]
            if unsure and self.cursor.sent == sent:
                if number < 2 * self.receiver.max_entries:
                    continue  # a batch of bad pages? the next one says
                break
            self._settle(batch[-1].end, number, refused)
            refused, number = [], 0
        if refused and self._is_receivers_fault(refused):
            pages = counted(len(refused), "entry", "entries")
            self.failed(f"it refuses everything ({pages}): {refused[0].reason}")
        elif refused:
            self._alone = _kind_of(refused[-1].reason)
            self._settle(refused[-1].entry.end, number, refused)

    def _is_receivers_fault(self, refused: Sequence[_Refused]) -> bool:
        """Whether the receiver is at fault, after it took no entry of a batch. It is if all entries
        of a batch were refused for one reason, or if a single entry was refused for the same reason
        as the entry before."""
        kinds = [_kind_of(one.reason) for one in refused if not one.unfit]
        return len(set(kinds)) == 1 and (len(kinds) > 1 or kinds[0] == self._alone)

    def _settle(self, end: int, number: int, refused: Sequence[_Refused]) -> None:
        """Entries up to ``end`` were taken, except the refused ones: dead letters. Raises
        StoppedError."""
        for one in refused:
            self._bury(one.entry, one.reason)
        self.cursor.offset = end
        self.cursor.number += number
        self._note_left()

    def _note_left(self) -> None:
        self.cursor.left = self.receiver.left
        self.cursor.trouble = ""
        self.cursor.write(self.directory, self.name)
        if not self._wait(0):
            raise StoppedError

    def catch_up(self) -> None:
        """Let the receiver write its remaining data. Raises StoppedError."""
        while self.cursor.left:
            self._attempt(self.receiver.catch_up)

    def renew_access(self) -> None:
        """Let the receiver write documents whose access lists have changed. Raises StoppedError,
        CrawlDirError, OSError."""
        while self.receiver.behind():
            self._attempt(self.receiver.renew_access)

    def _attempt(self, act: Callable[[], object]) -> None:
        try:
            self._connect()
            with self._at_most(BATCH_SECS):
                act()
        except (AwayError, RefusedError, BatchError) as error:
            self.failed(str(error), getattr(error, "secs", 0.0))
        except BaseException as error:
            if not (isinstance(error, Exception) or is_panic(error)):
                raise
            self.failed(in_words(error))
        else:
            self._failures = 0
            self._note_left()

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

    def _deliver(self, batch: list[Entry]) -> list[_Refused]:
        """Send until the receiver has taken or refused each entry. Returns the refused entries, in
        order."""
        refused: list[_Refused] = []
        groups = [batch]
        while groups:
            group = groups.pop()
            try:
                left = self._send(group, refused)
            except BatchError as error:
                if len(group) == 1:
                    refused.append(_Refused(group[0], str(error), unfit=error.unfit))
                    continue
                half = len(group) // 2
                groups += [group[half:], group[:half]]
                self._most = max(1, half)
            except (AwayError, RefusedError) as error:
                groups.append(group)
                self.failed(str(error), getattr(error, "secs", 0.0))
            except BaseException as error:  # a fault of the receiver's loses nothing
                if not (isinstance(error, Exception) or is_panic(error)):
                    raise
                groups.append(group)
                self.failed(in_words(error))
            else:
                self._most = min(self.receiver.max_entries, self._most + 1 + self._most // 8)
                if left:
                    groups.append(left)
                if len(left) == len(group):
                    self.failed("it accepts nothing now")
        return sorted(refused, key=lambda one: one.entry.end)

    def _send(self, group: Sequence[Entry], refused: list[_Refused]) -> list[Entry]:
        """Entries to be sent again; entries that are ``refused`` are added there."""
        readable = []
        for entry in group:
            try:
                entry.body  # noqa: B018 - read here: a damaged page file fails its own entry alone
            except CrawlDirError as error:
                refused.append(_Refused(entry, str(error), unfit=True))
            else:
                readable.append(entry)
        if not readable:
            return []
        self._connect()
        with self._at_most(BATCH_SECS):
            sent = self.receiver.send(readable)
        for number, reason in sent.rejected.items():
            unfit = isinstance(reason, Unfit)
            refused.append(_Refused(readable[number], reason, unfit=unfit))
        if taken := len(readable) - len(sent.rejected) - len(sent.again):
            self.cursor.sent += taken
            self.cursor.trouble = ""
            self._failures, self._alone = 0, None
        return [readable[number] for number in sorted(sent.again)]

    def _connect(self) -> None:
        if not self._connected:
            with self._at_most(CONNECT_SECS):
                self.receiver.connect()
            self._connected = True

    @contextmanager
    def _at_most(self, seconds: float) -> Iterator[None]:
        """The process ends where it takes longer: no library can be stopped in the middle."""

        def end() -> None:
            self.cursor.trouble = f"no answer after {seconds:,.0f} s"
            self.cursor.since = self._clock()
            with suppress(OSError):
                self.cursor.write(self.directory, self.name)
            os._exit(_LATE)

        timer = threading.Timer(seconds, end)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()

    def failed(self, why: str, secs: float = 0.0) -> None:
        """Report the failure, and wait. Raises StoppedError."""
        self._connected = False
        with suppress(Exception):  # it is gone anyway
            self.receiver.close()
        self._failures += 1
        pause = min(MAX_SECS, FIRST_SECS * 2 ** min(self._failures - 1, 10))
        pause = max(pause, min(secs, MAX_WAIT_SECS)) * random.uniform(0.75, 1.25)  # noqa: S311
        if not self.cursor.trouble:
            self.cursor.since = self._clock()
        self.cursor.trouble = told(why)
        self.cursor.write(self.directory, self.name)
        if not self._wait(pause):
            raise StoppedError

    def _bury(self, entry: Entry, reason: str) -> None:
        """Note a dead letter. A dead letter that is sent again after a crash gets a second line."""
        log = RecordLog(outbox_of(self.directory) / dead_log(self.name), DEAD_LOG_COLUMNS)
        log.append(
            utc(self._clock()), entry.url, utc(entry.stamp / 1_000_000), told(reason, _REASON)
        )
        log.close()
        log.flush()  # raises what close() met
        self.cursor.dead += 1


class _Input(threading.Thread):
    """Reads how far the crawl has committed, and FINISH, until the input ends."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.committed = 0
        self.told = False
        """Whether the crawl has had a checkpoint since `more_than` ended."""
        self.finishing = False
        self.ended = False
        self.changed = threading.Condition()

    def run(self) -> None:
        for line in sys.stdin.buffer:
            message = json.loads(line)
            with self.changed:
                if message == FINISH:
                    self.finishing = True
                else:
                    self.committed = message[0]
                self.told = True
                self.changed.notify_all()
        with self.changed:
            self.ended = True
            self.changed.notify_all()

    def wait(self, seconds: float) -> bool:
        """Wait ``seconds``. Returns whether to continue."""
        with self.changed:
            self.changed.wait_for(lambda: self.ended, seconds)
            return not self.ended

    def more_than(self, cursor: Cursor) -> bool:
        """Wait until the crawl has had a checkpoint, more is committed, or something is left at the
        end; False when the input ended."""
        with self.changed:
            self.changed.wait_for(
                lambda: (
                    self.ended
                    or self.told
                    or self.committed > cursor.offset
                    or bool(self.finishing and cursor.left)
                )
            )
            self.told = False
            return not self.ended


def in_words(error: BaseException) -> str:
    """An error that the receiver has not foreseen, as of a library that was sent nonsense."""
    kinds: dict[type[BaseException], str] = {
        RecursionError: "its answer is nested too deeply",
        MemoryError: "its answer takes too much memory",
    }
    return kinds.get(type(error)) or f"{type(error).__name__}: {error}"


def _receiver_of(message: dict[str, Any]) -> Receiver:
    """Make the receiver, and set the limits of this process. Raises ConfigError."""
    keep_secrets_of_environment()
    for name, value in message["settings"].items():
        keep_secrets_of(name, value)
    with suppress(OSError, ValueError):  # a lower one holds already
        _, hard = resource.getrlimit(resource.RLIMIT_DATA)
        resource.setrlimit(resource.RLIMIT_DATA, (MEMORY_BYTES, hard))
    receiver_class = load_object(message["receiver"].replace(":", "."))
    receiver: Receiver = receiver_class.from_settings(Settings(message["settings"]))
    return receiver


def try_to_connect() -> None:
    """Whether the receiver of the first line of input can be used, as one line of JSON: the kind of
    the error ("" for none), and its text."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints is no answer
    found = ["", ""]
    try:
        receiver = _receiver_of(json.loads(sys.stdin.buffer.readline()))
        receiver.connect()
        receiver.close()
    except (AwayError, RefusedError, ConfigError) as error:
        found = ["away" if isinstance(error, AwayError) else "refused", str(error)]
    except BaseException as error:  # noqa: BLE001 - whatever a library does with an answer
        found = ["refused", in_words(error)]
    answers.write(json.dumps([found[0], told(found[1])]).encode() + b"\n")
    answers.flush()
    os._exit(0)  # a thread of a library may wait for ever


def main() -> None:
    os.nice(_NICE)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # the crawl says when
    message: dict[str, Any] = json.loads(sys.stdin.buffer.readline() or b"{}")
    if not message:
        return
    commands = _Input()
    commands.start()
    directory = Path(message["directory"])
    receiver = _receiver_of(message)
    name = type(receiver).__name__
    while True:  # the sender of a crawl that was killed may still be at its last batch
        try:
            held = lock(directory / f"{name}.lock")
            break
        except BlockingIOError:
            if not commands.wait(0.1):
                return
    sender = Sender(receiver, directory, commands.wait, committed=lambda: commands.committed)
    try:
        while commands.more_than(sender.cursor):
            try:
                sender.send_up_to(commands.committed)
                sender.renew_access()
                if commands.finishing:
                    sender.catch_up()
            except (CrawlDirError, OSError) as error:
                sender.failed(str(error))
    except StoppedError:
        pass
    finally:
        receiver.close()
        held.close()
