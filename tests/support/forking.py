"""Runs ``scrapy`` commands in processes that have imported it already, which is most of a start.

    fork_server().run(["explain", "http://h/"], folder, environment, timeout=60)

One process imports Scrapy and larmspider and does nothing else; each command is a fork of it, with
a working directory, an environment, output and an exit status of its own. A start from nothing is
tested by whatever begins processes by itself: ``scrapy workers``, tests/deploy, tests/examples.
"""

from __future__ import annotations

import atexit
import gc
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import traceback
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import IO, Any, NoReturn

PROJECT = Path(__file__).parents[2]
_MESSAGE_BYTES = 1 << 17
_COMPONENTS = ("SPIDER_MIDDLEWARES", "DOWNLOADER_MIDDLEWARES", "ITEM_PIPELINES", "EXTENSIONS")
_CLASSES = ("SCHEDULER", "DOWNLOADER", "ITEM_PROCESSOR", "STATS_CLASS", "LOG_FORMATTER")


class ForkServer:
    """Ends with the process that made it."""

    def __init__(self, environment: dict[str, str]) -> None:
        self._interpreter = _of_the_interpreter(environment)
        self._ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, __file__, str(theirs.fileno())],
                env=environment,
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
            )
        atexit.register(self._end)

    def _end(self) -> None:
        self._ours.close()
        self._process.wait()

    def can_run(self, environment: dict[str, str]) -> bool:
        """Whether it says nothing else to the interpreter, which has begun already."""
        return _of_the_interpreter(environment) == self._interpreter

    def start(
        self, arguments: list[str], cwd: Path, environment: dict[str, str], out: int, err: int
    ) -> Forked:
        """It runs beside the test; what it says goes to these descriptors."""
        ours, theirs = socket.socketpair()
        order = {"arguments": arguments, "cwd": str(cwd), "environment": environment}
        with theirs:
            socket.send_fds(self._ours, [json.dumps(order).encode()], [theirs.fileno(), out, err])
        return Forked(ours)

    def run(
        self, arguments: list[str], cwd: Path, environment: dict[str, str], timeout: float
    ) -> tuple[int, str, str]:
        """Exit status, as subprocess has it, and both outputs. Raises TimeoutExpired."""
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            child = self.start(arguments, cwd, environment, out.fileno(), err.fileno())
            try:
                status = child.wait(timeout)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()
                raise subprocess.TimeoutExpired(
                    arguments, timeout, _text(out), _text(err)
                ) from None
            return status, _text(out), _text(err)


class Forked:
    """A command that runs, with what tests use of subprocess.Popen."""

    def __init__(self, answers: socket.socket) -> None:
        self._socket, self._answers = answers, answers.makefile()
        self.pid = int(self._answers.readline())
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """Its exit status, None while it runs."""
        with suppress(subprocess.TimeoutExpired):
            self.wait(0)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Its exit status, once it has ended. Raises TimeoutExpired."""
        if self.returncode is None:
            if not select.select([self._socket], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired(f"process {self.pid}", timeout or 0)
            self.returncode = int(self._answers.readline())
            self._answers.close()
            self._socket.close()
        return self.returncode

    def send_signal(self, what: int) -> None:
        if self.returncode is None:
            with suppress(ProcessLookupError):  # it is ending
                os.kill(self.pid, what)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def _of_the_interpreter(environment: dict[str, str]) -> dict[str, str]:
    names = ("PYTHON", "LANG", "LC_", "MALLOC", "LD_")
    return {
        name: value
        for name, value in environment.items()
        if name.startswith(names) and name != "PYTHONPATH"
    }


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode().replace("\r\n", "\n")


@cache
def fork_server() -> ForkServer:
    """The fork server of this process."""
    return ForkServer({**os.environ, "PYTHONPATH": str(PROJECT), "PYTHONWARNINGS": "default"})


def _import_all() -> None:
    """Import the modules of most commands. No thread and no event loop may begin here."""
    from scrapy.settings import Settings
    from scrapy.utils.misc import load_object, walk_modules_iter

    settings = Settings()
    settings.setmodule("larmspider.settings")
    list(walk_modules_iter("larmspider.commands"))
    list(walk_modules_iter("scrapy.commands"))
    list(walk_modules_iter("larmspider.spiders"))
    components = [settings[setting] for setting in _CLASSES]
    for setting in _COMPONENTS:
        components += settings.getwithbase(setting)  # Scrapy loads what is off, too
    components += filter(None, settings.getwithbase("DOWNLOAD_HANDLERS").values())
    for component in components:
        load_object(component)
    gc.freeze()


def _serve(orders: socket.socket) -> None:
    """Returns in a process that is to be the command, with its arguments in sys.argv."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    while True:
        message, descriptors, _, _ = socket.recv_fds(orders, _MESSAGE_BYTES, 3)
        if not message:
            os._exit(0)
        if os.fork():
            for descriptor in descriptors:
                os.close(descriptor)
            continue
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        orders.close()
        answer, out, err = descriptors
        if child := os.fork():
            _wait(child, answer)
        os.dup2(out, 1)
        os.dup2(err, 2)
        for descriptor in descriptors:
            os.close(descriptor)
        _become(**json.loads(message))
        return


def _wait(child: int, answer: int) -> NoReturn:
    os.write(answer, f"{child}\n".encode())
    _, status = os.waitpid(child, 0)
    os.write(answer, f"{os.waitstatus_to_exitcode(status)}\n".encode())
    os._exit(0)


def _become(arguments: list[str], cwd: str, environment: dict[str, str]) -> None:
    """As ``python -m scrapy`` in that directory finds it."""
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(environment)
    sys.path[:] = [cwd, *environment["PYTHONPATH"].split(os.pathsep), *sys.path[1:]]
    sys.argv = ["scrapy", *arguments]


def _end(run: Callable[[], object]) -> NoReturn:
    """End as Python does, but leave the memory as it is: to free what the process shares with the
    one it was forked from takes 0.27 s, more than a crawl of two pages."""
    status: Any = 0
    try:
        run()
    except SystemExit as exit_:
        status = exit_.code
    except BaseException as error:  # noqa: BLE001 - as the interpreter would
        traceback.print_exc()
        status = -signal.SIGINT if isinstance(error, KeyboardInterrupt) else 1
    threading._shutdown()  # type: ignore[attr-defined]  # waits for threads
    atexit._run_exitfuncs()
    gc.collect()  # warns of files that were not closed
    if isinstance(status, str):
        print(status, file=sys.stderr)
        status = 1
    sys.stdout.flush()
    sys.stderr.flush()
    if status == -signal.SIGINT:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)
    os._exit(status or 0)


if __name__ == "__main__":
    del sys.path[0]  # this folder
    from scrapy.cmdline import execute

    _import_all()
    _serve(socket.socket(fileno=int(sys.argv[1])))
    _end(execute)
