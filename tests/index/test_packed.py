from __future__ import annotations

import gc
import random
import shutil
import tracemalloc
import weakref
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from msgpack import packb

from larmspider.errors import CrawlDirError
from larmspider.index import packed
from larmspider.index.packed import (
    _BEGINNING_BYTES,
    BEGINNING_CHARS,
    PackedPages,
    text_of,
)
from larmspider.index.writer import IndexWriter
from larmspider.search.request import SearchRequest
from larmspider.search.searcher import Searcher
from tests.index.conftest import MakePage

SENTENCES = [f"Procedure {n} of the handbook {n * n} is for office {3 * n + 7}." for n in range(60)]


def fields(number: int) -> dict[str, Any]:
    chance = random.Random(number)
    said = " ".join(chance.choices(SENTENCES, k=5))
    return {"key": f"http://wiki.example/{number}", "body": said, "size": number}


@pytest.fixture(autouse=True)
def early(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packed, "SAMPLES", 20)
    monkeypatch.setattr(packed, "MORE", 2)


def test_pages_come_back_as_they_were(tmp_path: Path) -> None:
    """With dictionaries that are trained on the way, and after the next start; by a reader that
    was there before them."""
    reader, writer = PackedPages(tmp_path), PackedPages(tmp_path)
    given = [fields(n) for n in range(200)]
    stored = [writer.pack(each) for each in given[:-1]]
    assert len(list(tmp_path.glob("*.zdict"))) == 2
    assert len(stored[-1]) < 0.75 * len(stored[0])
    stored.append(PackedPages(tmp_path).pack(given[-1]))
    assert [reader.unpack(each) for each in stored] == given
    date = datetime(2026, 1, 31, 12, 0, 0, 123456, UTC)
    said = {"fetched": date, "title": "\ud800é", "likeness": -(2**63)}
    assert reader.unpack(writer.pack(said)) == {**said, "title": "?é"}


def test_of_a_very_long_page_the_beginning_is_enough(tmp_path: Path) -> None:
    """Unless it has pages."""
    pages = PackedPages(tmp_path)
    page = fields(1) | {"body": "é" + "word " * 200_000, "mime": "text/html", "sections": []}

    def lengths(page: dict[str, Any]) -> int:
        stored = pages.pack(page)
        assert pages.unpack(stored) == page
        found = pages.unpack(stored, beginning=True)
        assert found.keys() - {"whole"} == page.keys()
        assert page["body"].startswith(found["body"])
        length = len(found["body"])
        assert text_of(found, length) is found["body"]
        assert len(found["body"]) == length
        assert text_of(found, length + 1) == page["body"]
        assert text_of(found, len(page["body"]) + 1) == page["body"]
        return length

    assert BEGINNING_CHARS < lengths(page) < BEGINNING_CHARS * 1.4
    assert BEGINNING_CHARS < lengths(page | {"body": "слово " * 200_000}) < BEGINNING_CHARS * 1.5
    assert lengths(page | {"body": "漢" * 300_000}) == 300_000
    assert lengths(page | {"body": "漢" * 90_000 + "word " * 40_000}) > BEGINNING_CHARS
    whole = len(page["body"])
    assert lengths(page | {"mime": "application/pdf"}) == whole
    sections = [[9, "a", "A"], [whole - 9, "b", "B"]]
    assert BEGINNING_CHARS < lengths(page | {"sections": sections}) < BEGINNING_CHARS * 1.4
    assert lengths(page | {"body": "short", "rest": "word " * 200_000}) == len("short")
    before = len(packb({name: value for name, value in page.items() if name != "body"}))
    padding = "x" * (_BEGINNING_BYTES - before - len(packb("body")) - len(packb("rest")) - 5)
    assert BEGINNING_CHARS < lengths(page | {"rest": padding}) < whole  # the text begins behind it


