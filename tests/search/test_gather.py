"""larmspider/search/gather.py: shards that are searched at the same time, and shards that fail."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from larmspider.errors import CrawlDirError, QueryError
from larmspider.index.access import Access
from larmspider.index.writer import IndexWriter
from larmspider.items import Page
from larmspider.search import gather as gathering
from larmspider.search import searcher as searching
from larmspider.search.labels import Label
from larmspider.search.query import Filters
from larmspider.search.reading import ShardQuery
from larmspider.search.request import SearchRequest
from larmspider.search.results import Results, results_json
from larmspider.search.searcher import Searcher

WORDS = [
    *("server", "license", "siren", "rotor", "manual"),
    *("certificate", "gateway", "backup", "printer", "network"),
]
PAGES = 120
QUERIES = (
    *("siren rotor", "serevr mannual", '"license siren"', "rotor -manual", "title:server"),
    *("backup~ network", "how to find the printer", "nowhere"),
)


@pytest.fixture(autouse=True)
def cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gathering, "CORES", 2)


def page(number: int) -> Page:
    host = f"h{number % 7}.example"
    text = " ".join(WORDS[number * step % 10] for step in (1, 3, 7, number % 11)) + f" n{number}"
    return Page(
        f"http://{host}/{number}",
        title=f"The {WORDS[number % 10]} {number}",
        text=text,
        body=f"{number}".encode(),
        mime="application/pdf" if number % 3 else "text/html",
        language="de" if number % 2 else "en",
        fetched=1_700_000_000.0 + number,
    )


def shards(folder: Path, count: int) -> list[Path]:
    """The last one has twice the pages."""
    parts = [list[Page]() for _ in range(count)]
    for number in range(PAGES):
        parts[min(number % (count + 1), count - 1)].append(page(number))
    for number, part in enumerate(parts):
        with IndexWriter(folder / str(number)) as writer:
            for one in part:
                writer.add(one)
    return [folder / str(number) for number in range(count)]


def opened(directories: list[Path]) -> Searcher:
    return Searcher.of_workers(map(Searcher.open, directories))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Callable[[int], list[Path]]:
    """Gives a number of shards; they are made once."""
    folder = tmp_path_factory.mktemp("shards")
    return cache(lambda count: shards(folder / f"of{count}", count))


@pytest.fixture
def three(made: Callable[[int], list[Path]], tmp_path: Path) -> list[Path]:
    """Three shards that a test may damage."""
    for directory in made(3):
        shutil.copytree(directory, tmp_path / directory.name)
    return [tmp_path / directory.name for directory in made(3)]


def without_time(found: Results) -> Results:
    return replace(found, seconds=0.0)


@pytest.mark.parametrize(
    ("count", "limited"),
    [(2, False), (3, True), pytest.param(5, False, marks=pytest.mark.acceptance)],
)
def test_answers_are_those_of_one_shard_after_the_other(
    made: Callable[[int], list[Path]], count: int, limited: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bit for bit: hits, scores, totals, facets, suggestions, the order by date, and the pages that
    a reader with rights sees."""
    searcher = opened(made(count))
    if limited:
        searcher = searcher.seen_by(Access(("h3.example",)))
    narrow = Filters.of(hosts=["h1.example", "h2.example"], kinds=["pdf"])
    labels = (Label("first", pages=("http://h1.example/1",)),)
    asked = SearchRequest("", facets=True, suggest=True, labels=labels)
    requests = [
        replace(asked, query=query, **changed)
        for query in QUERIES
        for changed in ({"filters": narrow}, {"offset": 5}, {"newest": True})
    ]
    at_once = [without_time(searcher.search(one)) for one in requests]
    monkeypatch.setattr(gathering, "CORES", 1)
    assert [without_time(searcher.search(one)) for one in requests] == at_once
    assert sum(len(found.hits) for found in at_once) > 50
    assert any(found.instead for found in at_once)


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Path], list[float]]]:
    """Makes a shard hang until the end of the test. Gives the times at which it is asked."""
    over, asked, part = threading.Event(), list[float](), searching._part
    names = list[Path]()

    def hanging(one: ShardQuery, *args: Any, **named: Any) -> Any:
        if one.reading.shard.directory in names:
            asked.append(time.monotonic())
            over.wait(20)
        return part(one, *args, **named)

    def hang(directory: Path) -> list[float]:
        names.append(directory)
        return asked

    monkeypatch.setattr(searching, "_part", hanging)
    monkeypatch.setattr(gathering, "SHARD_SECS", 0.3)
    monkeypatch.setattr(gathering, "AGAIN_SECS", 0.0)
    hang.over = over  # type: ignore[attr-defined]
    yield hang
    over.set()


