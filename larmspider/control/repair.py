"""Repairs the damages that a check has found: `scrapy verify --repair`.

    found = check(Path("crawl"), settings, say)
    left = repair(found, settings, say)          # the remaining damages, in words

Damaged pages become due: the next run with refresh= fetches them again. Damaged lines of logs
become holes of the same length, and a hole fills up a log that is too short. Positions and offsets
therefore stay right, in the frontier and in Redis. Derived files are rebuilt.

Pages become due before anything is overwritten. A killed repair is therefore continued by the next
one: it finds the rest.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from larmspider import plugin, program
from larmspider.checksums import (
    SEAL,
    Stretch,
    crc_of,
    forget_sums,
    read_sums,
    sum_anew,
    sums_path,
)
from larmspider.control.reindex import reindex, restore_unreached
from larmspider.crawl.log_index.builder import bring_up_to_date
from larmspider.crawl.log_index.index import FOLDER as LOG_INDEX
from larmspider.crawl.reader import CrawlDir
from larmspider.crawl.verify.bodies import Bodies, records
from larmspider.crawl.verify.check import STORES
from larmspider.crawl.verify.findings import Findings, Say
from larmspider.crawl.verify.logs import hole
from larmspider.crawl.worker_dirs import open_crawl
from larmspider.errors import InvalidURL, LarmspiderError
from larmspider.fetch.blobs import FOLDER as BLOBS_FOLDER
from larmspider.fetch.blobs import blob_files
from larmspider.files import make_folder, replace_file, sync_file, sync_folder
from larmspider.frontier.storage.backend import Backend
from larmspider.frontier.storage.lmdb_backend import LmdbBackend
from larmspider.frontier.storage.lmdb_env import LmdbFiles
from larmspider.frontier.storage.records import (
    FetchRecord,
    QueuedUrl,
    UrlState,
    host_of,
    url_key,
)
from larmspider.index.writer import seal_index
from larmspider.items import REDIRECT
from larmspider.learned.revisits.host import NOTE as KNOWN
from larmspider.learned.revisits.host import HostKnowledge
from larmspider.learned.revisits.plan import ASKED
from larmspider.learned.revisits.revisiting import NOTE_ENDED
from larmspider.pipelines.fetch_log import FETCH_LOG_COLUMNS
from larmspider.pipelines.outbox.spool import (
    COMMITTED,
    Position,
    cursors,
    read_committed,
    segments,
    write_committed,
)
from larmspider.pipelines.outbox.spool import FOLDER as OUTBOX
from larmspider.pipelines.page_files import WARC, PageFilesPipeline, page_file_name
from larmspider.pipelines.records import read_records
from larmspider.workdir.directory import write_manifest
from larmspider.workdir.frames import (
    FRAME_BYTES,
    SUFFIX,
    forget,
    frames_of,
    open_stored,
    packed_frames,
    present,
    stored_size,
)
from larmspider.workdir.left import leave
from larmspider.workdir.manifest import CUT_BACK, REJUDGE, stores_in
from larmspider.workdir.manifest_copy import NOTE, packed
from larmspider.workdir.restricted import restricted_or_all

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

    from larmspider.urls.canonical import Forms

_BATCH = 2_000
_SPELLINGS = 32
_WARC, _MEND = "warc.pipeline", "warc.mend"
_NEW, _OLD = "frontier.new", "frontier.old"


def repair(
    found: Findings,
    settings: BaseSettings,
    say: Say,
    *,
    make_due: Callable[[Mapping[bytes, str]], int] | None = None,
) -> Iterator[str]:
    """Repair a directory, under its lock. Yields the remaining damages, in words. ``make_due``: for
    a worker's directory, whose frontier is in Redis. Raises CrawlDirError, OSError."""
    path, is_worker = found.path, make_due is not None
    if found.manifest is not None:
        write_manifest(path, found.manifest)
    for file, content in found.rewritten.items():
        _write_again(file, content)
    for copy, source in found.restored.items():
        copy.parent.mkdir(exist_ok=True)
        replace_file(copy, source.read_bytes())
    if found.outbox_lost:
        _add_since(found)
    if found.frontier_lost and is_worker:
        yield (
            f"{path / 'frontier'}: it is a worker's copy of what Redis has: put it back, or start"
            " the workers with another LARM_WORKER"
        )
    elif not found.frontier_lost:
        make = make_due or (lambda due: _make_due_here(path, due))
        if found.due:
            make(found.due)
        if found.frontier_unsealed and (is_worker or not found.due):
            LmdbFiles(path / "frontier").close()  # its last writer vouches for it
    for file, end in found.tails.items():
        os.truncate(file, end)
        sync_file(file)
    damaged = _damaged_stretches(path)
    _mend_files(found, say)
    if found.frontier_lost and not is_worker:
        yield from _rebuild_frontier(found, damaged, say)
    if found.outbox_lost:
        _begin_outbox_anew(found)
    for gone in found.gone:
        shutil.rmtree(gone) if gone.is_dir() else gone.unlink(missing_ok=True)
        forget_sums(gone)
    if (path / OUTBOX).is_dir() and not (path / OUTBOX / COMMITTED).exists():
        write_committed(path / OUTBOX, _committed(path))
    for file in dict.fromkeys(found.unsummed):
        if present(file) == file and file.exists():
            sum_anew(file)
        else:
            forget_sums(file)
    if found.index_lost:
        yield from _rebuild_index(found, settings, say)
    elif found.index_unsealed:
        restore_unreached(CrawlDir(path))
        seal_index(path / "index")
    if found.log_index_lost:
        yield from _rebuild_log_index(path, settings)
    if found.left_unsealed or (path / SEAL).exists():
        leave(path)
    for damage in found.damages:
        if damage.mend:
            yield str(damage)