def test_a_page_that_a_search_looked_at_is_remembered(tmp_path: Path, monkeypatch) -> None:
    """Whatever the search makes of it; until others have taken its place."""
    unpacked = list[bytes]()
    decompressor = packed.ZstdDecompressor
    monkeypatch.setattr(
        packed, "ZstdDecompressor", lambda used: unpacked.append(b"") or decompressor(used)
    )
    monkeypatch.setattr(packed, "REMEMBERED_BYTES", 12_000)
    pages = PackedPages(tmp_path)
    stored = [pages.pack(fields(n)) for n in range(40)]
    pages.unpack(stored[0], beginning=True)["body"] = "changed"
    for one in stored[1:3]:
        pages.unpack(one, beginning=True)
    assert pages.unpack(stored[0], beginning=True) == fields(0)
    assert len(unpacked) == 3
    for one in stored:
        pages.unpack(one, beginning=True)
    assert pages.unpack(stored[0], beginning=True) == fields(0)
    assert len(unpacked) == 41


@pytest.mark.acceptance
@pytest.mark.parametrize("more", [
    {},
    {"own": {f"field{n}": [f"value {n}"] for n in range(20)}},
    {"body": "word " * 500 + "\N{GRINNING FACE}"},
    {"title": "word " * 1_000, "rest": "é " * 1_000},
    {"sections": [[n, f"anchor{n}", f"Heading {n}"] for n in range(100)]},
    {"sections": [[9_000, "", "漢字"]] * 100},
    {"breaks": [*range(1_000, 1_400)]},
])  # fmt: skip
def test_what_is_remembered_takes_no_more_memory_than_said(
    tmp_path: Path, monkeypatch, more: dict[str, Any]
) -> None:
    """Whatever the pages are made of."""
    bound = 500_000
    monkeypatch.setattr(packed, "REMEMBERED_BYTES", bound)
    pages = PackedPages(tmp_path)
    stored = [pages.pack(fields(n) | more) for n in range(1_000)]
    for one in stored:
        pages.unpack(one)
    most = 0
    tracemalloc.start()
    try:
        pages.unpack(bytes(bytearray(pages.pack(fields(0)))), beginning=True)
        for one in stored:
            pages.unpack(bytes(bytearray(one)), beginning=True)
            most = max(most, tracemalloc.get_traced_memory()[0])
    finally:
        tracemalloc.stop()
    assert bound < most <= 2 * bound


def test_a_page_that_takes_too_much_is_not_remembered(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(packed, "REMEMBERED_BYTES", 12_000)
    pages = PackedPages(tmp_path)
    small, large = pages.pack(fields(0)), pages.pack(fields(1) | {"body": "word " * 400})
    for one in (small, large, large, large):
        pages.unpack(one, beginning=True)
    monkeypatch.setattr(packed, "ZstdDecompressor", None)
    assert pages.unpack(small, beginning=True) == fields(0)
    with pytest.raises(TypeError):
        pages.unpack(large, beginning=True)


def test_what_is_remembered_goes_with_the_index(tmp_path: Path, monkeypatch) -> None:
    """At once, not with the next garbage: a page of which the beginning was unpacked, too."""
    pages = PackedPages(tmp_path)
    long = pages.pack(fields(1) | {"body": "word " * 200_000, "mime": "text/html", "sections": []})
    assert len(text_of(pages.unpack(long, beginning=True), 1_000_000)) == 1_000_000
    gone = weakref.ref(pages)
    monkeypatch.setattr(packed, "ZstdDecompressor", None)
    pages.unpack(long, beginning=True)  # remembered
    gc.disable()
    try:
        del pages
        assert gone() is None
    finally:
        gc.enable()


def test_a_dictionary_that_is_gone_is_named(tmp_path: Path, make_page: MakePage) -> None:
    directory = tmp_path / "index"
    with IndexWriter(directory) as writer:
        for n in range(50):
            writer.add(make_page(f"{n}", fields(n)["body"]))
    assert Searcher.open(directory).search(SearchRequest("handbook", limit=50)).hits
    kept = shutil.move(directory / "pages-1.zdict", tmp_path)
    with pytest.raises(CrawlDirError, match=r"cannot read the index: .*unpacked"):
        Searcher.open(directory).search(SearchRequest("handbook", limit=50))
    shutil.move(kept, directory)
    assert Searcher.open(directory).search(SearchRequest("handbook", limit=50)).hits
