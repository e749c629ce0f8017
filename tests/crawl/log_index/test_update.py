"""The index of the logs says what the logs say, read in one go or in many."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import pytest

from larmspider.crawl.log_index import index as index_module
from larmspider.crawl.log_index import update
from larmspider.crawl.log_index.index import (
    DATABASE,
    FOLDER,
    MAX_REFERRERS,
    IndexBusyError,
    LogIndex,
    connect,
)
from larmspider.crawl.log_index.update import Update
from larmspider.errors import CrawlDirError
from larmspider.frontier.storage.records import url_key
from larmspider.pipelines.records import open_appending

PAGES = [f"http://h{n % 7}/p{n}" for n in range(60)]


def link_lines(rng: random.Random, pages: list[str]) -> list[bytes]:
    """Each page has links, some of them twice, one to itself and one that has no canonical form."""
    lines = []
    for page in pages:
        targets = [f"http://h{rng.randrange(9)}/p{int(rng.expovariate(0.05))}" for _ in range(20)]
        for target in [*targets, "http://h0/menu", targets[0], page]:
            lines += [f"{page}\t{target}\t{target}\t0\ttext"]
        lines.append(f"{page}\tmailto:a@b\t\t0\t")
    return [f"{line}\n".encode() for line in lines]


def fetch_line(url: str, result: str, millis: str = "5") -> bytes:
    return f"2026-01-31T12:00:00.000Z\t{url}\t{url}\t\t{result}\t100\t{millis}\t\n".encode()


def sizes(directory: Path) -> dict[str, int]:
    return {path.name: path.stat().st_size for path in directory.glob("*.log")}


def bring_up_to_date(directory: Path, *, began: str = "b", **ends: int) -> dict[str, object]:
    return Update(directory, {**sizes(directory), **ends}, began).run()


@contextmanager
def index_of(directory: Path) -> Iterator[LogIndex]:
    index = LogIndex(directory / FOLDER)
    try:
        yield index
    finally:
        index.close()


def expected_links(lines: list[bytes]) -> tuple[Counter[str], dict[str, list[int]]]:
    """Pages by target and the places of their lines, counted another way."""
    carried: dict[tuple[str, str], int] = {}
    at = 0
    for line in lines:
        page, url, target, *_ = line.decode().split("\t")
        if target and url != page:
            carried.setdefault((page, target), at)
        at += len(line)
    places = defaultdict(list)
    for (_, target), place in carried.items():
        places[target].append(place)
    return Counter({target: len(found) for target, found in places.items()}), places


@pytest.mark.parametrize("pieces", [1, 7])
@pytest.mark.parametrize("many", [update.BATCH_TARGETS, 10])
def test_links_are_counted_by_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pieces: int, many: int
) -> None:
    """However often the index is brought up to date, and in batches of any size."""
    monkeypatch.setattr(update, "BATCH_TARGETS", many)
    monkeypatch.setattr(update, "_CHUNK", 700)
    rng = random.Random(1)
    written: list[bytes] = []
    with (tmp_path / "links.log").open("ab") as log:
        for piece in range(pieces):
            lines = link_lines(rng, PAGES[piece::pieces])
            log.writelines(lines)
            log.flush()
            written += lines
            state = bring_up_to_date(tmp_path)
    counts, places = expected_links(written)
    assert (state["links"], state["pairs"]) == (len(written), counts.total())
    with index_of(tmp_path) as index:
        for target, count in counts.items():
            found = index.target(target)
            assert found is not None
            assert (found.pages, list(found.offsets)) == (count, places[target][:MAX_REFERRERS])
        assert index.target("http://h0/nowhere") is None
        assert len(list(index.targets())) == len(counts)
        expected = sorted(((c, url_key(t)) for t, c in counts.items()), reverse=True)
        assert index.most_linked() == expected[:1000]
        starts = [offset for page in PAGES for offset in index.offsets("sources", page)]
        first = {line.split(b"\t")[0]: at for line, at in reversed(with_places(written))}
        assert starts == [first[page.encode()] for page in PAGES]


@pytest.mark.parametrize("many", [update.BATCH_LINES, 30])
@pytest.mark.parametrize("slices", [1, 2, 5])
@pytest.mark.parametrize("compressed", [False, True])
def test_a_page_counts_once_whatever_the_slices(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, many: int, slices: int, compressed: bool
) -> None:
    """Its lines may be in parts, with other pages' lines between, in the logs of several workers,
    and read at several times: each target counts it once, and so do the hosts."""
    monkeypatch.setattr(update, "BATCH_LINES", many)
    rng = random.Random(3)
    parts = [link_lines(rng, [page]) for page in PAGES[:20]]
    by_page: dict[str, set[str]] = defaultdict(set)
    for line in (line for lines in parts for line in lines):
        page, url, target, *_ = line.decode().split("\t")
        if target and url != page:
            by_page[target].add(page)
    pieces = [lines[at::3] for lines in parts for at in range(3)]  # a third of a page's each
    ends: dict[str, int] = {}
    for number in range(slices):
        for worker in ("a", "b"):
            (tmp_path / worker).mkdir(exist_ok=True)
            mine = pieces[number::slices]
            rng.shuffle(mine)
            log = open_appending(tmp_path / worker / "links.log", compressed=compressed)
            log.write(b"".join(line for piece in mine for line in piece))
            ends[f"{worker}/links.log"] = log.flush()
            log.close()
        state = Update(tmp_path, ends, "b").run()
    assert state["pairs"] == sum(map(len, by_page.values()))
    with index_of(tmp_path) as index:
        for target, pages in by_page.items():
            found = index.target(target)
            assert found is not None
            assert (found.pages, len(found.offsets)) == (len(pages), min(50, len(pages)))
        assert sum(index.host_links().values()) == state["pairs"]


def test_a_fetch_at_the_same_time_is_the_last_workers_whichever_is_read_first(
    tmp_path: Path,
) -> None:
    """A URL is broken or not, independent of the number of updates."""
    for worker, result in (("a", "404"), ("b", "200")):
        (tmp_path / worker).mkdir()
        (tmp_path / worker / "fetch.log").write_bytes(fetch_line("http://h0/a", result))
    size = {worker: (tmp_path / worker / "fetch.log").stat().st_size for worker in "ab"}
    for order in ("ab", "ba"):
        Update(tmp_path, {"a/fetch.log": 0, "b/fetch.log": 0}, order).run()
        ends = {f"{worker}/fetch.log": 0 for worker in "ab"}
        for worker in order:
            ends[f"{worker}/fetch.log"] = size[worker]
            Update(tmp_path, ends, order).run()
        with index_of(tmp_path) as index:
            assert index.broken() == []


def with_places(lines: list[bytes]) -> list[tuple[bytes, int]]:
    places, at = [], 0
    for line in lines:
        places.append((line, at))
        at += len(line)
    return places


def test_hosts_and_host_links_are_sums_of_links(tmp_path: Path) -> None:
    """Also those from other hosts only."""
    lines = link_lines(random.Random(2), PAGES)
    (tmp_path / "links.log").write_bytes(b"".join(lines))
    bring_up_to_date(tmp_path)
    edges: Counter[tuple[str, str]] = Counter()
    pairs = {tuple(line.decode().split("\t")[:3]) for line in lines}
    for page, url, target in pairs:
        if target and page != url:
            edges[page.split("/")[2] + ":80", target.split("/")[2] + ":80"] += 1
    with index_of(tmp_path) as index:
        assert index.host_links() == dict(edges)
        for host in index.most_linked_hosts():
            into = {pair: count for pair, count in edges.items() if pair[1] == host.name}
            assert host.links == sum(into.values())
            assert host.from_others == sum(c for pair, c in into.items() if pair[0] != pair[1])
        links = [host.links for host in index.most_linked_hosts()]
        assert links == sorted(links, reverse=True)


def test_a_url_is_broken_while_its_last_fetch_failed(tmp_path: Path) -> None:
    """Refused by robots.txt is not broken."""
    lines = [
        fetch_line("http://h/a", "404"),
        fetch_line("http://h/b", "dns", ""),
        fetch_line("http://h/c", "robots", ""),
        fetch_line("http://h/d", "200"),
    ]
    log = tmp_path / "fetch.log"
    log.write_bytes(b"".join(lines))
    bring_up_to_date(tmp_path)
    with index_of(tmp_path) as index:
        broken = {key for _, key, _ in index.broken()}
        assert broken == {url_key("http://h/a"), url_key("http://h/b")}
    with log.open("ab") as file:
        file.write(fetch_line("http://h/a", "200") + fetch_line("http://h/d", "500"))
    bring_up_to_date(tmp_path)
    with index_of(tmp_path) as index:
        assert {key for _, key, _ in index.broken()} == {
            url_key("http://h/b"),
            url_key("http://h/d"),
        }
        assert {name: f.times for name, f in index.results("h:80").items()} == {
            "200": 2, "404": 1, "500": 1, "dns": 1, "robots": 1
        }  # fmt: skip
        ends = [sum(map(len, lines[:n])) for n in range(5)]
        assert index.failures("h:80", 2) == [ends[4] + len(lines[0]), ends[1]]
        assert index.failures("h:80", 9)[-1] == ends[0]
        assert index.failures("other:80", 9) == []


def test_nothing_is_read_behind_the_committed_end(tmp_path: Path) -> None:
    """A crash may drop it."""
    lines = [fetch_line("http://h/a", "404"), fetch_line("http://h/b", "404")]
    (tmp_path / "fetch.log").write_bytes(b"".join(lines))
    bring_up_to_date(tmp_path, **{"fetch.log": len(lines[0])})
    with index_of(tmp_path) as index:
        assert [key for _, key, _ in index.broken()] == [url_key("http://h/a")]
        assert index.end("fetch.log") == len(lines[0])


def test_another_crawl_is_told_by_when_it_began(tmp_path: Path) -> None:
    """Though its log ends as the earlier one's did."""
    log, same = tmp_path / "fetch.log", fetch_line("http://h/c", "200") * 5
    log.write_bytes(fetch_line("http://h/old", "404") + same)
    bring_up_to_date(tmp_path)
    log.write_bytes(fetch_line("http://h/new", "404") + same)
    bring_up_to_date(tmp_path, began="c")
    with index_of(tmp_path) as index:
        assert [key for _, key, _ in index.broken()] == [url_key("http://h/new")]


