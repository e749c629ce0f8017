"""The home of a server: a folder with crawl files and all that belongs to them.

home = Home.open(Path("/var/lib/larmspider"))     # ConfigError for what is not a home
with home.claim():                                # by one server at a time
    home.crawls()                                 # {"wiki": CrawlEntry(...)}
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from larmspider.errors import ConfigError
from larmspider.files import lock, make_folder, replace_file
from larmspider.server.config.crawl_file import (
    CrawlFileError,
    Problem,
    parse_crawl,
    read_crawl,
    read_text,
)
from larmspider.server.config.crawl_schema import Crawl
from larmspider.server.config.secrets import FOLDER as SECRETS

CRAWLS, DATA, RUNS = "crawls", "data", "runs"
LOCK = "lock"
ENDING = ".toml"
MAX_NAME, MAX_CRAWLS = 64, 1_000
_MAX_SHOWN = 60
"""Characters of a refused name: at most 240 bytes, which a file system takes as a file name."""
_NAME = re.compile(rf"[A-Za-z0-9][A-Za-z0-9_-]{{0,{MAX_NAME - 1}}}")
_OURS = frozenset(
    {"gaps", CRAWLS, DATA, RUNS, SECRETS, LOCK, "server.toml", "server.json", "tokens.json",
     "audit.log", "told.json", "synonyms.txt", "best_bets.txt", "labels.txt", "queries.sqlite",
     "users.json", "users.lock", "tokens.lock", "principals.toml", "people.json",
     "people.lock", "first.key", "lost+found"}
)  # fmt: skip


def check_name(name: str, others: Iterable[str] = ()) -> str:
    """Check the name of a crawl, which becomes a part of files and addresses. Raises ConfigError,
    also if it differs from a name in ``others`` by letter case alone."""
    if not _NAME.fullmatch(name):
        shown = name if len(name) <= MAX_NAME else f"{name[:20]}... ({len(name):,} characters)"
        raise ConfigError(
            f"name {shown!r}: expected 1 to {MAX_NAME} of the letters a to z, digits, '-' and '_',"
            " the first a letter or digit; collection may have any name"
        )
    for other in others:
        if other.lower() == name.lower():
            raise ConfigError(f"name {name!r}: there is a crawl {other!r} already")
    return name


def _name_of(path: Path) -> str:
    """The name of a crawl by its file. A refused name keeps its ending, so that neither it nor a
    path that is made of it is the name of another crawl, or of a folder above."""
    name = path.name.removesuffix(ENDING)
    return name if _NAME.fullmatch(name) else _printable(path.name)[-_MAX_SHOWN:]


def _printable(name: str) -> str:
    """A file name without control characters and bytes that are not UTF-8."""
    return "".join(one if one.isprintable() else ascii(one)[1:-1] for one in name)


@dataclass(frozen=True, slots=True)
class CrawlEntry:
    """A crawl file that was found. ``crawl`` is None if ``problem`` says why."""

    name: str
    path: Path
    crawl: Crawl | None
    problem: str = ""
    problems: tuple[Problem, ...] = ()


class Home:
    def __init__(self, path: Path) -> None:
        self.path = path
        self._read: dict[str, tuple[object, CrawlEntry]] = {}
        self._lock = threading.Lock()

    @classmethod
    def open(cls, path: Path, *, make: bool = True) -> Self:
        """Open the home in a folder; ``make`` makes a missing one. Raises ConfigError."""
        path = path.expanduser().absolute()
        try:
            str(path).encode()
        except UnicodeEncodeError:  # pages and answers of the API name it
            raise ConfigError(
                f"{_printable(str(path))} cannot be used as a home: expected a path in UTF-8"
            ) from None
        try:
            if path.is_symlink():
                raise ConfigError(f"{path} is a symbolic link: name {path.resolve()} itself")
            if not path.exists() and not make:
                raise ConfigError(f"{path}: there is no such home: larmspider server makes one")
            if path.exists() and not path.is_dir():
                raise ConfigError(f"{path} is not a home: it is not a folder")
            if path.exists() and not (path / CRAWLS).is_dir():
                cls._refuse_foreign(path)
            if not path.exists():
                make_folder(path)
                path.chmod(0o700)
            for folder in (CRAWLS, SECRETS, DATA, RUNS):
                if (path / folder).is_symlink():
                    raise ConfigError(f"{path / folder} is a symbolic link: expected a folder")
                make_folder(path / folder)
            (path / SECRETS).chmod(0o700)
        except OSError as error:
            raise ConfigError(
                f"{error.filename or path} cannot be used as a home: {error.strerror or error}"
            ) from None
        return cls(path)

    @staticmethod
    def _refuse_foreign(path: Path) -> None:
        others = sorted(one.name for one in path.iterdir() if one.name not in _OURS)
        if "crawl.json" in others:
            raise ConfigError(
                f"{path} is the directory of one crawl, no home: larmspider serve {path} shows it,"
                f" larmspider server add {path} takes it into a home"
            )
        if others:
            raise ConfigError(
                f"{path} is not a home: it holds {', '.join(others[:3])}; expected an empty folder,"
                f" or one with the folder {CRAWLS}"
            )

    def claim(self) -> ExitStack:
        """Hold the home for one server. Raises ConfigError while another one does."""
        stack = ExitStack()
        try:
            stack.enter_context(lock(self.path / LOCK))
        except BlockingIOError:
            raise ConfigError(f"another server runs on {self.path}") from None
        except OSError as error:
            raise ConfigError(f"{self.path}: {error.strerror or error}") from None
        return stack

    def file_of(self, name: str) -> Path:
        return self.path / CRAWLS / f"{name}{ENDING}"

    def directory_of(self, name: str, crawl: Crawl | None) -> Path:
        """The crawl's LARM_DIR."""
        own = crawl.settings.get("LARM_DIR") if crawl is not None else None
        if isinstance(own, str) and own:
            return self.path / Path(own).expanduser()
        return self.path / DATA / name

    def runs_of(self, name: str) -> Path:
        return self.path / RUNS / name

    def names_of_runs(self) -> list[str]:
        """The crawls that have run, whether or not their files are there."""
        return [path.name for path in (self.path / RUNS).iterdir() if _NAME.fullmatch(path.name)]

    def crawls(self) -> dict[str, CrawlEntry]:
        """All crawls by name; a file that was not changed is not read again. Called in threads."""
        with self._lock:
            return self._crawls()

    def _crawls(self) -> dict[str, CrawlEntry]:
        found: dict[str, CrawlEntry] = {}
        for path in sorted((self.path / CRAWLS).glob(f"*{ENDING}")):
            name = _name_of(path)
            found[name] = self._entry(name, path)
        self._refuse_equal(found, str.lower, "the name differs from {} in case only")
        self._refuse_equal(found, lambda name: self._place(found[name]), "LARM_DIR is also of {}")
        self._read = {name: kept for name, kept in self._read.items() if name in found}
        return found

    def _refuse_equal(
        self, found: dict[str, CrawlEntry], key: Callable[[str], str], problem: str
    ) -> None:
        """Refuse all but one of the crawls that ``key`` makes equal. A new file does not stop a
        crawl that has run, or the crawl whose folder it names."""

        def rank(name: str) -> tuple[bool, bool]:
            own = self._place(found[name]) == str(self.path / DATA / name)
            return own, self.runs_of(name).exists()

        first: dict[str, str] = {}
        for name in list(found):
            if (other := first.setdefault(key(name), name)) == name:
                continue
            if rank(name) > rank(other):
                first[key(name)] = name
                name, other = other, name
            path = found[name].path
            found[name] = CrawlEntry(name, path, None, f"{path}: {problem.format(other)}")

    def _place(self, entry: CrawlEntry) -> str:
        """The directory of a crawl; a place of its own for a file with a mistake."""
        if entry.crawl is None:
            return entry.name
        return os.path.normpath(self.directory_of(entry.name, entry.crawl))

    def _entry(self, name: str, path: Path) -> CrawlEntry:
        try:
            status = path.lstat()
            seen = (status.st_mtime_ns, status.st_size, status.st_ino)
        except OSError:
            seen = (0, 0, 0)
        kept = self._read.get(name)
        if kept is not None and kept[0] == seen:
            return kept[1]
        entry = self._fresh(name, path)
        self._read[name] = (seen, entry)
        return entry

    def _fresh(self, name: str, path: Path) -> CrawlEntry:
        try:
            check_name(path.name.removesuffix(ENDING))
            crawl = read_crawl(path)
            for folder in (self.directory_of(name, crawl), self.runs_of(name)):
                if folder.is_symlink():
                    raise ConfigError(f"{folder} is a symbolic link: expected a folder")
        except CrawlFileError as error:
            return CrawlEntry(name, path, None, str(error), error.problems)
        except ConfigError as error:
            shown = path.with_name(_printable(path.name))
            return CrawlEntry(name, path, None, f"{shown}: {error}")
        return CrawlEntry(name, path, crawl)

    def text_of(self, name: str) -> str:
        """The file of a crawl. Raises ConfigError."""
        return read_text(self.file_of(check_name(name)))

    def write(self, name: str, text: str, *, new: bool) -> Crawl:
        """Check the text of a crawl and replace its file. Raises CrawlFileError for the text,
        ConfigError for the name."""
        others = self.crawls()
        check_name(name, others if new else ())
        if not new and name not in others:
            raise ConfigError(f"there is no crawl {name!r} (any more)")
        if new and len(others) >= MAX_CRAWLS:
            raise ConfigError(f"there are {len(others):,} crawls: expected at most {MAX_CRAWLS:,}")
        crawl = parse_crawl(text, self.file_of(name).name)
        try:
            replace_file(self.file_of(name), text.encode("utf-8"))
        except OSError as error:
            raise ConfigError(f"{self.file_of(name)}: {error.strerror or error}") from None
        return crawl
