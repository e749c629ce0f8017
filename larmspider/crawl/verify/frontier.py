"""Walks the frontier: each record is read as the crawl would read it, by the backend.

LMDB has no checksums, and a damaged page may lead it out of its map, which ends the process.
Another process therefore walks; it reports its findings, or ends.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import lmdb

from larmspider.checksums import crc_of, read_seal
from larmspider.errors import LarmspiderError, OtherFormatError
from larmspider.frontier.hosts import unpack_host
from larmspider.frontier.storage.backend import FormatError
from larmspider.frontier.storage.lmdb_backend import LmdbBackend
from larmspider.frontier.storage.lmdb_env import LmdbFiles
from larmspider.frontier.storage.lmdb_reader import FrontierReader
from larmspider.frontier.storage.overlay import WriteOverlay
from larmspider.frontier.storage.records import UrlState

_SLICE = 2_000
_CHILD = "import sys; sys.path[:] = {path!r}; from {module} import main; main()"
_NOTHING: dict[str, Any] = {}


def walked(kind: str, path: Path, seconds: float | None = None) -> str:
    """Why a frontier, or another environment of LMDB, is damaged; "" if it is whole. ``kind``:
    "frontier", or "table" for records of another shape, which are only read."""
    program = _CHILD.format(path=sys.path, module=__name__)
    try:
        done = subprocess.run(  # noqa: S603 - our own module, by this interpreter
            [sys.executable, "-c", program, kind, str(path)],
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return "it cannot be read to its end"
    if done.returncode < 0:
        return f"it cannot be read: that ends the process (signal {-done.returncode})"
    try:
        return str(json.loads(done.stdout.splitlines()[-1])["error"])
    except (ValueError, IndexError, KeyError):
        last = done.stderr.strip().splitlines()[-1:] or [f"status {done.returncode}"]
        return f"it cannot be read: {last[0]}"


def main() -> None:
    kind, path = sys.argv[1:]
    try:
        error = _walk(Path(path)) if kind == "frontier" else _read_all(Path(path))
    except Exception as failure:  # noqa: BLE001 - whatever a damaged record makes of a decoder
        said = str(failure) or type(failure).__name__
        error = said if isinstance(failure, LarmspiderError) else f"a record is damaged: {said}"
    sys.stdout.write(json.dumps({"error": error}) + "\n")


def _read_all(path: Path) -> str:
    with lmdb.open(str(path), readonly=True, lock=False, max_dbs=9) as env:
        return _read_environment(env)


def _read_environment(env: Any) -> str:
    with env.begin() as txn:
        names = [bytes(name) for name, _ in txn.cursor()]
    for name in names:
        db = env.open_db(name, create=False)
        with env.begin() as txn:
            entries = txn.stat(db)["entries"]
            last, number = b"", 0
            for number, (key, _) in enumerate(txn.cursor(db), 1):
                if number > 1 and key <= last:
                    return f"the keys of {name.decode()} are not in order"
                last = bytes(key)
            if number != entries:
                return f"{name.decode()} has {number:,} of {entries:,} records"
    return ""


def _walk(path: Path) -> str:
    files = LmdbFiles(path, readonly=True, as_it_is=True)
    if said := _read_environment(files.env):
        return said
    overlay = WriteOverlay(files)
    backend = LmdbBackend(path, overlay=overlay)
    is_copy = overlay.meta(b"redis") is not None  # a copy of Redis's data has partial counters
    if not is_copy:
        backend.recover()
    waiting = 0
    after, more = b"", True
    while more:
        rows = backend.visits(after, _SLICE)
        more = bool(rows)
        states = backend.check([key for key, _ in rows])
        for (key, visit), state in zip(rows, states, strict=True):
            after = key
            if visit is not None or state is UrlState.UNKNOWN:
                continue
            if state is UrlState.MERGED:
                merged = backend.merged(key)
                if merged is None or merged.entry.key != key:
                    return "the record of a merged URL is damaged"
            else:
                entry = backend.entry(key)
                if entry is None or entry.key != key:
                    return "a queued URL has no entry in its host's queue"
                waiting += 1
    if (queued := _in_queue(files)) != waiting and not is_copy:
        return f"{queued:,} entries in queues, {waiting:,} queued URLs"
    for packed in backend.hosts().values():
        unpack_host(packed)
    for due in backend.due_times():
        if not 0.0 < due < 1e12:
            return "the time of a visit is damaged"
    counts = _NOTHING if is_copy else backend.counts()
    if not is_copy and counts != (counted := backend.audit()):
        return f"the counters say {counts}, the records {counted}"
    return ""


def _in_queue(files: LmdbFiles) -> int:
    with files.read() as txn:
        return int(txn.stat(files.queue)["entries"])


def check_seal(path: Path) -> str:
    """The change in the file since the last writer; "" if there is none, or if it cannot be known.
    Raises ValueError if the seal itself is damaged."""
    sealed = read_seal(path)
    data = path / "data.mdb"
    if sealed is None or "data.mdb" not in sealed or not data.exists():
        return ""
    size, crc = sealed["data.mdb"]
    if data.stat().st_size != size:
        return f"it has {data.stat().st_size:,} bytes, the last run left {size:,}"
    return "" if crc_of(data, 0, size) == crc else "it does not match its checksum"


def open_reader(path: Path) -> FrontierReader | None:
    """A reader; None without a frontier."""
    try:
        return FrontierReader(path)
    except (FormatError, OtherFormatError, OSError):
        raise
    except LarmspiderError:
        return None
