"""The end of a log, last line first, without reading what is before it.

>>> for fields in last_records(Path("crawl/fetch.log"), columns=8): ...
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import merge
from pathlib import Path

from larmspider.crawl.reader import CrawlDir
from larmspider.pipelines.fetch_log import FETCH_LOG_COLUMNS

TAIL_BYTES = 2 << 20
_PIECE = 1 << 16


def last_records(
    path: Path,
    columns: int,
    *,
    needle: bytes = b"",
    limit_bytes: int = TAIL_BYTES,
    end: int | None = None,
) -> Iterator[list[str]]:
    """Records in the last ``limit_bytes`` of a log, the last first; only those whose line holds
    ``needle``. 2 MB of fetch.log are some 10,000 fetches; 5 ms. ``end``: where the log ends for us,
    None: where the file does."""
    for line in last_lines(path, limit_bytes, end):
        if needle in line:
            fields = line.decode("utf-8", "replace").split("\t")
            if len(fields) == columns:
                yield fields


def last_fetches(crawl: CrawlDir, needle: bytes) -> Iterator[list[str]]:
    """Records of fetch.log as last_records() finds them; of many workers all, by time, each up to
    its last checkpoint."""
    each = TAIL_BYTES // max(1, len(crawl.parts))
    tails = [
        last_records(
            part.path / "fetch.log",
            len(FETCH_LOG_COLUMNS),
            needle=needle,
            limit_bytes=each,
            end=part.logs.size("fetch.log"),
        )
        for part in crawl.parts
    ]
    return merge(*tails, key=lambda fields: fields[0], reverse=True)


def last_lines(path: Path, limit_bytes: int, end: int | None = None) -> Iterator[bytes]:
    """Lines without their ends; one that is still being written is left out."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, 2)
            position = size if end is None else min(end, size)
            least = max(0, position - limit_bytes)
            rest, first = b"", True
            while position > least:
                start = max(least, position - _PIECE)
                file.seek(start)
                lines = (file.read(position - start) + rest).split(b"\n")
                rest = lines[0]
                yield from reversed(lines[1:-1] if first else lines[1:])
                position, first = start, first and len(lines) == 1
            if not position and not first:
                yield rest
    except FileNotFoundError:
        return
