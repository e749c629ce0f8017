"""The outbox of a running crawl: writes the spool, runs a sender for each receiver, and says how
far they are.

Entries up to the last checkpoint may be sent. Segments that every receiver has are removed. While
more waits than LARM_OUTBOX_BYTES nothing is fetched. At the end the crawl waits for receivers that
take pages, not for receivers that are away.
"""

from __future__ import annotations

import asyncio
import json
import logging
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, ClassVar
from weakref import WeakKeyDictionary

import scrapy.signals

from larmspider import options, program, signals, stats
from larmspider.extraction.processes.helper_process import ChildPath
from larmspider.formatting import counted, size
from larmspider.items import Page, Removed
from larmspider.pipelines.outbox.facts import IndexFacts
from larmspider.pipelines.outbox.spool import (
    FINISH,
    FOLDER,
    Cursor,
    Position,
    Spool,
    cursors,
    segments,
    write_committed,
)
from larmspider.redaction import keep_secrets_of, told
from larmspider.workdir.left import changing
from larmspider.workdir.restricted import restricted_of_run

if TYPE_CHECKING:
    from typing import Self

    from scrapy.crawler import Crawler

    from larmspider.options import Settings
    from larmspider.pipelines.outbox.receiver import Receiver

logger = logging.getLogger(__name__)

_LOOK_SECS = 0.2
_AGAIN_SECS = 5.0
"""Seconds until a sender that ended is started again."""
_STOP_SECS = 5.0
"""A crawl that stops waits 5 s for receivers, and a sender for its batch."""
_TELL_SECS = 10.0
_PROGRAM = "from larmspider.pipelines.outbox.sender import main; main()"
_TRIAL = "from larmspider.pipelines.outbox.sender import try_to_connect; try_to_connect()"
_KILLED = "killed"
_TRIAL_SECS = 90.0
"""How long a receiver may take to be tried."""
_SAID_LINES, _SAID_BYTES = 20, 4_096
"""Limits of the lines that a sender prints on stderr."""


def tried(receiver: type[Receiver], settings: Settings) -> tuple[str, str]:
    """Whether a receiver can be used: "" if it can, else "away" or "refused"; and the reason. A
    separate process tries, so that the crawl never parses a server's answer. If that process is
    killed, another one tries once more."""
    for _ in range(2):
        kind, why = _tried(receiver, settings)
        if kind != _KILLED:
            return kind, why
    return "away", why


def _tried(receiver: type[Receiver], settings: Settings) -> tuple[str, str]:
    path = ChildPath()
    try:
        start = f"import sys; sys.path[:] = {path.entries!r}; {_TRIAL}"
        child = subprocess.Popen(  # noqa: S603 - our own module, by this interpreter
            [sys.executable, "-c", start],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            pass_fds=path.fds,
        )
        try:
            message = json.dumps(_message(receiver, settings)).encode() + b"\n"
            answer, _ = child.communicate(message, _TRIAL_SECS)
        except subprocess.TimeoutExpired:
            return "away", f"no answer after {_TRIAL_SECS:g} s"
        finally:
            child.kill()
            child.communicate()
    finally:
        path.close()
    try:
        kind, why = json.loads(answer)
    except ValueError:
        if child.returncode == -signal.SIGKILL:
            return _KILLED, "the process that asks it was killed"
        return "refused", f"its answer ends the process that reads it ({child.returncode})"
    return kind, why


def _message(receiver: type[Receiver], settings: Settings) -> dict[str, Any]:
    for name in receiver.settings:  # this process may log them
        keep_secrets_of(name, settings.get(name))
    return {
        "receiver": f"{receiver.__module__}:{receiver.__qualname__}",
        "settings": {name: options.raw(settings, name) for name in receiver.settings},
    }


