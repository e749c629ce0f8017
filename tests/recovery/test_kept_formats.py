"""Crawls of each release since 1.0 are read and gone on with; others are refused in one line."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import lmdb
import pytest

from larmspider.cluster.keys import Keys
from tests.support.crawling import scrapy
from tests.support.recovery.kept_crawl import PAGES, START, crawl, unpack
from tests.support.servers.redis import RedisServer

RELEASES = sorted(Path(__file__).parent.glob("crawl-*.tar.xz"))
MOST_BYTES = 40_000


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    return unpack(RELEASES[-1], tmp_path)


def files_in(folder: Path) -> dict[Path, bytes]:
    """But for locks, which LMDB and a refused crawl make."""
    files = (path for path in folder.rglob("*") if path.is_file())
    return {path: path.read_bytes() for path in files if "lock" not in path.name}


@pytest.mark.parametrize("archive", RELEASES, ids=lambda path: path.name)
def test_a_crawl_of_a_release_is_read_and_visited_again(archive: Path, tmp_path: Path) -> None:
    """Nothing of it is damaged, nothing is stored twice, and a change is found."""
    assert archive.stat().st_size < MOST_BYTES
    path = unpack(archive, tmp_path)
    verified = scrapy("verify", cwd=tmp_path)
    assert verified.status == 0, verified.out + verified.err
    found = scrapy("search", "--json", "quagga", cwd=tmp_path).json
    assert found["hits"][0]["url"] == f"{START}b.html"
    assert "stored" in scrapy("explain", START, cwd=tmp_path).out
    before = (path / "store.log").read_text()
    ran, asked = crawl(tmp_path, "-a", "refresh=all")
    assert ran.status == 0, ran.err
    assert Counter(asked) >= Counter(START.rstrip("/") + page for page in PAGES)
    assert (path / "store.log").read_text() == before
    fetched = [line for line in (path / "fetch.log").read_text().splitlines() if "kept" in line]
    assert len(fetched) >= len(PAGES)
    assert scrapy("verify", cwd=tmp_path).status == 0


def of_the_manifest(path: Path) -> None:
    manifest = json.loads((path / "crawl.json").read_text())
    (path / "crawl.json").write_text(json.dumps(manifest | {"format": 1}))


def of_the_frontier(path: Path) -> None:
    with lmdb.open(str(path / "frontier"), max_dbs=9) as env, env.begin(write=True) as txn:
        meta = env.open_db(b"meta", txn, create=False)
        txn.put(b"format", b"larmspider frontier 2", db=meta)


def of_the_index(path: Path) -> None:
    (path / "index" / "larmspider-index.json").write_text('{"schema": 9, "stemmer": "english"}')


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (of_the_manifest, "crawl.json has format 1, this larmspider reads 2: use the version that"),
        (of_the_frontier, "has format 'larmspider frontier 2', this larmspider reads 'larmspider"),
        (of_the_index, "the search index has format 9, this larmspider reads 11: scrapy reindex"),
    ],
)
@pytest.mark.parametrize("options", [(), ("-a", "resume=anyway"), ("-a", "refresh=all")])
def test_another_format_is_refused_and_nothing_is_changed(
    kept: Path, change: Callable[[Path], None], said: str, options: tuple[str, ...]
) -> None:
    change(kept)
    before = files_in(kept)
    ran, asked = crawl(kept.parent, *options)
    assert ran.status == 2, ran.err
    assert sum(said in line for line in ran.err.splitlines()) == 1, ran.err
    assert asked == []
    assert files_in(kept) == before


@pytest.mark.parametrize("change", [of_the_manifest, of_the_frontier, of_the_index])
def test_a_crawl_starts_over_where_another_format_lies(
    kept: Path, change: Callable[[Path], None]
) -> None:
    change(kept)
    ran, _ = crawl(kept.parent, "-a", "fresh=force")
    assert ran.status == 0, ran.err
    assert scrapy("search", "--json", "quagga", cwd=kept.parent).json["total"] > 0


def test_reindex_makes_an_index_of_another_format_anew(kept: Path) -> None:
    """With the texts of links, by links.log."""
    of_the_index(kept)
    assert scrapy("search", "quagga", cwd=kept.parent).status == 2
    assert scrapy("reindex", cwd=kept.parent).status == 0
    for word in ("crossing", "about quagga"):
        assert scrapy("search", "--json", word, cwd=kept.parent).json["total"] > 0


def test_a_redis_of_another_format_is_refused(
    redis_server: Callable[[], RedisServer], tmp_path: Path
) -> None:
    """With ``fresh`` the crawl starts over."""
    server = redis_server()
    client = server.client()
    key = Keys("intranet", 8).crawl("format")
    client.set(key, b"larmspider frontier in Redis 2, 8 blocks")
    options = ("-s", f"REDIS_URL={server.url}", "-s", "LARM_WORKER=one")
    ran, asked = crawl(tmp_path, *options)
    assert ran.status == 2, ran.err
    assert "has format 'larmspider frontier in Redis 2, 8 blocks', this larmspider" in ran.err
    assert (asked, client.keys()) == ([], [key])
    assert not (tmp_path / "crawl").exists()
    ran, _ = crawl(tmp_path, *options, "-a", "fresh=force")
    assert ran.status == 0, ran.err
    assert client.get(key).startswith(b"larmspider frontier in Redis 3, ")