@pytest.mark.parametrize("change", ["another crawl", "cut short", "rewritten"])
def test_another_log_is_read_from_its_beginning(tmp_path: Path, change: str) -> None:
    """The rows of an earlier crawl are forgotten."""
    log = tmp_path / "fetch.log"
    log.write_bytes(fetch_line("http://h/old", "404") + fetch_line("http://h/c", "200"))
    bring_up_to_date(tmp_path)
    new = fetch_line("http://h/new", "404")
    if change != "cut short":
        new += fetch_line("http://h/d", "200")
    log.write_bytes(new)
    bring_up_to_date(tmp_path, began="c" if change == "another crawl" else "b")
    with index_of(tmp_path) as index:
        assert [key for _, key, _ in index.broken()] == [url_key("http://h/new")]


def test_damaged_lines_are_passed_over(tmp_path: Path) -> None:
    """Too few fields, bytes that are no UTF-8, a line without its end."""
    (tmp_path / "links.log").write_bytes(
        b"\n\t\nx\n\xff\xfe\thttp://a/\thttp://a/\t0\t\nhttp://h/\thttp://b/\thttp://b/\t0\t\nhalf"
    )
    (tmp_path / "fetch.log").write_bytes(b"x\ty\n" + fetch_line("nonsense", "404", "a lot"))
    (tmp_path / "store.log").write_bytes(b"\t\t\t\t\n")
    state = bring_up_to_date(tmp_path)
    assert state["links"] == 2
    with index_of(tmp_path) as index:
        assert index.target("http://b/") is not None
        assert len(index.broken()) == 1