class SenderProcess:
    """The process that sends to one receiver; it ends when this one does."""

    def __init__(self, receiver: type[Receiver], settings: Settings, directory: Path) -> None:
        self.name = receiver.__name__
        self._message = _message(receiver, settings) | {"directory": str(directory)}
        self._path = ChildPath()
        self._child: subprocess.Popen[bytes] | None = None
        self._begun = -_AGAIN_SECS
        self._finishing = False
        self.committed = Position()

    @property
    def pid(self) -> int:
        """The pid of the sender; 0 while there is no sender."""
        return self._child.pid if self._child is not None else 0

    def keep_running(self) -> None:
        """Start it, unless it runs or ended only just now."""
        if self._child is not None and self._child.poll() is not None:
            logger.warning("The sender for %s ended (%s)", self.name, self._child.returncode)
            if self._child.returncode not in (0, -signal.SIGKILL):
                self._note(f"the sender ended ({self._child.returncode}), maybe by an answer")
            self.end(0)
        if self._child is None and time.monotonic() >= self._begun + _AGAIN_SECS:
            self._begun = time.monotonic()
            start = f"import sys; sys.path[:] = {self._path.entries!r}; {_PROGRAM}"
            self._child = subprocess.Popen(  # noqa: S603 - our own module, by this interpreter
                [sys.executable, "-c", start],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                pass_fds=self._path.fds,
                process_group=0,  # signals to the crawl's group are for the crawl
            )
            threading.Thread(target=self._relay, args=[self._child.stderr], daemon=True).start()
            self._tell(self._message)
            self._tell(self.committed)
            if self._finishing:
                self._tell(FINISH)

    def _note(self, trouble: str) -> None:
        """Write the trouble for commands and pages, unless the sender itself has written it."""
        directory = Path(self._message["directory"])
        cursor = Cursor.read(directory, self.name) or Cursor()
        if not cursor.trouble:
            cursor.trouble, cursor.since = trouble, time.time()
            with suppress(OSError):
                cursor.write(directory, self.name)

    def may_send(self, committed: Position) -> None:
        """Let the senders send the entries before this position."""
        self.committed = committed
        self._tell(committed)

    def finish(self) -> None:
        """Tell the sender that no more entries come, so that the receiver catches up."""
        self._finishing = True
        self._tell(FINISH)

    def _tell(self, message: Any) -> None:
        if self._child is not None and self._child.stdin is not None:
            with suppress(OSError):  # it has ended: the next one gets the position
                self._child.stdin.write(json.dumps(message).encode() + b"\n")
                self._child.stdin.flush()

    def _relay(self, errors: IO[bytes]) -> None:
        """Log the lines of a sender's stderr: a traceback, or messages of a library."""
        with errors, suppress(OSError, ValueError):
            for number, line in enumerate(iter(lambda: errors.readline(_SAID_BYTES), b"")):
                if number < _SAID_LINES and (text := told(line.decode("utf-8", "replace"))):
                    logger.warning("The sender for %s: %s", self.name, text)

    def let_go(self) -> None:
        """Let it end after the batch under way."""
        if self._child is not None and self._child.stdin is not None:
            with suppress(OSError):
                self._child.stdin.close()

    def end(self, seconds: float) -> None:
        """Wait for the process, and kill it if it takes longer."""
        self.let_go()
        if self._child is not None:
            with suppress(subprocess.TimeoutExpired):
                self._child.wait(seconds)
            self._child.kill()
            self._child.wait()
            self._child = None

    def close(self) -> None:
        self.end(_STOP_SECS)
        self._path.close()


