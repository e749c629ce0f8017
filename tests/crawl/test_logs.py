"""Lines of the logs are found, with an index of all, of half or of none of them."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

import pytest

from larmspider.crawl import logs as crawl_logs
from larmspider.crawl.log_index.index import FOLDER, LogIndex
from larmspider.crawl.log_index.update import Update
from larmspider.crawl.logs import CrawlLogs, WorkersLogs
from larmspider.frontier.storage.records import url_key
from larmspider.pipelines.records import open_appending
from larmspider.workdir.frames import compressed_name

BEGAN = "2026-01-31T12:00:00Z"


def fetch_line(url: str, result: str) -> str:
    return f"2026-01-31T12:00:00.000Z\t{url}\t{url}\t\t{result}\t100\t5\t\n"


def link_line(page: str, target: str) -> str:
    return f"{page}\t{target}\t{target}\t0\ttext\n"


LOGS = {
    "fetch.log": [
        *(fetch_line(f"http://h/{n}", "200") for n in range(40)),
        fetch_line("http://h/7", "404"),
        fetch_line("http://h/39", "dns"),
    ],
    "store.log": [f"\thttp://h/{n}\thttp://h/{n}\t0\t200\t\t1\t\t0\t{n}\n" for n in range(40)],
    "links.log": [
        *(link_line(f"http://h/{n}", f"http://t/{n % 3}") for n in range(40)),
        link_line("http://h/last", "http://t/0"),
        link_line("http://h/last", "http://t/1"),
    ],
}


def write_log(path: Path, lines: Iterable[str], *, compressed: bool) -> None:
    """Write a new log; compressed in frames of a line or two."""
    path.unlink(missing_ok=True)
    compressed_name(path).unlink(missing_ok=True)
    file = open_appending(path, compressed=compressed)
    for number, line in enumerate(lines):
        file.write(line.encode())
        if number % 3:
            file.flush()
    file.close()


@pytest.fixture(
    params=[
        *("no index", "of half", "of all", "of another crawl", "of other logs"),
        *("compressed, no index", "compressed, of half", "compressed, of other logs"),
    ]
)
def logs(tmp_path: Path, request: pytest.FixtureRequest) -> CrawlLogs:
    compressed, _, index = request.param.rpartition(", ")
    for name, lines in LOGS.items():
        write_log(tmp_path / name, lines, compressed=bool(compressed))
    ends = {name: len("".join(lines)) for name, lines in LOGS.items()}
    match index:
        case "of half":
            halves = {name: len("".join(lines[: len(lines) // 2])) for name, lines in LOGS.items()}
            Update(tmp_path, halves, BEGAN).run()
        case "of all":
            Update(tmp_path, ends, BEGAN).run()
        case "of another crawl":
            Update(tmp_path, ends, "another").run()
        case "of other logs":
            for name, lines in LOGS.items():
                write_log(tmp_path / name, reversed(lines), compressed=bool(compressed))
            Update(tmp_path, ends, BEGAN).run()
            for name, lines in LOGS.items():
                write_log(tmp_path / name, lines, compressed=bool(compressed))
    return CrawlLogs(tmp_path, BEGAN)


def test_the_last_record_of_a_url(logs: CrawlLogs) -> None:
    """Whichever part of the log it is in."""
    found = {n: (logs.last("fetch.log", f"http://h/{n}") or [""] * 5)[4] for n in (3, 7, 39)}
    assert found == {3: "200", 7: "404", 39: "dns"}
    for n in range(40):
        assert (logs.last("store.log", f"http://h/{n}") or [])[-1:] == [str(n)]
    assert logs.last("store.log", "http://h/40") is None


def test_links_out_of_a_page(logs: CrawlLogs) -> None:
    """The first page of the log, one in between, the last; of a page without links none."""
    for page, targets in (("0", ["0"]), ("20", ["2"]), ("21", ["0"]), ("last", ["0", "1"])):
        links = logs.links_from(f"http://h/{page}", 10) or []
        assert [link[1] for link in links] == [f"http://t/{target}" for target in targets]
    assert len(logs.links_from("http://h/last", 1) or []) == 1
    assert logs.links_from("http://h/none", 10) == []


def test_links_to_a_page(logs: CrawlLogs) -> None:
    """Each page that carries one, once, in the order of the log."""
    pages = [fields[0] for fields in logs.links_to("http://t/1")]
    assert pages == [*(f"http://h/{n}" for n in range(1, 40, 3)), "http://h/last"]


def test_a_search_ends_when_its_time_is_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And says so; all searches of one object together."""
    monkeypatch.setattr(crawl_logs, "_WINDOW", 100)
    (tmp_path / "links.log").write_text("".join(LOGS["links.log"]))
    logs = CrawlLogs(tmp_path, BEGAN, seconds=0.0)
    assert list(logs.links_to("http://t/1")) == []
    assert logs.cut_short
    assert logs.links_from("http://h/last", 3) is None
    generous = CrawlLogs(tmp_path, BEGAN, seconds=60.0)
    assert len(list(generous.links_to("http://t/1"))) == 14
    assert not generous.cut_short


