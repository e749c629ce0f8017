"""Runs ``scrapy`` commands in processes that have imported it already, which is most of a start.

    fork_server().run(["explain", "http://h/"], folder, environment, timeout=60)

One process imports Scrapy and larmspider and does nothing else; each command is a fork of it, with
a working directory, an environment, output and an exit status of its own. A start from nothing is
tested by whatever begins processes by itself, as tests/recovery and tests/workers do.
"""

from __future__ import annotations

import atexit
import gc
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import IO, NoReturn

PROJECT = Path(__file__).parents[1]
_MESSAGE_BYTES = 1 << 17


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

    def run(
        self, arguments: list[str], cwd: Path, environment: dict[str, str], timeout: float
    ) -> tuple[int, str, str]:
        """Exit status, as subprocess has it, and both outputs. Raises TimeoutExpired."""
        ours, theirs = socket.socketpair()
        order = {"arguments": arguments, "cwd": str(cwd), "environment": environment}
        with ours, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            with theirs:
                descriptors = [theirs.fileno(), out.fileno(), err.fileno()]
                socket.send_fds(self._ours, [json.dumps(order).encode()], descriptors)
            answers = ours.makefile()
            pid = int(answers.readline())
            ours.settimeout(timeout)
            try:
                status = int(answers.readline())
            except TimeoutError:
                os.kill(pid, signal.SIGKILL)
                ours.settimeout(None)
                ours.recv(_MESSAGE_BYTES)  # it is over
                raise subprocess.TimeoutExpired(
                    arguments, timeout, _text(out), _text(err)
                ) from None
            finally:
                answers.close()
            return status, _text(out), _text(err)


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
    """The one of this process."""
    return ForkServer({**os.environ, "PYTHONPATH": str(PROJECT), "PYTHONWARNINGS": "default"})


def _import_all() -> None:
    """What most commands import. No thread and no event loop may begin here."""
    from scrapy.utils.misc import load_object, walk_modules_iter

    from larmspider import settings

    list(walk_modules_iter("larmspider.commands"))
    list(walk_modules_iter("scrapy.commands"))
    list(walk_modules_iter("larmspider.spiders"))
    components = [settings.SPIDER_MIDDLEWARES, settings.DOWNLOADER_MIDDLEWARES]
    components += [settings.ITEM_PIPELINES, settings.EXTENSIONS]
    for component in [name for named in components for name in named]:
        load_object(component)
    for name in [settings.SCHEDULER, settings.DOWNLOADER, *settings.DOWNLOAD_HANDLERS.values()]:
        load_object(name)
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


if __name__ == "__main__":
    del sys.path[0]  # this folder
    from scrapy.cmdline import execute

    _import_all()
    _serve(socket.socket(fileno=int(sys.argv[1])))
    execute()
