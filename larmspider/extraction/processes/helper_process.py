"""Processes of our own modules that answer messages, one after the other.

    helper = HelperProcess("from ...helper_child import compare_texts; compare_texts()", "simhash")
    helper.ask([("", "a text")])                     # in a thread that may wait
    answers = await Answers.of(helper.started())     # or on the event loop
    await answers.ask([("", "a text")])

helper_child.py reads and writes the messages in the process.
"""

from __future__ import annotations

import asyncio
import math
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, Self
from zipimport import zipimporter

import larmspider
from larmspider.errors import LarmspiderError
from larmspider.extraction.processes.helper_child import packed, receive, unpacked
from larmspider.items import Page

WALL = 6
"""Times the seconds of CPU that a process may take, by the clock: the machine may be busy."""
_ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1"}
"""numpy would start one for each core: 0.05 s for two."""
_HUGE_PAGES = "glibc.malloc.hugetlb=1"
"""glibc asks Linux for pages of 2 MB in place of 4 KB, which takes 7% of the CPU off the process
that reads pages. Other C libraries do not look at it."""


def archive() -> str | None:
    """The zip file (an egg) that this package was imported from, as in sys.path; None for a
    folder."""
    spec = larmspider.__spec__
    loader = spec.loader if spec is not None else None
    return loader.archive if isinstance(loader, zipimporter) else None


def origin() -> Path:
    """The folder or zip file that this package was imported from."""
    return Path(archive() or next(iter(larmspider.__path__))).absolute()


def shadowed() -> str | None:
    """An egg on sys.path that is not used, because this package is installed, too."""
    eggs = [entry for entry in sys.path if entry.endswith(".egg")]
    return eggs[0] if eggs and archive() is None else None


class ChildPath:
    """``entries`` for sys.path of a child, to which the files ``fds`` are passed on (POSIX).

    An egg may be deleted or replaced while a job runs from it (delversion.json, addversion.json).
    The child reads a copy: an open file without a name, gone with the last process that has it.
    """

    def __init__(self) -> None:
        self.entries = list(sys.path)
        self.fds: tuple[int, ...] = ()
        self._copy: IO[bytes] | None = None
        egg = archive()
        if egg is not None and Path("/dev/fd").exists():
            self._copy = tempfile.TemporaryFile(prefix="larmspider-")  # noqa: SIM115 - see close()
            with Path(egg).open("rb") as file:
                shutil.copyfileobj(file, self._copy)
            self._copy.flush()
            self.fds = (self._copy.fileno(),)
            copy = f"/dev/fd/{self.fds[0]}"
            self.entries = [copy if entry == egg else entry for entry in self.entries]

    def close(self) -> None:
        """May be called twice. A child under way keeps its file."""
        self.fds = ()
        if self._copy is not None:
            self._copy.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class ExtractionStopped(LarmspiderError):  # noqa: N818 - nothing is wrong with the document
    """The crawl ends before a document is read; when it is continued it fetches it again."""


class ExtractionPostponed(ExtractionStopped):
    """There is no room for a document that waits for a reader; it is fetched again later."""


class ExtractionRefused(LarmspiderError):  # noqa: N818 - a decision, not a fault
    """A document needs more time or memory than allowed; the message is as in ``Page.unread``.
    ``is_costly``: it took all the time or memory, or ended its process. ``kept``: the Page so far,
    with this message, or None."""

    kept: Page | None = None

    def __init__(self, message: str, *, is_costly: bool = False) -> None:
        super().__init__(message)
        self.is_costly = is_costly


