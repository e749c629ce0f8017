"""Pushes documents to a server: `larmspider ctl push` (commands/ctl.py).

done = await push(address, "hr", ["documents.jsonl"])
done.said, done.refused        # "2 documents: 1 created, 1 same", []
"""

from __future__ import annotations

import asyncio
import mimetypes
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

from larmspider.errors import ConfigError
from larmspider.formatting import counted
from larmspider.server.api.client import Address, WaitError, ask

AT_ONCE = 100
"""Documents of a request."""
AT_ONCE_BYTES = 4_000_000
"""Bytes of these; one document may have more."""
MAX_WAITS = 20
"""Waits for a server that takes nothing now, in a row."""
_LINES = (".jsonl", ".ndjson")


@dataclass
class Pushed:
    """The results: how many documents were created, updated and so on, and a line for each that
    was refused."""

    counts: Counter[str] = field(default_factory=Counter)
    refused: list[str] = field(default_factory=list)

    @property
    def said(self) -> str:
        each = ", ".join(f"{number:,} {word}" for word, number in self.counts.items())
        return f"{counted(self.counts.total(), 'document')}: {each or 'nothing to push'}"

    def as_json(self) -> dict[str, Any]:
        return {**self.counts, "errors": self.refused}

    def add(self, answer: dict[str, Any], place: str) -> None:
        self.counts[str(answer["result"])] += 1
        if answer["error"]:
            self.refused.append(f"{place}: {answer['url']} {answer['error']}".replace("  ", " "))


def check(files: Sequence[str], at: str) -> None:
    """Raises ConfigError for files that cannot be pushed, before anything is sent."""
    others = [file for file in files if not _has_lines(file)]
    for file in files:
        if file != "-" and not Path(file).is_file():
            raise ConfigError(f"{file}: there is no such file")
    if others and not at:
        raise ConfigError(
            f"{others[0]}: expected --at URL, the URL of the file; or a file with the ending"
            f" {_LINES[0]}, with a document in JSON a line"
        )
    if at and urlsplit(at).scheme not in ("http", "https"):
        raise ConfigError(f"--at {at}: expected a URL with http:// or https://")
    if len(others) > 1 and not at.endswith("/"):
        raise ConfigError(f"--at {at}: expected a URL that ends with /, as there are several files")


def _has_lines(file: str) -> bool:
    return file == "-" or file.endswith(_LINES)


async def push(address: Address, name: str, files: Sequence[str], at: str = "") -> Pushed:
    """Push all documents of ``files``. Raises ConfigError, CrawlDirError. Documents before the
    error stay pushed."""
    done = Pushed()
    for file in files:
        if not _has_lines(file):
            content = _content(file)
            url = at + quote(Path(file).name) if at.endswith("/") else at
            kind = mimetypes.guess_type(file)[0] or "application/octet-stream"
            query = {"collection": name, "url": url}
            try:
                answer = await _asked(address, "PUT", content, kind, query)
            except ConfigError as error:
                answer = {"url": url, "result": "refused", "error": str(error)}
            done.add(answer, file)
            continue
        for first, lines in _batches(file):
            body = b"\n".join(lines)
            query = {"collection": name}
            found = await _asked(address, "POST", body, "application/x-ndjson", query)
            for number, answer in enumerate(found["documents"], first):
                done.add(answer, f"{file}:{number}")
    return done


def _content(file: str) -> bytes:
    try:
        return Path(file).read_bytes()
    except OSError as error:
        raise ConfigError(f"{file}: {error.strerror}") from None


def _batches(file: str) -> Iterator[tuple[int, list[bytes]]]:
    """The lines of a file, some at a time, with the number of the first; a blank line ends a
    batch."""
    with ExitStack() as stack:
        try:
            source = sys.stdin.buffer if file == "-" else stack.enter_context(Path(file).open("rb"))
        except OSError as error:
            raise ConfigError(f"{file}: {error.strerror}") from None
        lines: list[bytes] = []
        size = 0
        for number, line in enumerate(source, 1):
            text = line.strip()
            full = len(lines) >= AT_ONCE or size + len(text) > AT_ONCE_BYTES
            if lines and (full or not text):
                yield number - len(lines), lines
                lines, size = [], 0
            if text:
                lines.append(text)
                size += len(text)
                last = number
        if lines:
            yield last - len(lines) + 1, lines


async def _asked(
    address: Address, method: str, data: bytes, kind: str, query: dict[str, str]
) -> dict[str, Any]:
    for _ in range(MAX_WAITS):
        try:
            return await ask(address, method, "/index", data=data, kind=kind, **query)
        except WaitError as wait:
            await asyncio.sleep(wait.seconds)
    return await ask(address, method, "/index", data=data, kind=kind, **query)
