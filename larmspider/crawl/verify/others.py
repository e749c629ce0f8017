"""Checks a crawl's other files: manifest, rules, small files, other logs and the outbox."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from math import inf
from pathlib import Path
from typing import Any

from larmspider.checksums import FOLDER as SUMS
from larmspider.checksums import SEAL, crc_of, lost_checksums, read_sums, sums_path
from larmspider.crawl.verify.findings import Findings, Say
from larmspider.crawl.verify.logs import check_log, form_of
from larmspider.errors import ConfigError, CrawlDirError
from larmspider.formatting import counted
from larmspider.frontier.storage.lmdb_reader import FrontierReader
from larmspider.pipelines.outbox.spool import (
    COMMITTED,
    FOLDER,
    Cursor,
    Position,
    cursors,
    read_committed,
    read_entries,
    segments,
)
from larmspider.workdir.frames import SUFFIX
from larmspider.workdir.left import LOG_INDEX, OPERATORS, crawl_of, read_left
from larmspider.workdir.manifest import (
    CHECKSUMS,
    CUT_BACK,
    MANIFEST,
    REJUDGE,
    RULES,
    RULES_DIR,
    WORKER_LOG,
)
from larmspider.workdir.manifest_copy import NOTE, is_as_written, read_or_copy, unpacked
from larmspider.workdir.removals import FILE as REMOVALS
from larmspider.workdir.removals import Removals

_CHANGES = frozenset({"ended", "end", CHECKSUMS, CUT_BACK, REJUDGE, "larmspider"})
"""Keys of crawl.json that may differ in its copy in the frontier."""
_REREAD = ("LARM_FIELDS", "LARM_FACETS", "LARM_LANGUAGES", "LARM_INDEX_LANGUAGES",
           "LARM_SECOND_READER", "LARM_OCR")  # fmt: skip
"""Settings that `scrapy reindex` writes into crawl.json."""
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
_JSON = ("totals.json", "web.json")
"""Files that the next run writes again."""


def check_manifest(found: Findings, frontier: FrontierReader | None) -> None:
    """crawl.json against its copy in the frontier, and the rules that it names."""
    path = found.path / MANIFEST
    try:
        read = read_or_copy(found.path)
    except CrawlDirError as error:
        found.add(path, str(error))
        return
    if read.manifest is None:
        why = read.trouble.removeprefix(f"{path} ") or "is gone"
        mend = "the next run with -a resume=anyway rebuilds it from its arguments"
        found.add(path, why, mend=mend)
        return
    if read.copied:
        found.add(path, read.trouble.removeprefix(f"{path} "))
        found.manifest = _mended(path, read.manifest)
    else:
        note = frontier.note(NOTE) if frontier is not None and not found.frontier_lost else None
        copy = (unpacked(note, path)[0] if note else None) or {}
        why = ""
        if part := _other_part(copy, read.manifest):
            why = f"has another {part!r} than its copy in the frontier"
        elif not is_as_written(path.read_bytes()):
            why = "does not fit its checksum"
        if why:
            found.add(path, why)
            found.manifest = {**read.manifest, **copy, **_ended(read.manifest)}
    _check_rules(found, found.manifest or read.manifest)


def _mended(path: Path, copy: dict[str, Any]) -> dict[str, Any]:
    """The copy, with the end of the crawl if that can still be read from the damaged file."""
    try:
        text = path.read_text("utf-8", "replace")
    except OSError:
        return copy
    ended, end = (re.search(rf'"{name}": "([\w:-]+)"', text) for name in ("ended", "end"))
    return copy | _ended({"ended": ended[1] if ended else "", "end": end[1] if end else ""})


def _ended(manifest: Mapping[str, Any]) -> dict[str, str]:
    ended, end = str(manifest.get("ended") or ""), str(manifest.get("end") or "")
    return {"ended": ended, "end": end} if _TIME.fullmatch(ended) and end.isidentifier() else {}


def _other_part(copy: Mapping[str, Any], manifest: Mapping[str, Any]) -> str | None:
    is_newer = manifest.get("end") in (None, "broken")  # that run may have committed nothing
    for name, value in copy.items():
        now = manifest.get(name)
        if is_newer and name not in ("began", "spider", "seeds"):
            continue
        if name == "settings" and isinstance(now, dict) and isinstance(value, dict):
            for setting, was in value.items():
                if setting not in now or (setting not in _REREAD and now[setting] != was):
                    return str(setting)
        elif name not in _CHANGES and now != value:
            return name
    ended = manifest.get("ended")
    return "ended" if ended and not _TIME.fullmatch(str(ended)) else None


def _check_rules(found: Findings, manifest: Mapping[str, Any]) -> None:
    for setting, name in RULES.items():
        digest = (manifest.get("identity") or {}).get(setting)
        path, source = found.path / RULES_DIR / name, manifest.get("settings", {}).get(setting)
        if not digest or digest == "unreadable" or not source or _digest(path) == digest:
            continue
        what = "are not the crawl's" if path.exists() else "are gone"
        if _digest(Path(source)) == digest:
            found.add(path, f"the rules {what}")
            found.restored[path] = Path(source)
        else:
            mend = f"put the file of {setting} back at {source}, and run the crawl"
            found.add(path, f"the rules {what}", mend=mend)


def _digest(path: Path) -> str:
    try:
        return hashlib.blake2b(path.read_bytes(), digest_size=8).hexdigest()
    except OSError:
        return ""


def check_left(found: Findings, manifest: Mapping[str, Any]) -> None:
    """Compare the small files with the files that the last run left."""
    path = found.path / SEAL
    try:
        left = read_left(found.path)
    except ValueError as error:
        found.add(path, f"is {error}")
        found.left_unsealed = True
        return
    if left is None:
        return  # check_checksums() says whether it was there
    if left.crawl != crawl_of(dict(manifest)):
        found.add(path, "is of another crawl")
        found.left_unsealed = True
        return
    for name, what, content in left.changed():
        file = found.path / name
        if name in OPERATORS:
            found.notes.append(f"{file}: {what}; operators may change it at any time")
        elif name == LOG_INDEX:
            found.add(file, what)
            found.log_index_lost = True
        elif name.endswith(".cdxj"):
            found.strange.add(file)  # its WARC file says what is wrong
        elif name.endswith(SUFFIX):
            found.add(file, what)
            if file.exists():
                found.foreign.add(file)
        elif content is not None:
            found.add(file, what)
            found.rewritten[file] = content
        elif file.parent.name == SUMS:
            found.add(file, what)
            found.unsummed.append(file.parent.parent / file.name)
        elif file.name == SEAL:
            found.add(file, what)
            found.frontier_unsealed |= file.parent.name == "frontier"
            found.index_unsealed |= file.parent.name == "index"
        else:
            found.add(file, what, mend="copy it back; otherwise the next run uses it as it is")


def check_checksums(found: Findings, manifest: Mapping[str, Any]) -> None:
    """The checksums that the last run has left."""
    names = manifest.get(CHECKSUMS)
    if not isinstance(names, list):
        return  # it was killed
    for path in lost_checksums(found.path, [name for name in names if isinstance(name, str)]):
        found.add(path, "is empty" if path.exists() else "is gone")
        if path.name != SEAL:
            found.unsummed.append(path.parent.parent / path.name)
        elif path.parent == found.path:
            found.left_unsealed = True
        elif path.parent.name == "frontier":
            found.frontier_unsealed = True
        else:
            found.index_unsealed = True


def check_small(found: Findings) -> None:
    """Files that are read whole."""
    for name in _JSON:
        path = found.path / name
        if path in found.rewritten:
            continue
        try:
            if path.exists() and not isinstance(json.loads(path.read_bytes()), dict):
                raise ValueError("no mapping")
        except (OSError, ValueError) as error:
            found.add(path, f"cannot be read: {error}")
            found.gone.append(path)
    if found.path / REMOVALS in found.rewritten:
        return
    try:
        Removals.read(found.path)
    except (ConfigError, CrawlDirError) as error:
        found.add(found.path / REMOVALS, str(error), mend="correct the line by hand")


def check_other_logs(found: Findings, known: Mapping[str, int], say: Say) -> None:
    """Check logs without a position: their checksums also tell their length."""
    summed = {path.name for path in (found.path / SUMS).glob("*.log")}
    there = {path.name for path in found.path.glob("*.log")}
    for name in sorted((summed | there) - known.keys() - {WORKER_LOG}):
        if form_of(name) is None:
            continue
        path = found.path / name
        stretches, _ = read_sums(path)
        end = stretches[-1].end if stretches else 0
        size = path.stat().st_size if path.exists() else 0
        check_log(found, path, max(end, _whole(path, size)), say)


def check_tails(found: Findings, known: Mapping[str, int]) -> None:
    """Find bytes behind the end of a log, if the last run has ended in order: a killed run leaves
    such bytes, and the next run drops them. ``known``: the committed length of each log."""
    if not (found.path / SEAL).exists():
        return
    for path in sorted(found.path.glob("*.log")):
        if form_of(path.name) is None:
            continue
        stretches, bad = read_sums(path)
        end = known.get(path.name, 0 if bad or not stretches else stretches[-1].end)
        size = path.stat().st_size
        if 0 < end < size:
            found.add(path, f"{counted(size - end, 'byte')} behind the end of the last run", end)
            found.tails[path] = end


def _whole(path: Path, size: int) -> int:
    """Where the last whole line ends: a killed run may have left a part of one."""
    if not size:
        return 0
    with path.open("rb") as file:
        file.seek(max(0, size - (1 << 16)))
        data = file.read()
    return size - len(data) + data.rfind(b"\n") + 1


def check_outbox(found: Findings, committed: Position | None, say: Say) -> None:
    """Check cursors, and entries that wait for receivers."""
    directory = found.path / FOLDER
    if not directory.exists():
        return
    for path in sorted(directory.glob("*.json")):
        is_cursor = path.name != COMMITTED
        if path in found.rewritten:
            continue
        if (is_cursor and Cursor.read(directory, path.stem) is None) or not _is_json(path):
            found.add(path, "cannot be read")
            found.gone.append(path)
    if committed is None:
        return
    if directory / COMMITTED in found.rewritten:
        pass
    elif committed.offset and not (directory / COMMITTED).exists():
        found.add(directory / COMMITTED, "is gone")
    elif read_committed(directory).offset > committed.offset:
        found.add(directory / COMMITTED, f"names more than {committed.offset:,} bytes")
        found.gone.append(directory / COMMITTED)
    known = _cursors(found, directory)
    for name, cursor in known.items():
        if not 0 <= cursor.offset <= committed.offset:
            at = f"{cursor.offset:,} of {committed.offset:,}"
            found.add(directory / f"{name}.json", f"names byte {at} of the outbox")
            found.gone.append(directory / f"{name}.json")
    there = segments(directory)
    start = max(min((one.offset for one in known.values()), default=0), min(there, default=0))
    if known and start >= committed.offset:
        found.outbox_since = inf  # all receivers have all
    if not there and committed.offset:
        found.add(directory, f"the segment with byte {committed.offset:,} is gone")
        found.outbox_lost = True
        return
    if there and (last := max(there)) + there[last].stat().st_size < committed.offset:
        found.add(there[last], f"ends before byte {committed.offset - last:,}, which was committed")
        found.outbox_lost = True
    try:
        for entry in read_entries(directory, start, committed.offset):
            say("outbox", entry.end - start, committed.offset - start)
            found.outbox_since = entry.stamp / 1e6
            if entry.page and not isinstance(entry.url, str):
                raise CrawlDirError(f"{directory}: an entry has no URL")
    except CrawlDirError as error:
        file, _, what = str(error).partition(": ")
        found.add(Path(file) if what else directory, what or file)
        found.outbox_lost = True
    for begin, path in there.items():
        stretches, bad = read_sums(path)
        size = path.stat().st_size
        for line in bad:
            found.add(sums_path(path), f"line {line} is damaged")
        for one in stretches:  # what every receiver has is not sent again
            if begin + one.end <= committed.offset and (
                one.end > size or crc_of(path, one.start, one.end) != one.crc
            ):
                found.add(path, "it does not match its checksum", one.start)
                found.outbox_lost |= begin + one.end > start
                bad.append(0)
        if bad:
            found.unsummed.append(path)


def _cursors(found: Findings, directory: Path) -> dict[str, Cursor]:
    """The cursors of the receivers: as the last run left them, if that is known."""
    known = cursors(directory)
    for path, content in found.rewritten.items():
        if path.parent == directory and path.suffix == ".json" and path.name != COMMITTED:
            known[path.stem] = Cursor(**json.loads(content))
    return known


def _is_json(path: Path) -> bool:
    try:
        json.loads(path.read_bytes())
    except (OSError, ValueError):
        return False
    return True