# pages


def make_due(backend: Backend, due: Mapping[bytes, str], forms: Callable[[str], Forms]) -> int:
    """Have pages fetched again: stored pages at their next visit, others from the queue."""
    doubtful: dict[str, set[bytes]] = {}
    number = 0
    for key, url in due.items():
        known = _record_of(backend, key, _exact(forms, url))
        if known is None:
            number += sum(backend.add([_entry(url, key, forms)]))
            continue
        key, visit = known
        host = host_of(visit.url)
        if visit.state is UrlState.STORED:
            backend.schedule([(key, ASKED)])
            doubtful.setdefault(host, set()).add(key)
        else:
            backend.forget([key])
            entry = _entry(visit.url, key, forms)
            entry.depth, entry.from_page = visit.depth, visit.from_page
            entry.link_type = visit.link_type
            backend.add([entry])
        number += 1
    for host, keys in doubtful.items():
        name = KNOWN.format(host=host)
        of_host = HostKnowledge.unpack(backend.note(name))
        of_host.doubtful |= keys
        backend.put_note(name, of_host.pack())
    return number


def _record_of(backend: Backend, key: bytes, exact: str) -> tuple[bytes, FetchRecord] | None:
    others = (url_key(f"{exact}#{number}") for number in range(1, _SPELLINGS + 1))
    for one in (key, *others):
        if (visit := backend.visit(one)) is not None and visit.url:
            return one, visit
    return None


def _exact(forms: Callable[[str], Forms], url: str) -> str:
    try:
        return forms(url).exact
    except InvalidURL:
        return url


def _entry(url: str, key: bytes, forms: Callable[[str], Forms]) -> QueuedUrl:
    try:
        normalized, exact = forms(url)
    except InvalidURL:
        normalized = exact = url
    return QueuedUrl(url, normalized, key, host_of(url), guess=_guess(normalized, exact))


def _guess(normalized: str, exact: str) -> bytes:
    """The key by which other spellings of the page find it; b"" for the page's own."""
    return url_key(normalized) if normalized != exact else b""


def _make_due_here(path: Path, due: Mapping[bytes, str]) -> int:
    backend = LmdbBackend(path / "frontier")
    try:
        backend.recover()
        number, items = 0, list(due.items())
        for at in range(0, len(items), _BATCH):
            part = dict(items[at : at + _BATCH])
            number += make_due(backend, part, CrawlDir(path).forms)
            backend.checkpoint({})
        return number
    finally:
        backend.close()


def _add_since(found: Findings) -> None:
    """Lost entries of the outbox are sent once their pages are stored again."""
    with CrawlDir(found.path).frontier() as frontier:
        for key, visit in () if frontier is None else frontier.visits():
            if visit.has_page and visit.url and visit.time >= found.outbox_since:
                found.due[key] = visit.url


# files


def _write_again(file: Path, content: bytes) -> None:
    """Write the content that the last run left. An operator may have changed a list by hand: that
    list stays beside the file."""
    if file.suffix == ".txt" and file.exists():
        replace_file(file.with_name(f"{file.name}.changed"), file.read_bytes())
    make_folder(file.parent)
    replace_file(file, content)


