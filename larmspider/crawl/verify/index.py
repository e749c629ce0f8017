"""The search index: its own checksums, whether it opens, and its pages against the stored pages."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Callable, Collection
from contextlib import closing
from pathlib import Path

import msgpack

from larmspider.checksums import SEAL, check_tantivy, crc_of, read_seal, tantivy_crcs
from larmspider.crawl.log_index.index import DATABASE, WRITER_LOCK, read_state
from larmspider.crawl.log_index.index import FOLDER as LOG_INDEX
from larmspider.crawl.verify.bodies import StoredUrls
from larmspider.crawl.verify.findings import Findings, Say
from larmspider.crawl.verify.frontier import walked
from larmspider.errors import CrawlDirError, is_panic
from larmspider.files import why_no_lock
from larmspider.formatting import counted
from larmspider.frontier.storage.records import url_key
from larmspider.index.rebuild import files_of, stored_documents
from larmspider.index.unreached import NAME as UNREACHED
from larmspider.index.unreached import is_damaged
from larmspider.index.version import check_format, has_index, open_index

_OF_TANTIVY = re.compile(r"[0-9a-f]{32}\..+")
Missing = Callable[[Collection[bytes]], Collection[str]]
"""Takes keys of pages. Returns the pages among them that a rebuilt index would have."""


def check_index(
    found: Findings,
    stored: StoredUrls | None,
    say: Say,
    *,
    expected: Collection[bytes],
    missing: Missing,
    ahead: bool,
) -> None:
    """``stored``: the stored pages, None if they are not known. ``expected``: keys of pages that
    may be in the index. ``ahead``: the crawl was killed, so the index may have pages that were not
    committed."""
    directory = found.path / "index"
    if not has_index(directory):
        was_there = bool(expected) or (directory / SEAL).exists()
        if was_there and not any(path.exists() for path in files_of(directory)):
            found.add(directory, "the search index is gone")
            found.index_lost = found.anchors_lost = True
        return
    try:
        check_format(directory)
    except CrawlDirError as refusal:
        found.add(directory, str(refusal).removeprefix(f"{directory}: "))
        found.index_lost = found.anchors_lost = True
        return
    _check_files(found, directory, say)
    anchors = directory / "anchors"
    if not (anchors / "data.mdb").exists():
        found.add(anchors / "data.mdb", "is gone")
        found.anchors_lost = True
    elif error := walked("table", anchors):
        found.add(anchors / "data.mdb", error)
        found.anchors_lost = True
    found.index_lost |= found.anchors_lost
    if not found.index_lost:
        _check_pages(found, directory, stored, say, expected, missing, ahead=ahead)


def _check_files(found: Findings, directory: Path, say: Say) -> None:
    """Check files by the seal of the last writer, and by Tantivy's checksums."""
    names = {path.name for path in directory.iterdir() if _OF_TANTIVY.fullmatch(path.name)}
    try:
        sealed = read_seal(directory)
    except ValueError as error:
        found.add(directory / SEAL, f"is {error}")
        found.index_unsealed = True
        sealed = None
    for name, (size, crc) in (sealed or {}).items():
        path = directory / name
        if not path.exists():
            what = "is gone"
        elif path.stat().st_size != size:
            what = f"has {path.stat().st_size:,} bytes, the last run left {size:,}"
        elif name in names:
            what = "" if crc in tantivy_crcs(path) else "is not the file that the last run left"
        else:
            what = "" if crc_of(path, 0, size) == crc else "does not match its checksum"
        if what and name == UNREACHED:
            _add_unreached(found, path, what)
        elif what:
            found.add(path, what)
            found.index_lost = True
            found.anchors_lost |= name.startswith("anchors/")
    if UNREACHED not in (sealed or ()) and is_damaged(directory):
        _add_unreached(found, directory / UNREACHED, "cannot be read")
    for number, name in enumerate(sorted(names)):
        say("index", number, len(names))
        if what := check_tantivy(directory / name):
            found.add(directory / name, what)
            found.index_lost = True
    for name in (".managed.json", "meta.json"):
        if what := _check_listed(directory, name):
            found.add(directory / name, what)
            found.index_lost = True