def test_only_one_process_writes(tmp_path: Path) -> None:
    """The second one gets an error, and changes nothing."""
    (tmp_path / "fetch.log").write_bytes(fetch_line("http://h/a", "404"))

    def second(_done: int, _all: int) -> None:
        with pytest.raises(IndexBusyError):
            bring_up_to_date(tmp_path)

    assert Update(tmp_path, sizes(tmp_path), "b", progress=second).run()["fetches"] == 1
    assert bring_up_to_date(tmp_path)["fetches"] == 1


def test_readers_see_whole_batches_while_the_index_grows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """New readers, and one that was open before."""
    monkeypatch.setattr(update, "BATCH_TARGETS", 10)
    monkeypatch.setattr(update, "_CHUNK", 5_000)
    lines = link_lines(random.Random(6), [f"http://h/{n}" for n in range(100)])
    (tmp_path / "links.log").write_bytes(b"".join(lines))
    bring_up_to_date(tmp_path, **{"links.log": sum(map(len, lines[:24]))})
    seen = set()

    def look(_done: int, _all: int) -> None:
        with index_of(tmp_path) as new:
            for index in (new, old):
                read = b"".join(lines)[: index.end("links.log")].splitlines(keepends=True)
                assert index.state()["links"] == len(read)
                assert len(list(index.targets())) == len(expected_links(read)[0])
                seen.add(len(read))

    with index_of(tmp_path) as old:
        Update(tmp_path, sizes(tmp_path), "b", progress=look).run()
    assert len(seen) > 5


