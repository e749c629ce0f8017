"""Lines of the logs are found, with an index of all, of half or of none of them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from larmspider.crawl import logs as crawl_logs
from larmspider.crawl.log_index.update import Update
from larmspider.crawl.logs import CrawlLogs

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


@pytest.fixture(params=["no index", "of half", "of all", "of another crawl", "of other logs"])
def logs(tmp_path: Path, request: pytest.FixtureRequest) -> CrawlLogs:
    for name, lines in LOGS.items():
        (tmp_path / name).write_text("".join(lines))
    ends = {name: len("".join(lines)) for name, lines in LOGS.items()}
    match request.param:
        case "of half":
            halves = {name: len("".join(lines[: len(lines) // 2])) for name, lines in LOGS.items()}
            Update(tmp_path, halves, BEGAN).run()
        case "of all":
            Update(tmp_path, ends, BEGAN).run()
        case "of another crawl":
            Update(tmp_path, ends, "another").run()
        case "of other logs":
            for name, lines in LOGS.items():
                (tmp_path / name).write_text("".join(reversed(lines)))
            Update(tmp_path, ends, BEGAN).run()
            for name, lines in LOGS.items():
                (tmp_path / name).write_text("".join(lines))
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
    """So is one that is damaged."""
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
