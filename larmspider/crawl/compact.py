"""Frees the space of old versions and of removed pages: `scrapy compact`.

    compact(CrawlDir(Path("crawl")), versions=0, heap_bytes=64_000_000)    # Freed(before, after)

No crawl may run. The remaining records are written into new files beside the others: page files
with dropped bodies, under new numbers, store.log and links.log. One rename of their folder says
that they are complete; from then on they replace the others (pipelines/compaction.py). Before that
rename nothing has changed.

The last version of a page that left without an operator's order stays for 30 days. Page files that
a receiver has not taken completely are left as they are.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from larmspider import program
from larmspider.crawl.fill import forget_unfinished
from larmspider.crawl.logs import REMOVED, STATUS
from larmspider.crawl.reader import CrawlDir
from larmspider.errors import CrawlDirError
from larmspider.extraction.texts.simhasher import Simhasher
from larmspider.fetch.blobs import FOLDER as BLOBS_FOLDER
from larmspider.fetch.blobs import blob_files
from larmspider.files import sync_folder
from larmspider.frontier.storage.lmdb_env import LmdbFiles
from larmspider.frontier.storage.records import unpack_positions
from larmspider.index.rebuild import rebuild
from larmspider.index.version import has_index
from larmspider.pipelines.compaction import DONE, DRAFT, PLAN, finish
from larmspider.pipelines.deleted_log import kept_for_now, moves_in
from larmspider.pipelines.link_log import LINK_LOG_COLUMNS
from larmspider.pipelines.outbox.spool import FOLDER, Position, first_page_file, read_committed
from larmspider.pipelines.page_files import BLOBS, STORE_LOG_COLUMNS, page_file_name
from larmspider.pipelines.records import AppendFile, RecordLog, open_appending, truncate_file
from larmspider.workdir.directory import locked
from larmspider.workdir.frames import SUFFIX, present, stored_size
from larmspider.workdir.left import changing
from larmspider.workdir.manifest import LOCK
from larmspider.workdir.removals import FILE, Removals

_URL, _SIZE, _TITLE, _FILE, _OFFSET = (
    STORE_LOG_COLUMNS.index(name) for name in ("url", "size", "title", "page-file", "offset")
)


class Freed(NamedTuple):
    """Bytes on disk of page files, blobs, store.log, links.log and the search index."""

    before: int
    after: int


def compact(
    crawl: CrawlDir,
    *,
    versions: int,
    heap_bytes: int,
    up_to_date: bool = False,
    removals: Removals | None = None,
    now: float | None = None,
) -> Freed:
    """Keep ``versions`` old versions of each page, and nothing that ``removals`` have removed.
    ``up_to_date``: the directory belongs to one of many workers and has the last commit of Redis,
    even if the worker was killed. Raises ConfigError, CrawlDirError."""
    path, removals = crawl.path, removals or Removals(FILE)
    with locked(path / LOCK), changing(path):
        forget_unfinished(path)
        finish(path)
        positions = _recovered(crawl, up_to_date=up_to_date)
        before = _bytes(path)
        records = [fields for _, fields in crawl.logs.search("store.log", None, 0)]
        recent = kept_for_now(path, time.time() if now is None else now)
        moves = {(when, url): new for when, url, _, new in moves_in(path)} if versions else {}

        def kept_before(fields: Sequence[str]) -> int:
            removal = fields[_TITLE], fields[_URL]
            new = moves.get(removal, "")
            if not new and removal not in recent:
                return 0
            if removals.has(crawl.forms(fields[_URL])) or (new and removals.has(crawl.forms(new))):
                return 0
            return 1 + versions if removal in recent else versions

        kept = _that_count(records, versions, kept_before)
        has_restarts = any(crawl.logs.beginnings())
        committed = read_committed(path / FOLDER)
        if FOLDER in positions:  # the file may be older, after a crash
            committed = Position.unpack(positions[FOLDER])
        awaited = first_page_file(path, committed)
        dropped = _dropped(path, [records[n] for n in kept], awaited)
        blobs = set(blob_files(path / BLOBS_FOLDER)) if awaited is None else set()
        blobs -= {int(records[n][_OFFSET]) for n in kept if int(records[n][_FILE]) == BLOBS}
        if len(kept) < len(records) or has_restarts or dropped or blobs:
            draft = path / DRAFT
            try:
                _write(crawl, draft, [records[n] for n in kept], dropped, blobs, positions)
                draft.rename(path / DONE)
                sync_folder(path)
            except OSError as error:
                raise CrawlDirError(f"{path} cannot be compacted: {error}") from error
            finally:
                shutil.rmtree(draft, ignore_errors=True)
            finish(path)
        left = set(range(len(records))).difference(kept)
        taken_out = any(records[number][STATUS] == REMOVED for number in left)
        if taken_out and has_index(crawl.index_dir):
            with Simhasher() as simhasher:  # Tantivy keeps deleted documents
                rebuild(crawl.index_dir, heap_bytes=heap_bytes, simhashes=simhasher.submit)
        return Freed(before, _bytes(path))


def _recovered(crawl: CrawlDir, *, up_to_date: bool) -> Mapping[str, bytes]:
    """Go back to the last checkpoint, as a crawl does when it continues."""
    path = crawl.path
    if not (path / "frontier").exists():
        return {}
    files = LmdbFiles(path / "frontier")
    try:
        positions = unpack_positions(files.get(b"positions", files.meta) or b"")
        is_worker = files.get(b"redis", files.meta) is not None
    finally:
        files.close()
    if is_worker and not up_to_date and crawl.manifest.get("end") in (None, "broken"):
        raise CrawlDirError(
            f"{path}: this worker was killed, and Redis may know of more than is here: run the"
            f" crawl once more, then {program.NAME} compact"
        )
    for store, name in (("PageFilesPipeline", "store.log"), ("LinkLogPipeline", "links.log")):
        if store in positions:
            truncate_file(path / name, positions[store].split()[-1])
    return positions


def _that_count(
    records: Sequence[Sequence[str]], versions: int, kept_before: Callable[[Sequence[str]], int]
) -> list[int]:
    """The numbers of the records to keep: the last records of each URL since its removal.
    ``kept_before``: the number of records before a removal that stay, too, by the record of the
    removal."""
    of_url: dict[str, list[int]] = defaultdict(list)
    taken_out: list[int] = []
    for number, fields in enumerate(records):
        if fields[STATUS] != REMOVED:
            of_url[fields[_URL]].append(number)
            continue
        before = of_url.pop(fields[_URL], [])
        if before and (most := kept_before(fields)):
            taken_out += [*before[-most:], number]
    last = (n for numbers in of_url.values() for n in numbers[-1 - versions :])
    return sorted([*taken_out, *last])


def _dropped(path: Path, kept: Sequence[Sequence[str]], awaited: int | None) -> list[int]:
    """The page files that have bodies which do not count. From ``awaited`` on a receiver has not
    taken them all, and they stay as they are (pipelines/outbox/)."""
    live = Counter[int]()
    for fields in kept:
        live[int(fields[_FILE])] += int(fields[_SIZE])
    return [
        number
        for number in _numbers(path)
        if live[number] < stored_size(path / page_file_name(number))
        and (awaited is None or number < awaited)
    ]


def _write(
    crawl: CrawlDir,
    draft: Path,
    kept: list[list[str]],
    dropped: Sequence[int],
    blobs: set[int],
    positions: Mapping[str, bytes],
) -> None:
    path = crawl.path
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir()
    numbers = _numbers(path)
    sizes = {number: stored_size(path / page_file_name(number)) for number in numbers}
    where = {old: new for new, old in enumerate(dropped, max(numbers, default=-1) + 1)}
    files: dict[int, AppendFile] = {}
    log = _log(path, draft, "store.log", STORE_LOG_COLUMNS)
    try:
        for fields in kept:
            old = int(fields[_FILE])
            if fields[STATUS] == REMOVED:
                fields[_FILE] = "0"  # it names no body
            elif old in where:
                if where[old] not in files:
                    packed = present(path / page_file_name(old)).name.endswith(SUFFIX)
                    name = draft / page_file_name(where[old])
                    files[where[old]] = open_appending(name, compressed=packed)
                file, body = files[where[old]], crawl.body(crawl.page_of(fields))
                fields[_FILE], fields[_OFFSET] = str(where[old]), str(file.end)
                file.write(body)
            log.append(*fields)
        at = {"PageFilesPipeline": log.flush().decode()}
    finally:
        for file in files.values():
            file.close()
        log.close()
    last = max([*files, *(n for n in numbers if n not in where)], default=0)
    staying = 0 if last in where else sizes.get(last, 0)  # 0 may have gone, and nothing come
    length = files[last].end if last in files else staying
    _, _, *next_blob, _ = positions.get("PageFilesPipeline", b"0 0 0").decode().split()
    at["PageFilesPipeline"] = " ".join([f"{last} {length}", *next_blob, at["PageFilesPipeline"]])
    if present(path / "links.log").exists():
        links = _log(path, draft, "links.log", LINK_LOG_COLUMNS)
        try:
            for record in crawl.logs.links():
                links.append(*record)
            at["LinkLogPipeline"] = links.flush().decode()
        finally:
            links.close()
    committed = {name: position for name, position in at.items() if name in positions}
    with (draft / PLAN).open("w") as plan:
        json.dump({"positions": committed, "dropped": list(dropped), "blobs": list(blobs)}, plan)
        plan.flush()
        os.fsync(plan.fileno())
    sync_folder(draft)


def _log(path: Path, draft: Path, name: str, columns: Sequence[str]) -> RecordLog:
    packed = present(path / name).name.endswith(SUFFIX)
    return RecordLog(draft / name, columns, compressed=packed)


def _numbers(path: Path) -> list[int]:
    names = (file.name.split(".")[0].partition("_")[2] for file in path.glob("pagefile_*.pfl*"))
    return sorted(int(number) for number in names if number.isdecimal())


def _bytes(path: Path) -> int:
    return sum(file.stat().st_size for file in _files(path) if file.is_file())


def _files(path: Path) -> Iterator[Path]:
    for pattern in ("pagefile_*.pfl*", "blobs/*", "store.log*", "links.log*", "index/**/*"):
        yield from path.glob(pattern)
