"""The pages that an operator has removed from a crawl for good: removed.txt in LARM_DIR.

    # a comment
    url      http://wiki/secret.html       this page, by its exact form
    pattern  https?://wiki/hr/.*           a regular expression that fits the whole canonical URL
    host     *.old.example                 a host, or host:port, with * and ?

`scrapy remove` writes the rules, one a line; a running crawl applies them at once (LOOK_SECS).
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple, Self

from larmspider.errors import ConfigError, CrawlDirError
from larmspider.files import replace_file
from larmspider.items import split_part
from larmspider.urls.canonical import Forms
from larmspider.urls.host_pattern import host_matcher
from larmspider.urls.patterns import PatternSet, compile_pattern
from larmspider.workdir.left import changing

FILE = "removed.txt"
LOOK_SECS = 0.1
"""How long a change of the file may go unseen."""
REASON = f"removed by the operator ({FILE})"
URL, PATTERN, HOST = "url", "pattern", "host"
_HOST = re.compile(r"[a-z0-9.*?:\[\]_-]+", re.IGNORECASE)
_EXPRESSION = re.compile(r"[*+()\[\]{}|^$\\]")


class Rule(NamedTuple):
    """``kind`` is url, pattern or host."""

    kind: str
    what: str

    @classmethod
    def of(cls, text: str, forms: Callable[[str], Forms]) -> Self:
        """A rule from an operator's text: a host, a URL, or a pattern for URLs. Raises
        ConfigError."""
        text = text.strip()
        document, part = split_part(text)
        if part:
            raise ConfigError(
                f"{text[:200]}: a part cannot be taken out alone: expected its document,"
                f" {document[:200]}, with all its parts"
            )
        if "://" not in text and _HOST.fullmatch(text) and not text.startswith("."):
            return cls(HOST, text)
        if "://" in text and not _EXPRESSION.search(text):
            return cls(URL, forms(text).exact)
        if "://" in text or text.startswith("."):
            compile_pattern(text, name="the argument")
            return cls(PATTERN, text)
        raise ConfigError(
            f"{text[:200]!r}: expected a URL, a host (wiki, wiki:8080, *.old.example), or a regular"
            " expression for whole URLs, which begins with http or .*"
        )


class Removals:
    """The rules of a file; none where there is no file."""

    def __init__(self, path: Path | str, rules: Iterable[Rule] = ()) -> None:
        self.path = Path(path)
        self.rules = list(dict.fromkeys(rules))
        by_kind = {
            kind: [rule.what for rule in self.rules if rule.kind == kind]
            for kind in (URL, PATTERN, HOST)
        }
        self._urls = frozenset(by_kind[URL])
        self._patterns = PatternSet(by_kind[PATTERN], name=FILE)
        self._is_host = host_matcher(*by_kind[HOST]) if by_kind[HOST] else None

    @classmethod
    def read(cls, directory: Path) -> Self:
        """Read the rules of a directory. Raises ConfigError for an invalid line, CrawlDirError."""
        path = directory / FILE
        try:
            lines = path.read_text("utf-8").splitlines()
        except FileNotFoundError:
            return cls(path)
        except (OSError, ValueError) as error:
            raise CrawlDirError(f"{path} cannot be read: {error}") from None
        rules = []
        for number, line in enumerate(lines, 1):
            kind, _, what = line.strip().partition(" ")
            if kind in (URL, PATTERN, HOST) and what.strip():
                rules.append(Rule(kind, what.strip()))
            elif kind and not kind.startswith("#"):
                raise ConfigError(
                    f"{path}:{number}: {line.strip()[:200]!r} is not understood: expected"
                    " 'url URL', 'pattern REGEX', 'host PATTERN' or '# comment'"
                )
        return cls(path, rules)

    def write(self) -> None:
        """Raises CrawlDirError."""
        text = "".join(f"{rule.kind} {rule.what}\n" for rule in self.rules)
        try:
            with changing(self.path.parent, FILE):
                replace_file(self.path, text.encode())
        except OSError as error:
            raise CrawlDirError(f"{self.path} cannot be written: {error}") from error

    def __bool__(self) -> bool:
        return bool(self.rules)

    def has(self, forms: Forms) -> bool:
        """Whether a URL is taken out, by its forms."""
        if forms.exact in self._urls or self._patterns.match(forms.normalized) is not None:
            return True
        if self._is_host is None:
            return False
        host = forms.normalized.split("/", 3)[2]
        return bool(self._is_host(host) or self._is_host(host.rsplit(":", 1)[0]))


class CurrentRemovals:
    """The removals of a directory, read again within LOOK_SECS after the file has changed: looking
    at a file lets other threads run first."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._seen: tuple[int, int] | None = None
        self._removals = Removals(directory / FILE)
        self._next_look = 0.0

    def get(self) -> Removals:
        """Raises ConfigError, CrawlDirError."""
        now = time.monotonic()
        if now < self._next_look:
            return self._removals
        self._next_look = now + LOOK_SECS
        try:
            found = (self._directory / FILE).stat()
        except OSError:
            seen = None
        else:
            seen = found.st_mtime_ns, found.st_ino
        if seen != self._seen:
            self._removals, self._seen = Removals.read(self._directory), seen
        return self._removals