class HelperProcess:
    """A process of our own modules that answers messages, one after the other; for a thread that
    may wait (`pool`). It is started for the first message."""

    def __init__(self, program: str, name: str, fds: tuple[int, ...] = ()) -> None:
        """``program`` is the Python code of the process, ``name`` the name of the thread. ``fds``:
        open files that the process also has, under the same numbers."""
        self._program, self._fds = program, fds
        self.pool = ThreadPoolExecutor(1, thread_name_prefix=name)
        self._path = ChildPath()
        self.child: subprocess.Popen[bytes] | None = None
        """The process from `started` to `end`."""
        self.status: int | None = None
        """The exit status of the last process that ended before it had answered."""
        self.cpu_secs = 0.0
        """CPU seconds of the last ended process, and of the processes that it waited for."""
        self.closed = False

    def ask(self, message: Any, body: bytes = b"") -> Any:
        """Send ``message``, then ``body``, and return the answer. Raises EOFError or OSError if the
        process ends first; the next message starts another process. Raises ExtractionStopped."""
        child = self.started()
        assert child.stdin is not None
        assert child.stdout is not None
        try:
            with suppress(BrokenPipeError):  # the child may have written the reason
                child.stdin.write(packed(message))
                child.stdin.write(body)
                child.stdin.flush()
            return receive(child.stdout)
        except (EOFError, OSError):
            self.status = self.end()
            raise

    def close(self) -> None:
        """End the process; messages under way are dropped. May be called twice."""
        self.closed = True
        self.kill()
        self.pool.shutdown(wait=True)  # calls that wait end at once
        self.end()
        self._path.close()

    def kill(self) -> None:
        """Kill the process from another thread. A running `ask` then raises."""
        if (child := self.child) is not None:
            child.kill()

    def started(self) -> subprocess.Popen[bytes]:
        """The process. Raises ExtractionStopped."""
        if self.child is not None and self.child.poll() is not None:
            self.end()
        if self.child is None and not self.closed:
            start = f"import sys; sys.path[:] = {self._path.entries!r}; {self._program}"
            self.child = subprocess.Popen(  # noqa: S603 - our own module, by this interpreter
                [sys.executable, "-W", "ignore", "-c", start],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env=_environment(),
                pass_fds=(*self._path.fds, *self._fds),
                process_group=0,  # signals to the crawl's group are for the crawl
            )
        if self.child is None or self.closed:  # perhaps meanwhile: close() saw nothing to kill
            self.end()
            raise ExtractionStopped("the crawl is being stopped")
        return self.child

    def end(self) -> int | None:
        """End the process, if it has not ended; its exit status."""
        child, self.child = self.child, None
        if child is None:
            return None
        if child.returncode is None and hasattr(os, "killpg"):  # with its own children
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(child.pid, signal.SIGKILL)
        child.kill()
        for pipe in (child.stdin, child.stdout):
            if pipe is not None:
                with suppress(OSError):  # unwritten data
                    pipe.close()
        self.cpu_secs = 0.0
        if child.returncode is None and hasattr(os, "wait4"):
            with suppress(ChildProcessError):  # another thread has waited for it
                _, status, usage = os.wait4(child.pid, 0)
                child.returncode = os.waitstatus_to_exitcode(status)
                self.cpu_secs = usage.ru_utime + usage.ru_stime
        return child.wait()


def _environment() -> dict[str, str]:
    """The environment for the process. The user's GLIBC_TUNABLES come last, and win."""
    tunables = f"{_HUGE_PAGES}:{os.environ.get('GLIBC_TUNABLES', '')}"
    return os.environ | _ONE_THREAD | {"GLIBC_TUNABLES": tunables.rstrip(":")}


class Answers(asyncio.Protocol):
    """The pipes of a process that answers messages in their order, on the event loop."""

    def __init__(self) -> None:
        self._received = bytearray()
        self._waiting: deque[tuple[asyncio.Future[Any], float]] = deque()
        """Answers to come, and when each is late."""
        self._timer: asyncio.TimerHandle | None = None
        self._reader: asyncio.ReadTransport | None = None
        self._writer: asyncio.WriteTransport | None = None

    @classmethod
    async def of(cls, child: subprocess.Popen[bytes]) -> Self:
        """The Answers of a process; closes its pipes here. Raises ExtractionStopped if they were
        closed meanwhile."""
        loop, answers = asyncio.get_running_loop(), cls()
        assert child.stdin is not None
        assert child.stdout is not None
        if not child.stdout.closed:
            answers._reader, _ = await loop.connect_read_pipe(lambda: answers, child.stdout)
        if child.stdin.closed:
            answers.close()
            raise ExtractionStopped("the crawl is being stopped")
        answers._writer, _ = await loop.connect_write_pipe(asyncio.Protocol, child.stdin)
        return answers

    async def ask(self, message: Any, body: bytes = b"", seconds: float = math.inf) -> Any:
        """The answer to ``message``, which ``body`` follows. Raises EOFError if the process
        ends first. An answer that takes more ``seconds`` ends all that wait."""
        if self._writer is None or self._writer.is_closing():
            raise EOFError
        loop = asyncio.get_running_loop()
        answer, end = loop.create_future(), loop.time() + seconds
        self._waiting.append((answer, end))
        if seconds < math.inf and (self._timer is None or end < self._timer.when()):
            self._look_at(end)
        self._writer.write(packed(message) + body)
        return await answer

    def data_received(self, data: bytes) -> None:
        self._received += data
        while (found := unpacked(self._received)) is not None:
            message, size = found
            del self._received[:size]
            answer, _ = self._waiting.popleft()
            if not answer.done():  # the waiting task was cancelled
                answer.set_result(message)

    def connection_lost(self, exc: Exception | None) -> None:
        self.close()
        while self._waiting:
            answer, _ = self._waiting.popleft()
            if not answer.done():
                answer.set_exception(EOFError())

    def _look_at(self, end: float) -> None:
        """One timer for all answers: one for each costs a page 0.03 ms."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_at(end, self._look)

    def _look(self) -> None:
        self._timer = None
        first = min((end for _, end in self._waiting), default=math.inf)
        if first <= asyncio.get_running_loop().time():
            self.connection_lost(None)
        elif first < math.inf:
            self._look_at(first)

    def close(self) -> None:
        """Waiting callers get an error soon. Unwritten data is dropped: the pipe might be closed,
        and its number be another file's, before it could be written. May be called twice."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._writer is not None and not self._writer.is_closing():
            self._writer.abort()
        self._writer = None
        if self._reader is not None:
            self._reader.close()
