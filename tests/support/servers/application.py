"""Shared by the real applications of applications.py: a start on loopback in a temporary
folder, an end by their pid, made-up content, and the list of it.
"""

from __future__ import annotations

import itertools
import random
import shutil
import subprocess
import tempfile
import time
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import ClassVar, Self

from tests.support.servers.processes import STOP_SECS, end, free_port, listens, wait_for

PATH = "/usr/sbin:/usr/bin:/sbin:/bin:/usr/local/bin"
SECTIONS = 8


@dataclass(frozen=True, slots=True)
class Document:
    """``related`` are numbers of other documents; ``section`` is a word."""

    number: int
    section: str
    name: str
    title: str
    text: str
    related: tuple[int, ...]

    @property
    def lines(self) -> str:
        """The text in lines of a sentence each."""
        return self.text.replace(". ", ".\n") + "\n"


def documents(count: int, seed: int = 1) -> list[Document]:
    """Documents that differ: half of the words of each come from some that its section shares."""
    draw = random.Random(seed)
    syllables = [a + b for a in ("b", "d", "fl", "g", "k", "m", "pr", "st", "v") for b in "aeiou"]
    words = [
        "".join(draw.choices(syllables, k=1 + n % 3)) + draw.choice("nrst") for n in range(4000)
    ]
    frequent = list(itertools.accumulate(1 / rank for rank in range(1, len(words) + 1)))
    topics = [draw.sample(words[100:], 250) for _ in range(SECTIONS)]
    found, names = [], set()
    for number in range(count):
        topic = topics[number % SECTIONS]
        name = "-".join(draw.sample(topic, 2))
        while name in names:
            name = "-".join(draw.sample(topic, 2))
        names.add(name)
        length = min(900, max(60, round(draw.lognormvariate(5.2, 0.6))))
        said = draw.choices(words, cum_weights=frequent, k=length // 2)
        said += draw.choices(topic, k=length - length // 2)
        draw.shuffle(said)
        sentences = [" ".join(said[at : at + 12]).capitalize() + "." for at in range(0, length, 12)]
        related = tuple(draw.sample(range(count), 3))
        title = name.replace("-", " ").capitalize()
        found.append(Document(number, topic[0], name, title, " ".join(sentences), related))
    return found


class Application(ABC):
    """One that runs from ``with`` on. ``seed`` is where a crawl begins.

    ``documents()`` names what it has, as it lists that itself, and ``document_of(url)`` is the name
    of the document that the page of a URL shows, or "": a view, an old version, a listing.
    """

    name: ClassVar[str]
    packages: ClassVar[tuple[str, ...]]
    """Of Debian."""
    needs: ClassVar[tuple[str, ...]]
    """Files (patterns) and programs of these."""
    start: ClassVar[str] = "/"

    def __init__(self, count: int = 400, address: str = "127.0.0.1") -> None:
        """``count`` is about the number of its documents."""
        self.address, self.port, self.count = address, 0, count
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._child: subprocess.Popen[bytes] | None = None

    @classmethod
    def missing(cls) -> list[str]:
        """The programs in ``needs`` that are not installed here."""
        files = {one: any(Path("/").glob(one[1:])) for one in cls.needs if one.startswith("/")}
        return [one for one in cls.needs if not (files.get(one) or shutil.which(one, path=PATH))]

    @classmethod
    def wanted(cls) -> str:
        """The command that installs it."""
        return f"apt-get install {' '.join(cls.packages)}"

    @abstractmethod
    def documents(self) -> frozenset[str]:
        """Names of all documents."""

    @abstractmethod
    def document_of(self, url: str) -> str:
        """The document that a URL shows, as it is now, or ""."""

    @abstractmethod
    def _prepare(self) -> list[str | Path]:
        """Make content and configuration in the folder; the command that serves them."""

    def url(self, path: str = "/") -> str:
        return f"http://{self.address}:{self.port}{path}"

    @property
    def seed(self) -> str:
        return self.url(self.start)

    @property
    def folder(self) -> Path:
        """All that it writes; gone after the context."""
        if self._folder is None:
            raise RuntimeError(f"{self.name} does not run")
        return Path(self._folder.name)

    def environment(self) -> dict[str, str]:
        """The environment of its processes."""
        return {
            "PATH": PATH,
            "HOME": str(self.folder),
            "TMPDIR": str(self.folder),
            "LANG": "C.UTF-8",
        }

    def run(self, *command: str | Path, given: bytes = b"") -> bytes:
        """The output of a program. Raises RuntimeError with its error message if it fails."""
        done = subprocess.run(
            command,
            input=given,
            capture_output=True,
            env=self.environment(),
            cwd=self.folder,
            check=False,
        )
        if done.returncode:
            said = (done.stderr or done.stdout).decode("utf-8", "replace")
            raise RuntimeError(f"{Path(command[0]).name}: {said[-2000:]}")
        return done.stdout

    def write(self, name: str, text: str) -> Path:
        """A file in the folder."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
        return path

    def lighttpd(self, root: Path | str, *more: str) -> list[str | Path]:
        """The command of a lighttpd that serves ``root``."""
        lines = [
            f'server.document-root = "{root}"',
            f'server.bind = "{self.address}"',
            f"server.port = {self.port}",
            'mimetype.assign = ( ".html" => "text/html", ".txt" => "text/plain; charset=utf-8",',
            '  ".css" => "text/css", ".js" => "text/javascript", ".png" => "image/png" )',
            *more,
        ]
        return ["lighttpd", "-D", "-f", self.write("lighttpd.conf", "\n".join(lines) + "\n")]

    def __enter__(self) -> Self:
        if missing := self.missing():
            raise RuntimeError(f"{', '.join(missing)} missing: {self.wanted()}")
        self._folder = tempfile.TemporaryDirectory(prefix=f"{type(self).__name__.lower()}-")
        try:
            self.port = free_port(self.address)
            command = self._prepare()
            with (self.folder / "log").open("wb") as log:
                self._child = subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    cwd=self.folder,
                    env=self.environment(),
                    start_new_session=True,
                )
            wait_for(self._child, self.folder / "log", partial(listens, self.address, self.port))
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._child is not None:
            end(self._child)
            self._child = None
            last = time.monotonic() + STOP_SECS
            while listens(self.address, self.port) and time.monotonic() < last:
                time.sleep(0.01)  # children that it had, which have got SIGKILL
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None
