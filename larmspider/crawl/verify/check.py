"""Checks one directory: all of it for `scrapy verify`, the quick part at the start of a crawl.

found = check(Path("crawl"), settings, say=lambda what, done, total: None)
for damage in found.damages: print(damage)
quick_check(Path("crawl"))           # a line for each damage, in milliseconds
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import ExitStack, closing
from pathlib import Path
from typing import TYPE_CHECKING

from larmspider import plugin
from larmspider.checksums import SEAL, crc_of, read_seal, tantivy_crcs
from larmspider.crawl.logs import STATUS
from larmspider.crawl.reader import CrawlDir
from larmspider.crawl.verify.bodies import StoredUrls, check_bodies, records, stored_by_frontier
from larmspider.crawl.verify.findings import Findings, Say
from larmspider.crawl.verify.frontier import check_seal, open_reader, walked
from larmspider.crawl.verify.index import check_index, check_log_index
from larmspider.crawl.verify.kinds import odd_entries
from larmspider.crawl.verify.logs import (
    FORMS,
    Scan,
    check_log,
    fields_around,
    is_hole,
    lines_in,
    scan,
)
from larmspider.crawl.verify.others import (
    check_checksums,
    check_left,
    check_manifest,
    check_other_logs,
    check_outbox,
    check_small,
    check_tails,
)
from larmspider.errors import MEND, CrawlDirError, InvalidURL, LarmspiderError, NoCrawlError
from larmspider.extraction.processes.process import Readers
from larmspider.extraction.texts.language import Languages, languages_in
from larmspider.files import is_locked
from larmspider.formatting import counted
from larmspider.frontier.storage.lmdb_reader import FrontierReader
from larmspider.frontier.storage.records import UrlState, url_key
from larmspider.pipelines.fetch_log import FETCH_LOG_COLUMNS, remarks_in
from larmspider.pipelines.outbox.spool import FOLDER as OUTBOX
from larmspider.pipelines.outbox.spool import Position
from larmspider.pipelines.page_files import page_file_name
from larmspider.pipelines.records import read_records
from larmspider.pipelines.reextract import reextracted
from larmspider.urls.canonical import Forms
from larmspider.workdir.frames import open_stored, present, stored_size
from larmspider.workdir.manifest import LOCK, MANIFEST, files_in, is_shared, stores_in
from larmspider.workdir.manifest_copy import NOTE, read_or_copy, unpacked

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

QUICK_SEALED_BYTES = 16 << 20
"""The largest file whose checksum is verified at the start of a crawl: 6 ms."""
QUICK_BYTES = 1 << 20
"""Bytes at the end of each log that are checked at the start of a crawl."""
STORES = {
    "PageFilesPipeline": "store.log",
    "LinkLogPipeline": "links.log",
    "FetchLogPipeline": "fetch.log",
    "DeletedLogPipeline": "deleted.log",
}
_KNOWN = frozenset(UrlState) - {UrlState.UNKNOWN}
_WITH_RECORD = frozenset({UrlState.STORED, UrlState.FAILED})
_ENDED = frozenset({None, "broken"})


def parts_of(path: Path) -> list[Path]:
    """The directories to check: this one, or the workers' directories below. Raises CrawlDirError
    for a directory without a crawl."""
    if not path.is_dir():
        raise NoCrawlError(f"LARM_DIR={path} is not a directory: expected the directory of a crawl")
    found = read_or_copy(path)
    if found.manifest is None and not found.trouble:
        raise NoCrawlError(
            f"LARM_DIR={path} is not a crawl's directory: it has no {MANIFEST}, and no frontier"
            " with a copy of it"
        )
    below = {file.parent for name in (MANIFEST, "frontier") for file in path.glob(f"*/{name}")}
    if found.manifest is not None and is_shared(found.manifest):
        return sorted(below)
    return [path]


def check_root(path: Path) -> Findings:
    """Checks the files of the directory of many workers itself."""
    found = Findings(path)
    check_manifest(found, None)
    check_small(found)
    check_log_index(found, path, (read_or_copy(path).manifest or {}).get("began"))
    return found


def check(path: Path, settings: BaseSettings, say: Say, *, running: bool | None = None) -> Findings:
    """Check one directory. ``running``: whether a crawl writes there; None: as its lock says.
    Raises CrawlDirError if it cannot be read at all."""
    found = Findings(path)
    running = is_locked(path / LOCK) if running is None else running
    manifest = read_or_copy(path).manifest or {}
    with ExitStack() as stack:
        frontier = _check_frontier(found, say, running=running)
        if frontier is not None:
            stack.enter_context(closing(frontier))
        if frontier is not None and _is_of_another(found, frontier, manifest):
            frontier = None
        check_manifest(found, frontier)
        manifest = found.manifest or manifest
        positions = {} if frontier is None else frontier.positions()
        if not running:
            check_left(found, manifest)
        forms = _forms_of(path, manifest)
        ends = _ends(path, manifest, positions)
        scans = {name: check_log(found, path / name, end, say) for name, end in ends.items()}
        is_ours = manifest.get("spider") == "intranet" and not (
            frontier is not None and _is_worker(path)
        )
        complete = is_ours and frontier is not None
        _doubt_foreign(found, scans)
        _check_page_file(found, positions)
        stored = StoredUrls()
        if has_bodies := "store.log" in ends:
            end = ends["store.log"]
            stored = check_bodies(found, frontier, forms, end, say, complete=complete)
        elif frontier is not None:
            stored = stored_by_frontier(frontier, forms)
            found.pages = len(stored.last)
            found.notes.append(f"{path}: there is no store.log, so no bodies were checked")
        _judge_doubtful(found, scans, ends, stored, frontier, forms, complete=complete)
        _make_due_around(found, scans, ends, stored)
        if frontier is not None and _is_worker(path):
            found.notes.extend(_elsewhere(path, frontier))
        check_small(found)
        if not running:
            check_other_logs(found, ends, say)
            check_tails(found, ends)
            committed = positions.get(OUTBOX)
            check_outbox(found, None if committed is None else Position.unpack(committed), say)
            if warc := positions.get("WarcPipeline"):
                plugin.load("warc.verify").check_warc(found, warc, say)
            if any(name.endswith("SearchIndexPipeline") for name in stores_in(manifest)):
                check_index(
                    found,
                    stored if has_bodies or frontier is not None else None,
                    say,
                    expected=_expected(path, stored, ends),
                    missing=lambda keys: _missing(path, settings, forms, keys, frontier),
                    ahead=manifest.get("end") in _ENDED,
                )
            check_log_index(found, path, manifest.get("began"))
            check_checksums(found, manifest)
        else:
            found.notes.append(f"{path}: a crawl runs here; its index and outbox were not checked")
    return found


def _check_frontier(found: Findings, say: Say, *, running: bool) -> FrontierReader | None:
    path = found.path / "frontier"
    data = path / "data.mdb"
    say("frontier", 0, 1)
    if not data.exists() or not data.stat().st_size:
        if "frontier" in files_in(read_or_copy(found.path).manifest or {}):
            found.add(data, "is empty" if data.exists() else "is gone")
            found.frontier_lost = True
        return None
    if error := walked("frontier", path):
        found.add(data, error.removeprefix(f"the frontier in {path} is damaged: "))
        found.frontier_lost = True
        return None
    try:
        if not running and (changed := check_seal(path)):
            found.add(data, changed)
            found.frontier_unsealed = True
    except ValueError as error:
        found.add(path / SEAL, f"is {error}")
        found.frontier_unsealed = True
    try:
        return open_reader(path)
    except (LarmspiderError, OSError) as error:
        found.add(data, str(error))
        found.frontier_lost = True
        return None


def _is_worker(path: Path) -> bool:
    found = read_or_copy(path.parent).manifest
    return found is not None and is_shared(found)


def _elsewhere(path: Path, frontier: FrontierReader) -> Iterator[str]:
    """Workers with stored pages whose directories are not beside this one."""
    pages = Counter(visit.shard for _, visit in frontier.visits() if visit.shard)
    for worker, number in sorted(pages.items()):
        if not present(path.parent / worker / "store.log").exists():
            yield (
                f"{path}: {counted(number, 'page')} of worker {worker}, whose directory is not"
                " here: it is on another machine, or lost (docs/troubleshooting.md)"
            )


def _forms_of(path: Path, manifest: Mapping[str, object]) -> Callable[[str], Forms]:
    crawl = CrawlDir.__new__(CrawlDir)
    crawl.path, crawl.manifest = path, dict(manifest)
    return crawl.forms


def _ends(
    path: Path, manifest: Mapping[str, object], positions: Mapping[str, bytes]
) -> dict[str, int]:
    """The committed length of each log; all of it without a position."""
    listed = set(files_in(dict(manifest)))
    found = {}
    for store, name in STORES.items():
        if store in positions:
            found[name] = int((positions[store].split() or [b"0"])[-1])
        elif name in listed or present(path / name).exists():
            found[name] = stored_size(path / name, missing=0)
    return found


def _doubt_foreign(found: Findings, scans: dict[str, Scan]) -> None:
    """All lines of a compressed log are doubtful if the file is not what the last run left."""
    for name, result in scans.items():
        if present(found.path / name) in found.foreign:
            scans[name] = result._replace(doubtful=[(0, result.size)])


def _check_page_file(found: Findings, positions: Mapping[str, bytes]) -> None:
    """Check the last page file. Its length is a part of the position."""
    if not (position := positions.get("PageFilesPipeline")):
        return
    number, length, *_ = map(int, position.split())
    path = found.path / page_file_name(number)
    there = present(path)
    if (size := stored_size(path, missing=0)) < length:
        lacks = f"ends at {size:,}, {length:,} bytes were committed"
        found.add(there, lacks if there.exists() else f"is gone, {length:,} bytes were committed")
        found.short[there] = length
        found.unsummed.append(path)


def _judge_doubtful(
    found: Findings,
    scans: Mapping[str, Scan],
    ends: Mapping[str, int],
    stored: StoredUrls,
    frontier: FrontierReader | None,
    forms: Callable[[str], Forms],
    *,
    complete: bool,
) -> None:
    """Check well-formed lines in stretches with a wrong checksum. Lines of unknown pages are not
    records of this crawl; the pages of all other lines become due."""
    for name, field in (("store.log", 1), ("links.log", 0), ("fetch.log", 1), ("deleted.log", 1)):
        if name not in scans or not scans[name].doubtful:
            continue
        holes = []
        for at, line in lines_in(found.path / name, scans[name].doubtful, ends[name]):
            fields = line[:-1].decode("utf-8", "replace").split("\t")
            if len(fields) <= field:
                continue
            key = _key(forms, fields[field])
            known = key in stored.removed or stored.has(key)
            if complete and frontier is not None and name != "links.log":
                states = _WITH_RECORD if name == "store.log" else _KNOWN
                known = key in stored.removed or frontier.state(key) in states
            if name == "deleted.log":
                known = known and len(fields) > 2 and url_key(fields[2]) == key
            if not known:
                holes.append((at, at + len(line)))
            elif stored.has(key):
                found.due[key] = fields[field]
            elif name == "links.log" and fields[3]:
                holes.append((at, at + len(line)))  # a removed page has no links
        if holes:
            found.add_holes(present(found.path / name), holes)


def _make_due_around(
    found: Findings,
    scans: Mapping[str, Scan],
    ends: Mapping[str, int],
    stored: StoredUrls,
) -> None:
    """All stores write pages in the same order. Damage between the lines of two pages therefore
    affects these two pages and the pages between them. If the order is lost, all pages are due."""
    for name, field in (("links.log", 0), ("fetch.log", 1)):
        if name not in scans:
            continue
        path, size, end = found.path / name, scans[name].size, ends[name]
        spans = [*found.holes.get(present(path), ()), *scans[name].doubtful]
        if size < end:
            spans.append((size, end))
        for span in spans:
            before, after = fields_around(path, span, min(size, end), field)
            first = stored.urls.get(before, 0) if before is not None else 0
            last = stored.urls.get(after, -1) if after is not None else -1
            last = len(stored.order) - 1 if last < first else last
            if not stored.in_order:
                first, last = 0, len(stored.order) - 1
            urls = {number: url for url, number in stored.urls.items() if first <= number <= last}
            for number, url in urls.items():
                key = stored.order[number]
                if stored.has(key):
                    found.due[key] = url


def _key(forms: Callable[[str], Forms], url: str) -> bytes:
    try:
        return url_key(forms(url).exact)
    except InvalidURL:
        return url_key(url)


def _is_of_another(
    found: Findings, frontier: FrontierReader, manifest: Mapping[str, object]
) -> bool:
    """Whether the frontier belongs to another crawl (and not crawl.json): the two name different
    crawls, and the frontier lacks pages of store.log or is not the frontier of the last run."""
    copy, _ = unpacked(frontier.note(NOTE) or b"", found.path)
    path = found.path
    if copy is None or copy.get("began") == manifest.get("began"):
        return False
    forms = _forms_of(path, manifest)
    log = path / "store.log"
    rows = records(log, stored_size(log, missing=0))
    keys = (_key(forms, fields[1]) for _, fields in rows)
    if not found.frontier_unsealed and all(
        frontier.state(key) is not UrlState.UNKNOWN for key in keys
    ):
        return False
    found.add(path / "frontier" / "data.mdb", f"is of another crawl, begun {copy.get('began')}")
    found.frontier_lost = True
    return True


def _expected(path: Path, stored: StoredUrls, ends: Mapping[str, int]) -> set[bytes]:
    """Pages that the index should have, unless they lead elsewhere or are in another language."""
    hidden: set[str] = set()
    if present(path / "fetch.log").exists():
        for fields in read_records(path / "fetch.log", len(FETCH_LOG_COLUMNS)):
            noindex = remarks_in(fields[7]).noindex
            (hidden.add if noindex else hidden.discard)(fields[1])
    wanted = set()
    for line, (_, fields) in enumerate(records(path / "store.log", ends.get("store.log", 0))):
        key = stored.order[line]
        if stored.last[key] == line and fields[STATUS] == "200" and fields[1] not in hidden:
            wanted.add(key)
    return wanted


def _missing(
    path: Path,
    settings: BaseSettings,
    forms: Callable[[str], Forms],
    keys: Collection[bytes],
    frontier: FrontierReader | None,
) -> list[str]:
    """The pages among the given ones that a rebuilt index would have. Each page is read once more.
    A page that a repair has made due is not in the index before its next visit."""
    with Readers.from_settings(settings) as readers, closing(Languages(())) as speaking:
        only = languages_in(settings, "LARM_INDEX_LANGUAGES")
        if only:
            return []  # to detect a language, all pages of a host are needed
        _, documents = reextracted(
            path, forms, readers, speaking, only, lambda url: _key(forms, url) in keys
        )
        return [
            name
            for name, page in documents
            if page is not None
            and (key := url_key(name)) in keys
            and not (frontier is not None and frontier.is_doubtful(key, name))
        ]


# the quick part


def check_seals(path: Path) -> None:
    """Raise CrawlDirError if frontier or index have changed since the last run, as far as a few
    milliseconds can show. Otherwise a run would continue in them, and hide the damage."""
    for odd, what in odd_entries(path, deep=False):
        raise CrawlDirError(f"{odd} {what}; {MEND}")
    try:
        data = path / "frontier" / "data.mdb"
        small = data.exists() and data.stat().st_size <= QUICK_SEALED_BYTES
        if small and (changed := check_seal(data.parent)):
            raise CrawlDirError(f"{data}: {changed}; {MEND}")
        for name, (size, crc) in (read_seal(path / "index") or {}).items():
            file = path / "index" / name
            there = file.stat().st_size if file.exists() else -1
            same = there == size
            if same and (known := tantivy_crcs(file)):
                same = crc in known
            elif same and size <= QUICK_SEALED_BYTES:
                same = crc_of(file, 0, size) == crc
            if not same:
                what = "is gone" if there < 0 else "has changed since the last run"
                raise CrawlDirError(f"{file} {what}; {MEND}")
    except ValueError as error:
        raise CrawlDirError(f"{path}: a {SEAL} is {error}; {MEND}") from error


def quick_check(path: Path, positions: Mapping[str, bytes]) -> Iterator[str]:
    """Damage at the ends of the logs, in words: columns, types and checksums of the last
    MB of each, some 5 ms."""
    names = {store: name for store, name in STORES.items() if store in positions}
    for store, name in names.items():
        end = int((positions[store].split() or [b"0"])[-1])
        file = path / name
        if not end or stored_size(file, missing=0) < end:
            continue  # the store reports it
        start = _line_after(file, end - QUICK_BYTES)
        result = scan(file, end, FORMS[name], lambda *_: None, start)
        for at, _ in result.bad[:1]:
            yield f"{present(file)}: damaged at byte {at:,}: a line is not a record of {name}"
        for at, stop in result.doubtful[:1] if not result.bad else ():
            yield (
                f"{present(file)}: damaged between bytes {at:,} and {stop:,}: they are not what"
                " their checksum says"
            )


def _line_after(file: Path, at: int) -> int:
    """The offset of the next beginning of a line."""
    if at <= 0:
        return 0
    with open_stored(file, skip=True) as log:
        log.seek(at)
        line = log.readline()
        while is_hole(line) and line:
            line = log.readline()
        return log.tell()
