from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import lmdb
import pytest

from larmspider.errors import CrawlDirError
from larmspider.index.anchors import (
    CLEAN,
    DIRTY,
    DUE,
    MAX_COPIES,
    MAX_TEXT,
    MAX_TEXTS,
    MAX_TEXTS_BYTES,
    NOT_INDEXED,
    AnchorTable,
    AnchorTarget,
)

VPN = "http://wiki.example/vpn"


@pytest.fixture
def table(tmp_path: Path) -> Iterator[AnchorTable]:
    table = AnchorTable(tmp_path / "anchors")
    yield table
    table.close()


@pytest.mark.parametrize(
    "links, copies", [(1, 1), (2, 2), (3, 2), (4, 3), (7, 3), (8, 4), (9999, 4)]
)
def test_a_text_weighs_with_the_logarithm_of_its_links(links: int, copies: int) -> None:
    """A navigation bar on 99 pages weighs four times a single link."""
    target = AnchorTarget(VPN)
    target.merge({"Home": links})
    assert target.texts() == ["Home"] * copies
    assert target.copies() == copies <= MAX_COPIES


def test_a_record_survives_encoding() -> None:
    """What is written is what is read."""
    target = AnchorTarget(VPN, DUE, 3, {"remote access": 2, "zuhören ¶ 1": 1})
    assert AnchorTarget.decode(target.encode()) == target


def test_texts_of_a_target_are_bounded() -> None:
    """At most 64 texts and 2,048 bytes, whatever is found."""
    many, long = AnchorTarget(VPN), AnchorTarget(VPN)
    many.merge({f"text {n}": 1 for n in range(1000)})
    long.merge({f"{n:0100}": 1 for n in range(1000)})
    assert len(many.counts) == MAX_TEXTS
    assert sum(map(len, long.counts)) == 2000 <= MAX_TEXTS_BYTES


@pytest.mark.parametrize(
    "indexed, texts, state",
    [
        (NOT_INDEXED, 5, CLEAN),
        (0, 0, CLEAN),
        (0, 1, DUE),
        (4, 4, CLEAN),
        (4, 5, DIRTY),
        (4, 7, DIRTY),
        (4, 8, DUE),
    ],
)
def test_due_when_doubled(indexed: int, texts: int, state: int) -> None:
    """An indexed page is due when its texts have doubled, dirty when they have changed at all."""
    target = AnchorTarget(VPN, CLEAN, indexed, {f"text {n}": 1 for n in range(texts)})
    assert target.due_state() == state


@pytest.mark.parametrize("anchor", ["", " \n ", "¶", "»", "x" * (MAX_TEXT + 1)])
def test_texts_that_say_nothing_are_dropped(table: AnchorTable, anchor: str) -> None:
    """Empty ones, symbols, and paragraphs made links."""
    table.add([(VPN, anchor)])
    table.flush()
    assert table.texts(VPN) == []


def test_texts_are_merged_over_flushes(table: AnchorTable) -> None:
    """Counts add up, spaces and lone surrogates are made harmless."""
    table.add([(VPN, "remote  access"), (VPN, "VPN")])
    table.flush()
    table.add([(VPN, "remote\naccess"), (VPN, "\ud800x")])
    table.flush()
    assert table.texts(VPN) == ["remote access", "remote access", "VPN", "?x"]


def test_texts_wait_for_flush(table: AnchorTable) -> None:
    """Until then they count as waiting and are not seen."""
    table.add([(VPN, "VPN"), (VPN, "VPN")])
    assert (len(table), table.texts(VPN)) == (1, [])
    table.flush()
    assert (len(table), table.texts(VPN)) == (0, ["VPN", "VPN"])


def test_what_is_due_survives_a_restart(tmp_path: Path) -> None:
    """An interrupted crawl knows which pages to index again."""
    table = AnchorTable(tmp_path)
    table.flush({VPN: 0})
    table.add([(VPN, "VPN")])
    table.flush()
    table.close()
    again = AnchorTable(tmp_path)
    assert again.changed(10, due_only=True) == [(VPN, ["VPN"])]
    again.flush({VPN: 1})
    assert again.changed(10, due_only=False) == []
    again.close()


def test_a_full_map_grows_and_loses_nothing(tmp_path: Path) -> None:
    """20,000 targets fit a table that began with 64 KB."""
    table = AnchorTable(tmp_path, map_bytes=1 << 16)
    table.add((f"http://h/{n}", f"page {n}") for n in range(20_000))
    table.flush()
    assert all(table.texts(f"http://h/{n}") == [f"page {n}"] for n in range(20_000))
    table.close()


def test_a_failed_flush_loses_nothing(table: AnchorTable, monkeypatch: pytest.MonkeyPatch) -> None:
    """What waited waits on, next to what came meanwhile."""

    def fail(batch: object) -> None:
        table.add([(VPN, "new")])
        raise OSError("disk")

    table.add([(VPN, "old")])
    with monkeypatch.context() as patched:
        patched.setattr(table, "_write", fail)
        with pytest.raises(OSError, match="disk"):
            table.flush()
    table.flush()
    assert sorted(table.texts(VPN)) == ["new", "old"]


def test_what_lmdb_refuses_is_a_crawl_dir_error(
    table: AnchorTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full disk is reported in our words, and the texts wait on."""

    def fail(batch: object) -> None:
        raise lmdb.DiskError("no space left")

    monkeypatch.setattr(table, "_write", fail)
    table.add([(VPN, "VPN")])
    with pytest.raises(CrawlDirError, match="cannot write anchors: no space left"):
        table.flush()
    assert len(table) == 1