def _add_unreached(found: Findings, path: Path, what: str) -> None:
    """The frontier knows the same, so the index is whole."""
    found.add(path, what)
    found.gone.append(path)
    found.index_unsealed = True


def _check_listed(directory: Path, name: str) -> str:
    try:
        listed = json.loads((directory / name).read_bytes())
        if name == "meta.json":
            heads = [one["segment_id"].replace("-", "") for one in listed["segments"]]
            there = {path.name.partition(".")[0] for path in directory.iterdir()}
            lacking = [head for head in heads if head not in there]
            return f"names {counted(len(lacking), 'segment')} that is not there" if lacking else ""
    except FileNotFoundError:
        return "is gone"
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        return f"cannot be read: {error}"
    return "" if isinstance(listed, list) else "is not a list"


def _check_pages(
    found: Findings,
    directory: Path,
    stored: StoredUrls | None,
    say: Say,
    expected: Collection[bytes],
    missing: Missing,
    *,
    ahead: bool,
) -> None:
    if why := why_no_lock(directory):
        found.notes.append(
            f"{directory}: {why}, so its pages were not compared with the stored pages"
        )
        return
    try:
        open_index(directory)
        total, documents = stored_documents(directory)
        lacking, foreign = set(expected), 0
        not_committed = _ahead(directory) if ahead else frozenset()
        for number, (name, page) in enumerate(documents):
            if number % 1_000 == 0:
                say("index", number, total)
            if page is None:
                continue  # it waits to be removed
            key = url_key(page.container or name)
            lacking.discard(key)
            if stored is None or found.is_due(key) or name in not_committed:
                continue
            if not stored.has(key):
                foreign += 1
                found.add(directory, "a page is indexed and not stored", url=name)
    except BaseException as error:
        if not isinstance(error, Exception) and not is_panic(error):
            raise
        said = str(error).removeprefix(f"{directory}: ")
        found.add(
            directory, said if isinstance(error, CrawlDirError) else f"cannot be read: {said}"
        )
        found.index_lost = True
        return
    lacking = {key for key in lacking if not found.is_due(key)}
    for url in missing(lacking) if lacking else ():
        found.add(directory, "a page is stored and not indexed", url=url)
        foreign += 1
    found.index_lost |= foreign > 0


def _ahead(directory: Path) -> frozenset[str]:
    """Names of the pages that the index was given last; it may be ahead of the stores."""
    try:
        rows = msgpack.unpackb((directory / "ahead").read_bytes())
        return frozenset(name for _, name in rows)
    except (OSError, ValueError, TypeError):
        return frozenset()


def check_log_index(found: Findings, folder: Path, began: object) -> None:
    """Check the index of the logs. A deleted one is made again for the next viewer. ``began``: when
    the crawl began."""
    path = folder / LOG_INDEX / DATABASE
    if not path.exists():
        if (folder / LOG_INDEX / WRITER_LOCK).exists() and not found.log_index_lost:
            found.add(path, "is gone")
            found.log_index_lost = True
        return
    try:
        uri = f"{path.absolute().as_uri()}?mode=ro"
        with closing(sqlite3.connect(uri, uri=True, timeout=5.0)) as database:
            database.execute("PRAGMA cell_size_check = ON")
            rows = database.execute("PRAGMA integrity_check(1)").fetchall()
            if rows == [("ok",)] and read_state(database).get("began", began) != began:
                rows = [("is of another crawl",)]
        if not path.stat().st_size:  # to SQLite, that is a database without tables
            rows = [("is empty",)]
    except (sqlite3.Error, ValueError, OSError) as error:
        rows = [(str(error),)]
    if rows != [("ok",)]:
        found.add(path, str(rows[0][0]) if rows else "it cannot be read")
        found.log_index_lost = True
