"""Lines of the logs of several workers are found as one, with an index of all, half or none."""

from __future__ import annotations

from pathlib import Path

import pytest

from larmspider.crawl.log_index.index import FOLDER, LogIndex
from larmspider.crawl.log_index.update import Update
from larmspider.crawl.logs import CrawlLogs, WorkersLogs
from larmspider.frontier.storage.records import url_key
from tests.crawl.test_logs import link_line

BEGAN = "2026-01-31T12:00:00Z"


def fetch_line(minute: int, url: str, result: str) -> str:
    return f"2026-01-31T12:{minute:02}:00.000Z\t{url}\t{url}\t\t{result}\t100\t5\t\n"


def store_line(url: str, title: str) -> str:
    return f"\t{url}\t{url}\t0\t200\t\t1\t{title}\t0\t0\n"


LOGS = {
    "w1": {
        "fetch.log": [
            *(fetch_line(n, f"http://a/{n}", "200") for n in range(8)),
            fetch_line(9, "http://a/moved", "404"),
            fetch_line(30, "http://b/back", "200"),
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
            *(fetch_line(n, f"http://b/{n}", "200") for n in range(10, 16)),
            fetch_line(17, "http://b/gone", "404"),
            fetch_line(18, "http://a/moved", "200"),
            fetch_line(19, "http://b/back", "503"),
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
    for shard, logs in LOGS.items():
        (folder / shard).mkdir()
        for name, lines in logs.items():
            (folder / shard / name).write_text("".join(lines))
    return lengths(folder)


def lengths(folder: Path, part: float = 1.0) -> dict[str, int]:
    return {
        f"{shard}/{name}": len("".join(lines[: int(len(lines) * part)]))
        for shard, logs in LOGS.items()
        for name, lines in logs.items()
    }


def opened(folder: Path, *shards: str) -> WorkersLogs:
    parts = {name: CrawlLogs(folder / name, BEGAN) for name in shards or LOGS}
    return WorkersLogs(folder, BEGAN, parts, lambda *asked: TIMES.get(asked, 0.0))


@pytest.fixture(params=["no index", "of half", "of all", "in two goes", "the second came later"])
def logs(tmp_path: Path, request: pytest.FixtureRequest) -> WorkersLogs:
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
def test_the_last_fetch_is_the_latest_of_all(logs: WorkersLogs, url: str, result: str) -> None:
    """Whichever worker made it, and in whatever order their logs were read."""
    fields = logs.last("fetch.log", f"http://{url}")
    assert fields is not None
    assert fields[4] == result


@pytest.mark.parametrize(
    ("url", "title"), [("a/3", "late"), ("a/4", "one"), ("b/15", "two"), ("b/back", "newer")]
)
def test_the_last_page_is_of_who_was_done_last(logs: WorkersLogs, url: str, title: str) -> None:
    """Two lines of one worker, or one of each of two."""
    fields = logs.last("store.log", f"http://{url}")
    assert fields is not None
    assert fields[7] == title


def test_both_workers_lines_of_a_page_are_told_apart(logs: WorkersLogs) -> None:
    found = dict(logs.last_of_each("store.log", "http://b/back"))
    assert {shard: fields[7] for shard, fields in found.items()} == {"w1": "newer", "w2": "older"}


def test_links_come_from_pages_of_all_workers(logs: WorkersLogs) -> None:
    """To a page that either of them fetched."""
    expected = [*(f"http://a/{n}" for n in range(8)), *(f"http://b/{n}" for n in range(10, 13))]
    assert sorted(fields[0] for fields in logs.links_to("http://b/gone")) == expected
    assert sorted(fields[0] for fields in logs.links_to("http://a/1")) == [
        "http://b/13",
        "http://b/back",
    ]


def test_a_page_leads_where_its_last_fetch_says(logs: WorkersLogs) -> None:
    found = logs.links_from("http://b/13", 10)
    assert found is not None
    assert [fields[1] for fields in found] == [f"http://a/{n}" for n in range(3)]
    found = logs.links_from("http://b/back", 10)
    assert found is not None
    assert [fields[1] for fields in found] == ["http://a/1"]
    assert logs.links_from("http://nowhere/", 10) == []


def test_counts_are_those_of_all_logs_together(tmp_path: Path) -> None:
    """Pages that carry a link, broken targets, failures of a host: as in one log of all lines."""
    Update(tmp_path, write(tmp_path), BEGAN).run()
    logs = opened(tmp_path)
    with logs.index() as index:
        assert index is not None
        target = index.target("http://b/gone")
        assert target is not None
        assert (target.pages, len(target.offsets)) == (11, 11)
        [(pages, key, place)] = index.broken()
        assert (pages, key) == (11, url_key("http://b/gone"))
        [fields] = logs.records_at("fetch.log", [place])
        assert fields is not None
        assert fields[1] == "http://b/gone"
        failures = logs.records_at("fetch.log", index.failures("b:80", 5))
        assert {fields[1] for fields in failures if fields} == {"http://b/gone", "http://b/back"}
        results = {word: sums.times for word, sums in index.results("b:80").items()}
        assert results == {"200": 7, "404": 1, "503": 1}
        assert (index.state()["pages"], index.state()["links"]) == (17, 17)


def test_a_shard_that_went_back_makes_the_index_anew(tmp_path: Path) -> None:
    """Its log has other bytes before the place up to which it was read."""
    ends = write(tmp_path)
    Update(tmp_path, ends, BEGAN).run()
    log = tmp_path / "w2/links.log"
    shorter = "".join(LOGS["w2"]["links.log"][:2])
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
    logs = opened(tmp_path, "w1")
    with logs.index() as index:
        assert index is None
    assert len(list(logs.links_to("http://b/gone"))) == 8
