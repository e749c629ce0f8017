"""The operator's additions to the search: synonyms, best bets and labels, each a text file.

    curated = Curated(Path("synonyms.txt"), Path("best_bets.txt"), Path("labels.txt"))
    searcher.widened_by(curated.synonyms.value).search("vpn")
    curated.best_bets.value.of("vpn", EVERYTHING.page)

A file is read again when it changes. A bad line is logged with file and line and ignored; the other
lines count.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Generic, Self, TypeVar

from larmspider import options
from larmspider.errors import ConfigError
from larmspider.files import replace_file
from larmspider.formatting import counted, printable
from larmspider.search.best_bets import NO_BEST_BETS, BestBets, parse_best_bets
from larmspider.search.labels import NO_LABELS, LabelSet, parse_labels
from larmspider.search.synonyms import NO_SYNONYMS, Problems, Synonyms, parse_synonyms

if TYPE_CHECKING:
    from larmspider.options import Settings

logger = logging.getLogger(__name__)

MAX_BYTES = 1 << 20
"""Bytes of a file that are read; the rest is ignored."""
MAX_NAMED = 20
"""Bad lines of a file that a message lists."""

T = TypeVar("T")
Parse = Callable[[Iterable[str]], tuple[T, Problems]]


class CuratedFile(Generic[T]):
    """A file that an operator edits. Without the file the value is ``empty``."""

    def __init__(self, path: Path | None, parse: Parse[T], empty: T) -> None:
        self.path, self._parse, self._empty = path, parse, empty
        self._known: tuple[object, T] = (None, empty)

    @property
    def value(self) -> T:
        """The parsed file. While the file cannot be read, its last value."""
        if self.path is None:
            return self._empty
        try:
            found = self.path.stat()
        except OSError:
            self._known = (None, self._empty)
            return self._empty
        seen = (found.st_mtime_ns, found.st_ino, found.st_size)
        if self._known[0] != seen:
            self._known = (seen, self._read(self.path))
        return self._known[1]

    def _read(self, path: Path) -> T:
        try:
            content = self.content()
        except ConfigError as error:
            logger.warning("%s", printable(str(error)))
            return self._known[1]
        value, problems = self.parsed(content)
        for number, problem in problems[:MAX_NAMED]:
            logger.warning("%s:%d: %s", printable(str(path)), number, printable(problem))
        if (more := len(problems) - MAX_NAMED) > 0:
            logger.warning("%s: %s more", printable(str(path)), counted(more, "bad line"))
        return value

    def content(self) -> bytes:
        """The bytes of the file, at most `MAX_BYTES`; empty if there is no file. Raises ConfigError
        if it cannot be read."""
        if self.path is None:
            return b""
        try:
            with self.path.open("rb") as file:
                return file.read(MAX_BYTES)
        except FileNotFoundError:
            return b""
        except OSError as error:
            raise ConfigError(f"{self.path}: cannot be read: {error.strerror}") from error

    def parsed(self, content: bytes) -> tuple[T, Problems]:
        """The entries in ``content``, and its bad lines."""
        raw = content.removeprefix(b"\xef\xbb\xbf").splitlines()
        lines = [line.decode("utf-8", "replace") for line in raw]
        foreign = {n for n, line in enumerate(lines, 1) if "\ufffd" in line}
        good = ("" if n in foreign else line for n, line in enumerate(lines, 1))
        value, problems = self._parse(good)
        problems += [(n, f"{lines[n - 1]!r:.60}: expected UTF-8") for n in foreign]
        if len(content) >= MAX_BYTES:
            too_long = f"the file is too long: expected less than {MAX_BYTES:,} bytes"
            problems.append((len(lines), too_long))
        return value, sorted(problems)

    def replace(self, text: str, seen: str) -> None:
        """Replace the file by ``text``, by rename. Raises ConfigError, and leaves the file as it
        is, for bad lines, if ``seen`` is not the `digest` of the present content, and if the file
        cannot be written."""
        if self.path is None:
            raise ConfigError("there is no crawl whose search could be changed")
        lines = "".join(f"{line.rstrip()}\n" for line in text.splitlines())
        content = lines.encode("utf-8", "replace")
        _, problems = self.parsed(content)
        if problems:
            named = "; ".join(f"line {number}: {text}" for number, text in problems[:MAX_NAMED])
            raise ConfigError(f"not saved: {named}")
        if digest(self.content()) != seen:
            raise ConfigError("not saved: the file has been changed since the page was loaded")
        try:
            replace_file(self.path.resolve(), content)
        except OSError as error:
            raise ConfigError(f"{self.path}: cannot be written: {error.strerror}") from error


class Curated:
    """The files; None means no file."""

    def __init__(
        self,
        synonyms: Path | None = None,
        best_bets: Path | None = None,
        labels: Path | None = None,
    ) -> None:
        self.synonyms = CuratedFile[Synonyms](synonyms, parse_synonyms, NO_SYNONYMS)
        self.best_bets = CuratedFile[BestBets](best_bets, parse_best_bets, NO_BEST_BETS)
        self.labels = CuratedFile[LabelSet](labels, parse_labels, NO_LABELS)

    @classmethod
    def from_settings(cls, settings: Settings, root: Path | None = None) -> Self:
        """``root`` has the files that the settings do not name, by default LARM_DIR. All are read
        now, so that bad lines are logged at the start. Raises ConfigError if a named file is
        missing."""
        found = cls(
            _path(settings, "LARM_SYNONYMS_FILE", root, "synonyms.txt"),
            _path(settings, "LARM_BEST_BETS_FILE", root, "best_bets.txt"),
            _path(settings, "LARM_LABELS_FILE", root, "labels.txt"),
        )
        _ = found.synonyms.value, found.best_bets.value, found.labels.value
        return found


def _path(settings: Settings, setting: str, root: Path | None, name: str) -> Path:
    path = options.text(settings, setting)
    if not path:
        return (root or options.crawl_root(settings)) / name
    found = Path(path).expanduser().absolute()
    if not found.is_file():
        raise ConfigError(f"{setting}={path}: expected a file that can be read")
    return found


def digest(content: bytes) -> str:
    """The digest that shows a page whether a file has changed since it was shown."""
    return blake2b(content, digest_size=8).hexdigest()
