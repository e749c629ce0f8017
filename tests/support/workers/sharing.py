"""Makes the directory of a crawl of many workers out of ordinary crawls, one a worker."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from larmspider.frontier.storage.lmdb_env import LmdbFiles
from larmspider.frontier.storage.records import pack_positions, unpack_positions, url_key
from tests.support.crawling import crawl, records


def shared_crawl(folder: Path, workers: Mapping[str, str], **settings: str) -> Path:
    """``folder``/crawl, with a directory for each worker: its name and what it starts from, in
    the order in which they crawl."""
    root = folder / "crawl"
    for name, start in workers.items():
        ran = crawl(start, folder, LARM_DIR=f"crawl/{name}", **settings)
        assert ran.status == 0, ran.err
    describe(root, list(workers))
    return root


def describe(root: Path, names: list[str]) -> None:
    """crawl.json of LARM_DIR, with the seeds of all."""
    own = [json.loads((root / name / "crawl.json").read_text()) for name in names]
    seeds = [seed for description in own for seed in description["seeds"]]
    shared = own[0] | {"seeds": seeds, "workers": {"redis": "unix:///nowhere"}}
    (root / "crawl.json").write_text(json.dumps(shared))


def take_back_pages(shard: Path, count: int) -> None:
    """As if the last ``count`` pages had been stored after the last checkpoint."""
    log = shard / "store.log"
    lines = log.read_bytes().splitlines(keepends=True)
    late = [line["url-normalized"] for line in records(log)[-count:]]
    files = LmdbFiles(shard / "frontier")
    try:
        with files.env.begin(write=True) as txn:
            positions = unpack_positions(txn.get(b"positions", db=files.meta))
            number, length, end = map(int, positions["PageFilesPipeline"].split())
            end -= sum(len(line) for line in lines[-count:])
            positions["PageFilesPipeline"] = b"%d %d %d" % (number, length, end)
            txn.put(b"positions", pack_positions(positions), db=files.meta)
            for normalized in late:
                assert txn.delete(url_key(normalized), db=files.urls)
    finally:
        files.close()