def test_a_line_still_being_written_is_left_out(tmp_path: Path) -> None:
    """A damaged line is left out, too."""
    (tmp_path / "links.log").write_text(link_line("http://h/a", "http://h/b")[:-1])
    logs = CrawlLogs(tmp_path, BEGAN)
    assert list(logs.links_to("http://h/b")) == []
    assert logs.links_from("http://h/a", 5) == []
    (tmp_path / "links.log").write_text("http://h/a\t\n" + link_line("http://h/a", "http://h/b"))
    assert len(list(logs.links_to("http://h/b"))) == 1


def test_a_log_may_be_cut_while_it_is_searched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As by a crawl that goes on from its last checkpoint; what is gone is not found."""
    monkeypatch.setattr(crawl_logs, "_WINDOW", 10_000)
    lines = [link_line("http://h/a", f"http://t/{n % 3}") for n in range(9_000)]
    (tmp_path / "links.log").write_text("".join(lines))
    found = CrawlLogs(tmp_path, BEGAN).search("links.log", "http://t/1", 2)
    places = [next(found)[0]]
    os.truncate(tmp_path / "links.log", len("".join(lines[:3_000])) + 5)
    places += [place for place, _ in found]
    assert places == [len("".join(lines[:n])) for n in range(1, 3_000, 3)]


@pytest.mark.parametrize("window", [1, 7, 50, 1_000])
def test_a_search_finds_the_same_in_windows_of_any_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, window: int
) -> None:
    """Lines longer than one, too; neighbours, the first line and the last one."""
    monkeypatch.setattr(crawl_logs, "_WINDOW", window)
    pages = ["a", "a", "b", "ab" * 40, "a", "b", "b", "c", "a"]
    lines = [link_line(f"http://h/{page}", f"http://t/{page}") for page in pages]
    (tmp_path / "links.log").write_text("".join(lines))
    begins = [len("".join(lines[:n])) for n in range(len(lines))]
    logs = CrawlLogs(tmp_path, BEGAN)
    for field, host in ((0, "h"), (2, "t")):
        for page in set(pages):
            wanted = [at for at, one in zip(begins, pages, strict=True) if one == page]
            found = logs.search("links.log", f"http://{host}/{page}", field)
            assert [place for place, _ in found] == wanted
    assert [place for place, _ in logs.search("links.log", None, 0, begins[2])] == begins[2:]


# Lines of the logs of several workers are found as one, with an index of all, half or none.


def shard_fetch_line(minute: int, url: str, result: str) -> str:
    return f"2026-01-31T12:{minute:02}:00.000Z\t{url}\t{url}\t\t{result}\t100\t5\t\n"


def store_line(url: str, title: str) -> str:
    return f"\t{url}\t{url}\t0\t200\t\t1\t{title}\t0\t0\n"


SHARD_LOGS = {
    "w1": {
        "fetch.log": [
            *(shard_fetch_line(n, f"http://a/{n}", "200") for n in range(8)),
            shard_fetch_line(9, "http://a/moved", "404"),
            shard_fetch_line(30, "http://b/back", "200"),
        ],
        "store.log": [
            *(store_line(f"http://a/{n}", "one") for n in range(8)),
            store_line("http://a/3", "late"),
            store_line("http://b/back", "newer"),
        ],
        "links.log": [
            *(link_line(f"http://a/{n}", "http://b/gone") for n in range(8)),
            link_line("http://a/0", "http://a/moved"),
            link_line("http://b/back", "http://a/1"),
        ],
    },
    "w2": {
        "fetch.log": [
            *(shard_fetch_line(n, f"http://b/{n}", "200") for n in range(10, 16)),
            shard_fetch_line(17, "http://b/gone", "404"),
            shard_fetch_line(18, "http://a/moved", "200"),
            shard_fetch_line(19, "http://b/back", "503"),
        ],
        "store.log": [
            *(store_line(f"http://b/{n}", "two") for n in range(10, 16)),
            store_line("http://b/back", "older"),
        ],
        "links.log": [
            *(link_line(f"http://b/{n}", "http://b/gone") for n in range(10, 13)),
            *(link_line("http://b/13", f"http://a/{n}") for n in range(3)),
            link_line("http://b/back", "http://a/2"),
        ],
    },
}
TIMES = {("w1", "http://b/back"): 30.0, ("w2", "http://b/back"): 19.0}


def write(folder: Path) -> dict[str, int]:
    """The logs and their lengths."""
    for shard, shard_logs in SHARD_LOGS.items():
        (folder / shard).mkdir()
        for name, lines in shard_logs.items():
            (folder / shard / name).write_text("".join(lines))
    return lengths(folder)


def lengths(folder: Path, part: float = 1.0) -> dict[str, int]:
    return {
        f"{shard}/{name}": len("".join(lines[: int(len(lines) * part)]))
        for shard, shard_logs in SHARD_LOGS.items()
        for name, lines in shard_logs.items()
    }


def opened(folder: Path, *shards: str) -> WorkersLogs:
    parts = {name: CrawlLogs(folder / name, BEGAN) for name in shards or SHARD_LOGS}
    return WorkersLogs(folder, BEGAN, parts, lambda *asked: TIMES.get(asked, 0.0))


@pytest.fixture(params=["no index", "of half", "of all", "in two goes", "the second came later"])
def shard_logs(tmp_path: Path, request: pytest.FixtureRequest) -> WorkersLogs:
    ends = write(tmp_path)
    match request.param:
        case "of half":
            Update(tmp_path, lengths(tmp_path, 0.5), BEGAN).run()
        case "of all":
            Update(tmp_path, ends, BEGAN).run()
        case "in two goes":
            Update(tmp_path, lengths(tmp_path, 0.5), BEGAN).run()
            Update(tmp_path, ends, BEGAN).run()
        case "the second came later":  # then w2 is the first shard in the index
            Update(tmp_path, {n: e for n, e in ends.items() if n.startswith("w2")}, BEGAN).run()
            Update(tmp_path, ends, BEGAN).run()
    found = opened(tmp_path)
    with found.index() as index:
        assert (index is None) == (request.param == "no index")
    return found


@pytest.mark.parametrize(
    ("url", "result"),
    [("a/1", "200"), ("b/12", "200"), ("b/gone", "404"), ("a/moved", "200"), ("b/back", "200")],
)
def test_the_last_fetch_is_the_latest_of_all(
    shard_logs: WorkersLogs, url: str, result: str
) -> None:
    """Whichever worker made it, and in whatever order their logs were read."""
    fields = shard_logs.last("fetch.log", f"http://{url}")
    assert fields is not None
    assert fields[4] == result


@pytest.mark.parametrize(
    ("url", "title"), [("a/3", "late"), ("a/4", "one"), ("b/15", "two"), ("b/back", "newer")]
)
def test_the_last_page_is_of_who_was_done_last(
    shard_logs: WorkersLogs, url: str, title: str
) -> None:
    """Two lines of one worker, or one of each of two."""
    fields = shard_logs.last("store.log", f"http://{url}")
    assert fields is not None
    assert fields[7] == title


def test_both_workers_lines_of_a_page_are_told_apart(shard_logs: WorkersLogs) -> None:
    found = dict(shard_logs.last_of_each("store.log", "http://b/back"))
    assert {shard: fields[7] for shard, fields in found.items()} == {"w1": "newer", "w2": "older"}


def test_links_come_from_pages_of_all_workers(shard_logs: WorkersLogs) -> None:
    """To a page that either of them fetched."""
    expected = [*(f"http://a/{n}" for n in range(8)), *(f"http://b/{n}" for n in range(10, 13))]
    assert sorted(fields[0] for fields in shard_logs.links_to("http://b/gone")) == expected
    assert sorted(fields[0] for fields in shard_logs.links_to("http://a/1")) == [
        "http://b/13",
        "http://b/back",
    ]


def test_a_page_leads_where_its_last_fetch_says(shard_logs: WorkersLogs) -> None:
    found = shard_logs.links_from("http://b/13", 10)
    assert found is not None
    assert [fields[1] for fields in found] == [f"http://a/{n}" for n in range(3)]
    found = shard_logs.links_from("http://b/back", 10)
    assert found is not None
    assert [fields[1] for fields in found] == ["http://a/1"]
    assert shard_logs.links_from("http://nowhere/", 10) == []


def test_counts_are_those_of_all_logs_together(tmp_path: Path) -> None:
    """Pages that carry a link, broken targets, failures of a host: as in one log of all lines."""
    Update(tmp_path, write(tmp_path), BEGAN).run()
    shard_logs = opened(tmp_path)
    with shard_logs.index() as index:
        assert index is not None
        target = index.target("http://b/gone")
        assert target is not None
        assert (target.pages, len(target.offsets)) == (11, 11)
        [(pages, key, place)] = index.broken()
        assert (pages, key) == (11, url_key("http://b/gone"))
        [fields] = shard_logs.records_at("fetch.log", [place])
        assert fields is not None
        assert fields[1] == "http://b/gone"
        failures = shard_logs.records_at("fetch.log", index.failures("b:80", 5))
        assert {fields[1] for fields in failures if fields} == {"http://b/gone", "http://b/back"}
        results = {word: sums.times for word, sums in index.results("b:80").items()}
        assert results == {"200": 7, "404": 1, "503": 1}
        assert (index.state()["pages"], index.state()["links"]) == (17, 17)


def test_a_shard_that_went_back_makes_the_index_anew(tmp_path: Path) -> None:
    """Its log has other bytes before the place up to which it was read."""
    ends = write(tmp_path)
    Update(tmp_path, ends, BEGAN).run()
    log = tmp_path / "w2/links.log"
    shorter = "".join(SHARD_LOGS["w2"]["links.log"][:2])
    log.write_text(shorter)
    with opened(tmp_path).index() as index:
        assert index is None
    assert len(list(opened(tmp_path).links_to("http://b/gone"))) == 10
    log.write_text(shorter + link_line("http://b/12", "http://a/7") * 9)
    ends["w2/links.log"] = log.stat().st_size
    Update(tmp_path, ends, BEGAN).run()
    index = LogIndex(tmp_path / FOLDER)
    target = index.target("http://b/gone")
    assert target is not None
    assert target.pages == 10
    index.close()


def test_an_index_of_more_shards_is_another_one(tmp_path: Path) -> None:
    """Lines of a worker that is not read do not count."""
    Update(tmp_path, write(tmp_path), BEGAN).run()
    shard_logs = opened(tmp_path, "w1")
    with shard_logs.index() as index:
        assert index is None
    assert len(list(shard_logs.links_to("http://b/gone"))) == 8
