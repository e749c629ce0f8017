"""Completes a compaction: the files that `scrapy compact` wrote take the place of the others.

crawl/compact.py writes them into the folder compact.new. Once they are complete, it renames the
folder to compact.done. This module finishes the move, however often it is interrupted, also at the
start of a crawl; the stores' positions follow.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from larmspider.checksums import forget_sums, sum_anew
from larmspider.errors import CrawlDirError
from larmspider.fetch.blobs import FOLDER, blob_files
from larmspider.files import sync_folder
from larmspider.frontier.storage.lmdb_env import LmdbFiles, WriteBatch
from larmspider.frontier.storage.records import COMPACTED, pack_positions, unpack_positions
from larmspider.pipelines.page_files import page_file_name
from larmspider.workdir.directory import INDEX_DIR
from larmspider.workdir.frames import SUFFIX, forget, present

DRAFT, DONE, PLAN = "compact.new", "compact.done", "plan.json"


def finish(path: Path) -> None:
    """Complete a compaction that was interrupted, or forget one that was not complete; under the
    lock. Raises CrawlDirError."""
    try:
        shutil.rmtree(path / DRAFT, ignore_errors=True)
        done = path / DONE
        if not done.exists():
            return
        plan = json.loads((done / PLAN).read_text())
        names = sorted(file.name for file in done.iterdir() if file.name != PLAN)
        for name in names:  # store.log comes after the page files that it names
            forget_sums(path / name)
            _put(done / name, path / name)
            if not name.endswith(SUFFIX):
                sum_anew(path / name)
        sync_folder(path)
        if plan["positions"]:
            moved = {name: at.encode() for name, at in plan["positions"].items()}
            files = LmdbFiles(path / "frontier")
            try:
                known = files.get(b"positions", files.meta) or b""
                meta = {b"positions": pack_positions(unpack_positions(known) | moved)}
                if (commit := files.get(b"redis", files.meta)) is not None:
                    meta[COMPACTED] = commit + b"\n" + pack_positions(moved)
                files.write(WriteBatch(meta=meta))
            finally:
                files.close()
        for number in plan["dropped"]:
            there = present(path / page_file_name(number))
            there.unlink(missing_ok=True)
            forget(there)
            forget_sums(there)
        blobs = blob_files(path / FOLDER)
        for number in plan.get("blobs", ()):
            if number in blobs:
                blobs[number].unlink()
        shutil.rmtree(path / INDEX_DIR, ignore_errors=True)
        shutil.rmtree(done)
    except (OSError, ValueError, KeyError) as error:
        raise CrawlDirError(f"{path}: a compaction cannot be completed: {error}") from error


def _put(draft: Path, path: Path) -> None:
    draft.replace(path)
    forget(path)
