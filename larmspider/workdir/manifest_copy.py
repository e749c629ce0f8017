"""The copy of crawl.json in the frontier, for a crawl.json that is empty, damaged or gone.

    found = read_or_copy(Path("crawl"))
    found.manifest, found.trouble           # {"seeds": ...}, "crawl/crawl.json is empty"

Each run puts its manifest into the frontier, in the transaction of its checkpoints: a crawl that
has stored anything has a copy. A worker keeps its own, and beside it the manifest of all workers.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from larmspider.errors import CrawlDirError, OtherFormatError
from larmspider.formatting import json_escaped
from larmspider.frontier.storage.lmdb_reader import FrontierReader
from larmspider.workdir.manifest import FORMAT, MANIFEST

NOTE = "manifest"
"""The note in the frontier that has the manifest of its directory."""
NOTE_OF_ALL = "manifest-of-all"
"""The note in a worker's frontier that has the manifest of the directory above. Names without a
space stay when a worker forgets what Redis knows better."""


SUM = "crc32"
"""The last key of a manifest: the CRC-32 of all others in hexadecimal. `scrapy verify` reads it."""


class Found(NamedTuple):
    """``manifest`` is None if neither crawl.json nor the frontier has one. ``trouble``: the defect
    of crawl.json; "" for none, or if there is no crawl. ``copied``: the manifest comes from the
    frontier. ``committed``: the frontier holds something."""

    manifest: dict[str, Any] | None
    trouble: str = ""
    copied: bool = False
    committed: bool = False


def packed(manifest: Mapping[str, Any]) -> bytes:
    """The manifest in the form of crawl.json and of the note."""
    kept = {key: value for key, value in manifest.items() if key != SUM}
    return _dumped({**kept, SUM: _sum(kept)})


def is_as_written(content: bytes) -> bool:
    """Whether the content of a crawl.json fits its checksum."""
    manifest = json.loads(content)
    return bool(manifest.pop(SUM, "") == _sum(manifest))


def _sum(manifest: Mapping[str, Any]) -> str:
    return f"{zlib.crc32(_dumped(manifest)):08x}"


def _dumped(manifest: Mapping[str, Any]) -> bytes:
    text = json.dumps(manifest, indent=1, ensure_ascii=False, default=str)
    return json_escaped(text).encode("utf-8", "replace")


def read_or_copy(path: Path) -> Found:
    """The manifest of a directory, or its copy if it cannot be read. Raises CrawlDirError for a
    manifest of another format."""
    manifest, trouble = _read(path / MANIFEST)
    if manifest is not None:
        return Found(manifest)
    copy, committed = _copy_in(path)
    if not trouble and copy is None:
        return Found(None, committed=committed)
    trouble = trouble or f"{path / MANIFEST} is gone"
    return Found(copy, trouble, copied=copy is not None, committed=committed)


def _read(file: Path) -> tuple[dict[str, Any] | None, str]:
    """The content of crawl.json, and its defect; empty without a file."""
    try:
        content = file.read_bytes()
    except FileNotFoundError:
        return None, ""
    except OSError as error:
        return None, f"{file} cannot be read: {error.strerror}"
    if not content.strip(b"\0 \n"):
        return None, f"{file} is empty"
    manifest, why = unpacked(content, file)
    return manifest, f"{file} {why}" if why else ""


def unpacked(content: bytes, file: Path) -> tuple[dict[str, Any] | None, str]:
    """A manifest, or why the ``content`` of ``file`` is not a manifest. Raises CrawlDirError for a
    manifest of another format."""
    try:
        manifest = json.loads(content.decode())
    except RecursionError:
        return None, "cannot be read: too many levels of JSON"
    except ValueError as error:
        return None, f"cannot be read: {error}"
    if not isinstance(manifest, dict) or "format" not in manifest:
        return None, "holds no manifest"
    if not isinstance(manifest.get("settings", {}), dict):
        return None, "cannot be read: settings: expected an object of JSON"
    version = manifest["format"]
    manifest.pop(SUM, None)
    if version == FORMAT:
        return manifest, ""
    if isinstance(version, int):
        raise OtherFormatError(str(file), version, FORMAT)
    return None, "has no format"


def _copy_in(path: Path) -> tuple[dict[str, Any] | None, bool]:
    """The copy in the frontier of a directory, or in the frontier of a worker below it; and whether
    one of these frontiers holds something."""
    committed = False
    own, below = path / "frontier", sorted(path.glob("*/frontier"))
    for frontier, name in ((own, NOTE), *((one, NOTE_OF_ALL) for one in below)):
        try:
            with FrontierReader(frontier) as reader:
                committed |= bool(reader.positions())
                note = reader.note(name)
        except (CrawlDirError, OSError):
            committed |= _is_used(frontier / "data.mdb")
            continue
        if note:
            manifest, _ = unpacked(note, frontier)
            if manifest is not None:
                return manifest, True
    return None, committed


def _is_used(data: Path) -> bool:
    try:
        return data.stat().st_size > 0
    except OSError:
        return False