def test_a_reader_without_an_index_is_an_error_of_ours(tmp_path: Path) -> None:
    """One line, no traceback of SQLite."""
    with pytest.raises(CrawlDirError):
        LogIndex(tmp_path / FOLDER)


def test_an_index_that_cannot_be_written_is_one_too(tmp_path: Path) -> None:
    """In a directory that is another user's, for one."""
    (tmp_path / FOLDER).write_text("in its place")
    with pytest.raises(CrawlDirError, match=FOLDER):
        bring_up_to_date(tmp_path)


@pytest.mark.parametrize("frequent", [1, 3, 1000])
@pytest.mark.parametrize("batch", [10, 100_000])
def test_the_most_linked_are_exact(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, frequent: int, batch: int
) -> None:
    """Whether they are in the table's index by pages or not."""
    monkeypatch.setattr(update, "BATCH_TARGETS", batch)
    monkeypatch.setattr(update, "SCHEMA", update.SCHEMA.replace(">= 20", f">= {frequent}"))
    monkeypatch.setattr(index_module, "FREQUENT", frequent)
    monkeypatch.setattr(index_module, "TOP", 10)
    rng = random.Random(3)
    lines = link_lines(rng, [f"http://h/{n}" for n in range(300)])
    (tmp_path / "links.log").write_bytes(b"".join(lines))
    bring_up_to_date(tmp_path)
    counts, _ = expected_links(lines)
    best = sorted(((count, url_key(url)) for url, count in counts.items()), reverse=True)
    with index_of(tmp_path) as index:
        assert index.most_linked() == best[:10]


@pytest.mark.acceptance
def test_a_killed_update_goes_on_from_its_last_batch(tmp_path: Path) -> None:
    """Killed at any moment; readers see whole batches, and nothing is counted twice."""
    lines = link_lines(random.Random(5), [f"http://h/{n}" for n in range(400)])
    (tmp_path / "links.log").write_bytes(b"".join(lines))
    program = (
        "import sys; from pathlib import Path; from larmspider.crawl.log_index import update;"
        "update.BATCH_TARGETS = 10; update._CHUNK = 700; print(flush=True);"
        f"update.Update(Path({str(tmp_path)!r}), {sizes(tmp_path)!r}, 'b').run()"
    )
    for tenths in range(6):
        with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as writer:
            assert writer.stdout is not None
            writer.stdout.readline()
            time.sleep(tenths / 20)
            writer.kill()
        if not (tmp_path / FOLDER / DATABASE).exists():
            continue
        with suppress(CrawlDirError), index_of(tmp_path) as index:  # perhaps without tables yet
            read = b"".join(lines)[: index.end("links.log")].splitlines(keepends=True)
            assert index.state().get("links", 0) == len(read)
            assert len(list(index.targets())) == len(expected_links(read)[0])
    state = bring_up_to_date(tmp_path)
    counts, _ = expected_links(lines)
    assert (state["links"], state["pairs"]) == (len(lines), counts.total())
    with index_of(tmp_path) as index:
        menu = index.target("http://h0/menu")
        assert menu is not None
        assert menu.pages == 400


def test_an_index_in_lmdb_is_made_anew(tmp_path: Path) -> None:
    """As versions before SQLite kept it, in the same folder."""
    (tmp_path / FOLDER).mkdir()
    for name in ("data.mdb", "lock.mdb"):
        (tmp_path / FOLDER / name).write_bytes(b"\0" * 8192)
    (tmp_path / "fetch.log").write_bytes(fetch_line("http://h/a", "404"))
    assert bring_up_to_date(tmp_path)["fetches"] == 1
    assert {path.name for path in (tmp_path / FOLDER).iterdir()} == {DATABASE, "writer.lock"}


def test_an_index_of_another_format_is_made_anew(tmp_path: Path) -> None:
    (tmp_path / "fetch.log").write_bytes(fetch_line("http://h/a", "404"))
    bring_up_to_date(tmp_path)
    with closing(connect(tmp_path / FOLDER, readonly=False)) as database:
        database.execute("PRAGMA user_version = 99")
    with index_of(tmp_path) as index:
        assert index.state() == {}
    bring_up_to_date(tmp_path)
    with index_of(tmp_path) as index:
        assert index.state()["fetches"] == 1