def _mend_files(found: Findings, say: Say) -> None:
    """Fill up files that were cut short, and overwrite damaged lines."""
    ends = _committed_ends(found) if found.foreign else {}
    for file in found.foreign:
        _pack_foreign(file, ends.get(file), found.holes.get(file, ()))
        found.short.pop(file, None)
    for number, (file, size) in enumerate(found.short.items()):
        say("files", number, len(found.short))
        _fill_up(file, size)
    for file, (whole, size) in found.warc_short.items():
        plugin.load(_WARC).fill_up(file, whole, size)
    for file, starts in found.warc_lost.items():
        plugin.load(_WARC).drop_records(file, starts)
        if spans := {at: size for at, size in starts.items() if size}:
            plugin.load(_MEND).blank(file, spans)
    for file in found.cdxj:
        plugin.load(_MEND).index_anew(file)
    for file, holes in found.holes.items():
        if file.name.endswith(SUFFIX):
            if file not in found.foreign:
                _pack_anew(file)
            continue
        with file.open("r+b") as log:
            for start, end in holes:
                log.seek(start)
                log.write(hole(end - start))
        sync_file(file)


def _fill_up(file: Path, size: int) -> None:
    """Fill a truncated file up to ``size`` bytes: a page file with zeros, a log with one hole
    after its last whole line."""
    is_log = file.name.endswith((".log", ".log" + SUFFIX))
    if file.name.endswith(SUFFIX):
        _pack_anew(file, size, b"\t" if is_log else b"\0")
    elif not is_log:
        with file.open("ab"):
            os.truncate(file, size)
    else:
        with file.open("a+b") as log:
            there = log.seek(0, os.SEEK_END)
            log.seek(max(0, there - (1 << 20)))
            tail = log.read()
            whole = there - len(tail) + tail.rfind(b"\n") + 1
            log.truncate(whole)
            left = size - whole
            while left > _PIECE:
                log.write(b"\t" * _PIECE)
                left -= _PIECE
            if left:
                log.write(hole(left) if left == size - whole else b"\t" * (left - 1) + b"\n")
    sync_file(file)
    sync_folder(file.parent)


_PIECE = 1 << 20


def _pack_anew(file: Path, size: int = 0, fill: bytes = b"\t") -> None:
    """Rewrite a compressed file with its readable frames; tabs replace the others, and the bytes
    missing up to ``size``. Frames end where they ended."""
    plain = file.with_name(file.name.removesuffix(SUFFIX))
    draft = file.with_name(file.name + ".mended")
    done = 0
    with draft.open("wb") as out:
        if file.exists():
            frames = frames_of(file)
            with file.open("rb") as raw, open_stored(plain, skip=True) as content:
                while (frame := frames.frame_at(raw, done)) is not None:
                    content.seek(frame.start)
                    for piece in packed_frames(content.read(frame.size), 1)[0]:
                        out.write(piece)
                    done += frame.size
        while done < size:
            piece = fill * min(FRAME_BYTES, size - done)
            if done + len(piece) == size and fill == b"\t":
                piece = piece[:-1] + b"\n"
            for part in packed_frames(piece, 1)[0]:
                out.write(part)
            done += len(piece)
        out.flush()
        os.fsync(out.fileno())
    draft.replace(file)
    sync_folder(file.parent)
    forget(file)


def _committed_ends(found: Findings) -> dict[Path, int]:
    """The committed bytes of each file whose position the frontier has."""
    with CrawlDir(found.path).frontier() as frontier:
        positions = {} if frontier is None else frontier.positions()
    ends = {}
    for store, name in STORES.items():
        if position := positions.get(store, b"").split():
            ends[present(found.path / name)] = int(position[-1])
    if position := positions.get("PageFilesPipeline", b"").split():
        number, length = int(position[0]), int(position[1])
        ends[present(found.path / page_file_name(number))] = length
    return ends


def _pack_foreign(file: Path, end: int | None, holes: Iterable[tuple[int, int]]) -> None:
    """Rewrite a compressed file of another crawl with ``end`` bytes inside, so that the next start
    finds its position. Its lines in ``holes`` are not records of this crawl."""
    draft = file.with_name(f"{file.name}.mended")
    with draft.open("wb") as out:
        for piece in _foreign_pieces(file, end, [*holes]):
            out.writelines(packed_frames(piece, 1)[0])
        out.flush()
        os.fsync(out.fileno())
    draft.replace(file)
    sync_folder(file.parent)
    forget(file)