class Outbox:
    """One for each crawler, whatever the number of receivers."""

    _all: ClassVar[WeakKeyDictionary[Crawler, Outbox]] = WeakKeyDictionary()

    def __init__(self, crawler: Crawler) -> None:
        settings = crawler.settings
        self.crawler = crawler
        self.max_bytes = options.integer(settings, "LARM_OUTBOX_BYTES", minimum=1)
        self.end_secs = options.seconds(settings, "LARM_OUTBOX_END_SECS", minimum=0)
        self.directory = options.larm_dir(settings) / FOLDER
        self.spool = Spool(self.directory)
        self.senders: dict[str, SenderProcess] = {}
        self._wants_body = self._wants_index = False
        self._facts: IndexFacts | None = None
        self._cursors: dict[str, Cursor] = {}
        self._before: dict[str, Cursor] = {}
        """Cursors when this run began."""
        self._watch: asyncio.Task[None] | None = None
        self._held = ""
        crawler.signals.connect(self.spider_closed, signal=scrapy.signals.spider_closed)

    @classmethod
    def of(cls, crawler: Crawler) -> Self:
        found = cls._all.get(crawler)
        if found is None:
            found = cls._all[crawler] = cls(crawler)
        return found  # type: ignore[return-value]

    def add(self, receiver: type[Receiver]) -> bool:
        """Whether it is the first one."""
        first = not self.senders
        process = SenderProcess(receiver, self.crawler.settings, self.directory)
        self.senders[process.name] = process
        self._wants_body |= receiver.wants_body
        self._wants_index |= receiver.wants_index
        return first

    # the spool, as a store

    def recover(self, position: bytes) -> None:
        at = Position.unpack(position)
        self.spool.recover(at)
        for sender in self.senders.values():
            sender.committed = at

    def open(self) -> None:
        """Open the outbox. Called once for each receiver."""
        if self._watch is not None:
            return
        options.writable_dir(self.directory.parent)
        self.spool.open()
        if self._wants_index:
            self._facts = IndexFacts.of_run(self.crawler.settings)
        if self.senders:
            self._name_readers()
            self._take_up_cursors()
            self._watch = asyncio.get_running_loop().create_task(self._keep_sending())

    def _name_readers(self) -> None:
        """Log which receivers get pages that not all readers may see."""
        settings, names = self.crawler.settings, ", ".join(self.senders)
        rules = ("LARM_ACCESS_RULES", "LARM_ACCESS_SENT")
        if found := [name for name in rules if options.mapping(settings, name)]:
            logger.warning(
                "Pages with access lists (%s) are sent to %s as all others are: every reader of"
                " these servers can see them (docs/rights.md)",
                ", ".join(found),
                names,
            )
        hosts = restricted_of_run(settings)
        if hosts:
            logger.warning(
                "Pages of restricted hosts (%s) are sent to %s as all others are: every reader of"
                " these servers can see them (docs/stores.md)",
                f"{hosts[0]} and {len(hosts) - 1:,} more" if len(hosts) > 1 else hosts[0],
                names,
            )

    def _take_up_cursors(self) -> None:
        end = self.spool.end
        write_committed(self.directory, end)
        oldest = min(segments(self.directory), default=0)
        for name, cursor in cursors(self.directory).items():
            if name in self.senders and cursor.offset <= end.offset:
                self._cursors[name] = cursor
            elif name not in self.senders:
                (self.directory / f"{name}.json").unlink()
                if cursor.offset < end.offset:
                    logger.warning(
                        "%s is no longer in ITEM_PIPELINES: %s that waited in the outbox for it"
                        " are dropped",
                        *(name, counted(end.number - cursor.number, "entry", "entries")),
                    )
        for name in self.senders:
            if name not in self._cursors:
                # what is still here is sent to a new receiver, too
                cursor = self._cursors[name] = Cursor(oldest, 0 if oldest == 0 else end.number)
                cursor.write(self.directory, name)
        self._before = dict(self._cursors)

    def append(self, item: Page | Removed) -> None:
        self.spool.append(item, time.time(), body=self._wants_body, facts=self._facts)

    def flush(self) -> bytes:
        return self.spool.flush().pack()

    async def sync(self) -> None:
        await self.spool.sync()

    def close_spool(self) -> None:
        self.spool.close()

    # what is sent

    def committed(self, position: bytes) -> None:
        """The entries before the position may be sent."""
        at = Position.unpack(position)
        with suppress(OSError):  # only commands read it
            write_committed(self.directory, at)
        for sender in self.senders.values():
            sender.may_send(at)

    @property
    def waiting_bytes(self) -> int:
        """Bytes that wait for the slowest receiver."""
        slowest = min((one.offset for one in self._cursors.values()), default=0)
        return self.spool.end.offset - slowest

    async def _keep_sending(self) -> None:
        while True:
            try:
                self.look()
            except OSError as error:  # no process can be started, or a full disk
                logger.error("The outbox does not send now: %s", error)
                await asyncio.sleep(_AGAIN_SECS)
            await asyncio.sleep(_LOOK_SECS)

    def look(self) -> None:
        """Take up how far the receivers are."""
        for name, sender in self.senders.items():
            sender.keep_running()
            found = Cursor.read(self.directory, name)
            if found is not None:
                self._say(name, self._cursors[name].trouble, found)
                self._cursors[name] = found
            self._count(name)
        self.spool.forget(min(one.offset for one in self._cursors.values()))
        self._hold()

    def _say(self, name: str, before: str, now: Cursor) -> None:
        if now.trouble and now.trouble != before:
            logger.warning("%s: %s; %s", name, now.trouble, self._waiting(name, now))
        elif before and not now.trouble:
            logger.info("%s takes pages again; %s", name, self._waiting(name, now))

    def _waiting(self, name: str, cursor: Cursor) -> str:
        entries = counted(max(0, self.spool.end.number - cursor.number), "entry", "entries")
        waiting = f"{entries} ({size(self.spool.end.offset - cursor.offset)}) in the outbox"
        if cursor.left:
            waiting += f" and {counted(cursor.left, 'page')} with other link texts"
        return waiting

    def _count(self, name: str) -> None:
        assert self.crawler.stats is not None
        now, before = self._cursors[name], self._before[name]
        for key, number in (
            (stats.OUTBOX_SENT, now.sent - before.sent),
            (stats.OUTBOX_DEAD, now.dead - before.dead),
            (stats.OUTBOX_WAITING, self.spool.end.number - now.number),
        ):
            self.crawler.stats.set_value(key.format(receiver=name), max(0, number))

    def _hold(self) -> None:
        """Let the crawl wait while the outbox is full, and continue when a tenth of it is free."""
        waiting = self.waiting_bytes
        if waiting < (0.9 if self._held else 1) * self.max_bytes:
            held = ""
        else:
            name, cursor = min(self._cursors.items(), key=lambda one: one[1].offset)
            held = (
                f"{name}, {cursor.trouble or 'which is slower than the crawl'}: the outbox is full,"
                f" {size(waiting)} (LARM_OUTBOX_BYTES)"
            )
        if held and not self._held:
            logger.warning("Nothing is fetched until there is room: waiting for %s", held)
        elif self._held and not held:
            logger.info("The outbox has room again: the crawl continues")
        if held != self._held:
            self.crawler.signals.send_catch_log(signals.hold, why=held)
        self._held = held

    # the end

    async def spider_closed(self, reason: str) -> None:
        """Wait while receivers take pages; the remaining pages wait for the next run."""
        if self._watch is not None:
            with changing(self.directory.parent, f"{FOLDER}/*"):  # the run has ended without them
                await self._end_senders(self._watch, reason)

    async def _end_senders(self, watch: asyncio.Task[None], reason: str) -> None:
        patience = self.end_secs if reason == "finished" else min(self.end_secs, _STOP_SECS)
        loop = asyncio.get_running_loop()
        progress = told = loop.time()
        seen = dict(self._cursors)
        for sender in self.senders.values():
            sender.finish()
        while late := self._late():
            await asyncio.sleep(_LOOK_SECS)
            now = loop.time()
            if any(_place(self._cursors[name]) != _place(seen[name]) for name in late):
                seen, progress = dict(self._cursors), now
            if now > progress + patience:
                break
            if now > told + _TELL_SECS:
                told = now
                waiting = [f"{name}: {self._waiting(name, self._cursors[name])}" for name in late]
                logger.info("Waiting for receivers: %s", "; ".join(waiting))
        watch.cancel()
        for sender in self.senders.values():
            sender.let_go()
        for sender in self.senders.values():
            await asyncio.to_thread(sender.close)
        for name in self.senders:
            self._cursors[name] = Cursor.read(self.directory, name) or self._cursors[name]
            self._count(name)
        for name in self._late():
            logger.warning(
                f"%s has not taken %s%s; the same command, or {program.NAME} outbox --send,"
                " sends them",
                *(name, self._waiting(name, self._cursors[name])),
                f" ({self._cursors[name].trouble})" if self._cursors[name].trouble else "",
            )

    def _late(self) -> list[str]:
        """The receivers that have not taken all committed entries."""
        return [
            name
            for name, cursor in self._cursors.items()
            if cursor.left or cursor.offset < self.senders[name].committed.offset
        ]


def _place(cursor: Cursor) -> tuple[int, int]:
    return cursor.offset, cursor.left