def test_a_slow_shard_is_named_and_the_others_answer(
    three: list[Path], slow: Callable[[Path], list[float]]
) -> None:
    """It is not asked again until its search has ended; then it is."""
    searcher, expected = (
        opened(three),
        opened(three[1:]).search(SearchRequest("siren", facets=True)),
    )
    asked = slow(three[0])
    begun = time.monotonic()
    found = searcher.search(SearchRequest("siren", facets=True))
    assert time.monotonic() - begun < 3
    (error,) = found.left_out
    assert str(error) == f"{three[0]}: the index has not answered in 0.3 seconds"
    assert (found.hits, found.total) == (expected.hits, expected.total)
    assert found.facets == expected.facets
    assert results_json(found)["left_out"] == [str(error)]
    again = searcher.search("siren")
    assert len(again.left_out) == len(asked) == 1
    slow.over.set()  # type: ignore[attr-defined]
    until = time.monotonic() + 5
    while searcher.search("siren").left_out and time.monotonic() < until:
        time.sleep(0.02)
    assert searcher.search("siren").left_out == ()


def test_two_slow_shards_take_the_time_of_one(
    three: list[Path], slow: Callable[[Path], list[float]]
) -> None:
    searcher = opened(three)
    for directory in three[1:]:
        asked = slow(directory)
    assert len(searcher.search("siren").left_out) == len(asked) == 2


def spoilt(directory: Path) -> None:
    (directory / "meta.json").write_text('{"segments": [')


def emptied(directory: Path) -> None:
    """A later commit has lost its files."""
    with IndexWriter(directory) as writer:
        writer.add(page(1_000))
    for path in directory.glob("*.idx"):
        path.unlink()


@pytest.mark.parametrize("cores", [1, 2])
@pytest.mark.parametrize("damage", [spoilt, emptied, shutil.rmtree])
def test_a_damaged_shard_is_named_and_the_others_answer(
    three: list[Path],
    damage: Callable[[Path], None],
    cores: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """In each question about pages."""
    monkeypatch.setattr(gathering, "CORES", cores)
    searcher, bad = opened(three), three[0]
    rest = opened([directory for directory in three if directory != bad])
    key = rest.search("siren").hits[0].normalized
    shutil.copytree(bad, bad.with_name("kept"))
    damage(bad)
    found = searcher.search(SearchRequest("siren", facets=True))
    assert [str(error).startswith(f"{bad}: ") for error in found.left_out] == [True]
    expected = rest.search(SearchRequest("siren", facets=True))
    assert (found.hits, found.facets) == (expected.hits, expected.facets)
    assert searcher.totals("siren") == rest.totals("siren")
    assert searcher.suggestion("sirne") == rest.suggestion("sirne")
    assert searcher.completions("the") == rest.completions("the")
    assert searcher.count() == rest.count()
    document = searcher.get(key)
    assert document is not None
    assert searcher.similar(document).hits == rest.similar(document).hits
    assert len(searcher.similar(document).left_out) == 1
    with pytest.raises(QueryError):
        searcher.search(SearchRequest("siren", 0))
    shutil.rmtree(bad, ignore_errors=True)
    shutil.copytree(bad.with_name("kept"), bad)
    monkeypatch.setattr(gathering, "AGAIN_SECS", 0.0)
    searcher.shards[0].outage.begin(found.left_out[0])  # type: ignore[arg-type]
    assert searcher.search("siren").left_out == ()


def test_a_page_that_cannot_be_read_is_of_the_shard_that_is_named(
    three: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the second look, too."""
    searcher, broken = opened(three), three[0]
    stored_of = searching.Shard.stored_of

    def fails(shard: Any, *args: Any, **named: Any) -> Any:
        if shard.directory == broken:
            raise OSError("Input/output error")
        return stored_of(shard, *args, **named)

    monkeypatch.setattr(searching.Shard, "stored_of", fails)
    found = searcher.search("siren")
    assert [str(error) for error in found.left_out] == [
        f"{broken}: cannot read the index: Input/output error"
    ]
    assert found.hits == opened(three[1:]).search("siren").hits


def test_without_any_shard_there_is_no_answer(three: list[Path]) -> None:
    searcher = opened(three)
    for directory in three:
        spoilt(directory)
    for _ in range(2):
        with pytest.raises(CrawlDirError, match="cannot read the index"):
            searcher.search("siren")


def test_an_error_keeps_no_commit_open(three: list[Path]) -> None:
    """Its traceback would hold the readers of the query."""
    searcher = opened(three)
    spoilt(three[1])
    (error,) = searcher.search("siren").left_out
    (again,) = searcher.search("siren").left_out
    assert str(error) == str(again)
    assert error.__traceback__ is again.__traceback__ is error.__cause__ is None


def test_commits_are_seen_and_nothing_is_left_open(three: list[Path]) -> None:
    """The numbers of threads and descriptors stay the same."""
    searcher, counts = opened(three), list[tuple[int, int]]()
    for number in range(6):
        with IndexWriter(three[number % 3]) as writer:
            writer.add(replace(page(2_000 + number), text="onagain rotor"))
        assert searcher.search("onagain").total == number + 1
        counts.append((len([*Path("/proc/self/fd").iterdir()]), threading.active_count()))
    assert counts[-1][0] <= counts[2][0] + 1
    assert counts[-1][1] <= counts[2][1]