def _foreign_pieces(
    file: Path, end: int | None, holes: Sequence[tuple[int, int]]
) -> Iterator[bytes]:
    plain = file.with_name(file.name.removesuffix(SUFFIX))
    is_log, size = plain.suffix == ".log", stored_size(plain)
    whole = size if end is None else min(size, end)
    with open_stored(plain, skip=True) as content:
        if is_log:
            content.seek(max(0, whole - _PIECE))
            tail = content.read(min(whole, _PIECE))
            whole -= len(tail) - (tail.rfind(b"\n") + 1)
        for at in range(0, whole, FRAME_BYTES):
            content.seek(at)
            piece = bytearray(content.read(min(FRAME_BYTES, whole - at)))
            for start, stop in holes:
                line = hole(stop - start)
                first, last = max(start, at), min(stop, at + len(piece))
                if first < last:
                    piece[first - at : last - at] = line[first - start : last - start]
            yield bytes(piece)
    missing = max(0, (end or 0) - whole)
    while missing:
        size = min(FRAME_BYTES, missing)
        missing -= size
        yield bytes(size) if not is_log else (hole(size) if not missing else b"\t" * size)


def _damaged_stretches(path: Path) -> dict[int, list[Stretch]]:
    """Paths of page files, by number."""
    found: dict[int, list[Stretch]] = {}
    for sums in sums_path(path / "x").parent.glob("pagefile_*.pfl"):
        file, number = path / sums.name, sums.name.removesuffix(".pfl").partition("_")[2]
        size = stored_size(file, missing=0) if present(file) == file else 0
        bad = [one for one in read_sums(file)[0] if not _is_whole(file, one, size)]
        if number.isdecimal() and bad:
            found[int(number)] = bad
    return found


def _is_whole(file: Path, one: Stretch, size: int) -> bool:
    return one.end <= size and crc_of(file, one.start, one.end) == one.crc


# the frontier


def _rebuild_frontier(
    found: Findings, damaged: Mapping[int, list[Stretch]], say: Say
) -> Iterator[str]:
    """Rebuild the frontier from the stored pages. Hosts and URLs without a page are found again,
    because the links of links.log are judged again."""
    path = found.path
    crawl = CrawlDir(path)
    positions, unknown = _positions(path, crawl.manifest)
    if unknown:
        yield (
            f"{path / 'frontier'}: it is lost, and how much of {', '.join(unknown)} counts is not"
            " known without it: put the frontier back, or move their files elsewhere"
        )
        return
    write_manifest(path, {**crawl.manifest, REJUDGE: True, CUT_BACK: True})
    shutil.rmtree(path / _NEW, ignore_errors=True)
    backend = LmdbBackend(path / _NEW)
    try:
        backend.recover()
        visits = _visits(found, crawl, damaged, say)
        while batch := [one for _, one in zip(range(_BATCH), visits, strict=False)]:
            _put(backend, batch)
        backend.put_note(NOTE, packed(CrawlDir(path).manifest))
        if crawl.manifest.get("end") == "finished":
            backend.put_note(NOTE_ENDED, b"1")
        backend.checkpoint(positions)
    finally:
        backend.close()
    shutil.rmtree(path / _OLD, ignore_errors=True)
    with suppress(FileNotFoundError):
        (path / "frontier").rename(path / _OLD)
    (path / _NEW).rename(path / "frontier")
    sync_folder(path)
    shutil.rmtree(path / _OLD, ignore_errors=True)


def _positions(path: Path, manifest: Mapping[str, object]) -> tuple[dict[str, bytes], list[str]]:
    """The stores' positions, as their files are; and the stores whose position is not known."""
    found: dict[str, bytes] = {}
    unknown = []
    for store, files in stores_in(dict(manifest)).items():
        name = store.rpartition(".")[2]
        if name == "PageFilesPipeline":
            found[name] = _position_of_pages(path)
        elif name == "SearchIndexPipeline":
            found[name] = b"index 0"
        elif files == [OUTBOX]:
            found[OUTBOX] = read_committed(path / OUTBOX).pack()
        elif files == [WARC]:
            there = plugin.load(_WARC).warc_files(path / WARC)
            last = max(there, default=0)
            found[name] = b"%d %d" % (last, there[last].stat().st_size if there else 0)
        elif logs := [file for file in files if file.endswith(".log")]:
            found[name] = b"%d" % stored_size(path / logs[0], missing=0)
        else:
            unknown.append(name)
    return found, unknown


def _position_of_pages(path: Path) -> bytes:
    names = (file.name.removesuffix(SUFFIX) for file in path.glob("pagefile_*.pfl*"))
    numbers = [name[9:-4] for name in names if name.endswith(".pfl")]
    number = max((int(one) for one in numbers if one.isdecimal()), default=0)
    length = stored_size(path / page_file_name(number), missing=0)
    blobs = b""
    if there := blob_files(path / BLOBS_FOLDER):
        blobs = b"%d " % (max(there) + 1)
    log = stored_size(path / PageFilesPipeline.file_name, missing=0)
    return b"%d %d %b%d" % (number, length, blobs, log)


def _visits(
    found: Findings, crawl: CrawlDir, damaged: Mapping[int, list[Stretch]], say: Say
) -> Iterator[tuple[QueuedUrl, FetchRecord]]:
    """The record of each page that is stored whole."""
    path = crawl.path
    log, end = path / "store.log", stored_size(path / "store.log", missing=0)
    times = _times(path)
    keys: list[bytes] = []
    last: dict[bytes, int] = {}
    for number, (_, fields) in enumerate(records(log, end)):
        key = url_key(_exact(crawl.forms, fields[1]))
        keys.append(key)
        last[key] = number
    depths: dict[int, int] = {}
    with Bodies(path) as bodies:
        for number, (_, fields) in enumerate(records(log, end)):
            say("frontier", number, len(keys))
            from_page, url, normalized, link_type, status = fields[:5]
            depth = depths.get(hash(from_page), -1) + (link_type != str(REDIRECT))
            depths[hash(url)] = depth
            if last[keys[number]] != number or status == "0":
                continue
            size, file, offset = int(fields[6]), int(fields[8]), int(fields[9])
            digest = bodies.digest(file, offset, size)
            hit = any(s.start < offset + size and offset < s.end for s in damaged.get(file, ()))
            if isinstance(digest, str) or hit or keys[number] in found.due:
                continue  # it is not known, and so fetched where a page or a seed names it
            code = int(status)
            entry = QueuedUrl(
                url, normalized, keys[number], host_of(url), max(0, depth), int(link_type or 0),
                from_page=from_page, guess=_guess(normalized, _exact(crawl.forms, url)),
            )  # fmt: skip
            visit = FetchRecord(
                UrlState.FAILED if code >= 400 else UrlState.STORED,
                time=times.get(hash(url), 0.0) or time.time(),
                status=code,
                digest=digest,
                reason=f"http-{code}" if code >= 400 else "",
            )
            yield entry, visit


def _times(path: Path) -> dict[int, float]:
    """When each URL was fetched last, by hash."""
    found: dict[int, float] = {}
    if present(path / "fetch.log").exists():
        for fields in read_records(path / "fetch.log", len(FETCH_LOG_COLUMNS)):
            with suppress(ValueError):
                found[hash(fields[1])] = datetime.fromisoformat(fields[0]).timestamp()
    return found


def _put(backend: Backend, batch: list[tuple[QueuedUrl, FetchRecord]]) -> None:
    """Through the states that a URL has: queued, leased, done."""
    visits = {entry.key: visit for entry, visit in batch}
    backend.add([entry for entry, _ in batch])
    for host in {entry.host for entry, _ in batch}:
        while leased := backend.pop(host, 0.0, _BATCH):
            backend.acknowledge([(entry.key, visits[entry.key]) for entry in leased])
    backend.checkpoint({})


# the outbox and the index


def _begin_outbox_anew(found: Findings) -> None:
    """Let receivers continue after lost entries. The pages of these entries are stored and sent
    again."""
    directory, at = found.path / OUTBOX, _committed(found.path)
    for name, cursor in cursors(directory).items():
        cursor.offset, cursor.number = at.offset, at.number
        cursor.write(directory, name)
    for path in segments(directory).values():
        path.unlink()
        forget_sums(path)
    (directory / f"{at.offset:015d}.spool").touch()
    sync_folder(directory)


def _committed(path: Path) -> Position:
    """The position of the outbox that the frontier has."""
    with CrawlDir(path).frontier() as frontier:
        return Position.unpack(b"" if frontier is None else frontier.positions().get(OUTBOX, b""))


def _rebuild_log_index(path: Path, settings: BaseSettings) -> Iterator[str]:
    shutil.rmtree(path / LOG_INDEX, ignore_errors=True)
    try:
        bring_up_to_date(open_crawl(path, (), settings))
    except LarmspiderError as error:
        yield str(error)


def _rebuild_index(found: Findings, settings: BaseSettings, say: Say) -> Iterator[str]:
    crawl = CrawlDir(found.path)
    if "store.log" not in {name for names in stores_in(crawl.manifest).values() for name in names}:
        yield f"{crawl.index_dir}: it cannot be rebuilt without page files: put it back"
        return
    if found.anchors_lost:
        shutil.rmtree(crawl.index_dir / "anchors", ignore_errors=True)
    due = set(found.due.values())
    try:
        reindex(
            crawl,
            settings,
            lambda done, total: say("index", done, total),
            lambda url: url not in due,
            restricted=restricted_or_all([crawl.path], settings),
        )
    except LarmspiderError as error:
        yield f"{error}; then {program.NAME} reindex rebuilds the index"
