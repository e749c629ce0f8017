"""Sites without end, in process: how much of them is fetched, and that no content is lost."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from zlib import crc32

import pytest

from larmspider.frontier.storage.lmdb_backend import LmdbBackend
from larmspider.frontier.storage.lmdb_reader import FrontierReader
from larmspider.frontier.storage.records import QueuedUrl, url_key
from larmspider.frontier.strategies import PageRank
from larmspider.items import Page
from larmspider.learned.describe import Learning, url_report
from larmspider.learned.traps.host_traps import Budgets, ClassState, HostTraps
from larmspider.learned.traps.trap_watch import OFF, REPORT
from tests.support.frontier.walk import H, Walk, folders, repository, wiki
from tests.support.servers.generators import CONTENT, GENERATORS, document, page
from tests.support.servers.scripted import Reply

QUICK = ("calendar by month", "soft-404 maze")
acceptance = pytest.mark.acceptance


@pytest.fixture
def backend(tmp_path: Path) -> Iterator[LmdbBackend]:
    found = LmdbBackend(tmp_path / "frontier")
    yield found
    found.close()


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=() if name in QUICK else acceptance) for name in GENERATORS],
)
def test_a_generator_ends_or_is_held(name: str, backend: LmdbBackend) -> None:
    walk = Walk(GENERATORS[name], backend).run()
    assert len(walk.fetched) < 500
    assert {f"/doc/{n}" for n in range(CONTENT)} <= {*walk.fetched}
    counts = backend.audit()
    assert counts == backend.counts()
    assert counts.queued == counts.held


def test_the_class_that_is_the_content_is_never_held(backend: LmdbBackend) -> None:
    walk = Walk(wiki, backend).run()
    assert {f"/wiki?id={n}" for n in range(1, 60)} <= {*walk.fetched}
    assert sum("do=" in target for target in walk.fetched) < 160
    assert walk.frontier.backend.counts().held > 200
    assert any("/wiki?do=edit&id=* are held" in news for news in walk.news)
    states = {r.text: r.state for r in walk.traps.known("h:80").records.values()}
    assert states["/wiki?id=*"] is ClassState.OPEN


def words(number: int, many: int) -> str:
    """Such as no other number has."""
    draw = random.Random(number)
    return " ".join("".join(draw.choices("abcdefghijklmnop", k=7)) for _ in range(many))


MENU = " ".join(f'<a href="/page{n}">{words(1_000 + n, 2)}</a>' for n in range(300))


def glossary(target: str) -> Reply:
    """300 short pages that name each other in a plain ``div``."""
    own = words(int(target.removeprefix("/page") or 0), 40) if target != "/" else ""
    html = f"<title>A glossary</title><div>{MENU}</div><p>{own}</p>"
    return Reply(headers={"Content-Type": "text/html"}, body=html.encode())


def test_short_pages_with_a_long_menu_are_no_trap(backend: LmdbBackend) -> None:
    walk = Walk(glossary, backend).run()
    assert len(walk.fetched) == 301
    assert backend.counts().held == 0


def archive(target: str) -> Reply:
    """Sixty mails, each with its source; ``/log?page=N`` says one thing."""
    mail, _, part = target.removeprefix("/mail/").partition("/")
    if target == "/":
        return page("Mails", "All mails.", *(f"/log?page={n}" for n in range(6)), "/mail/0/")
    if target.startswith("/log"):
        return page("Log", "Nothing happened.", *(f"/log?page={n}" for n in range(6, 12)))
    number = int(mail)
    others = [f"/mail/{n}/" for n in (2 * number + 1, 2 * number + 2) if n < 60]
    return page("Mail", document(number), *([] if part else [f"/mail/{mail}/raw", *others]))


def test_classes_with_little_that_is_new_wait_behind_the_others(backend: LmdbBackend) -> None:
    """And nothing of them is left out: the sources repeat their mails, and come last."""
    walk = Walk(archive, backend).run()
    at = {target: n for n, target in enumerate(walk.fetched)}
    assert len(at) == len(walk.fetched) == 1 + 12 + 2 * 60
    assert backend.counts().queued == 0
    mails = sorted(
        n for target, n in at.items() if target.startswith("/mail/") and "raw" not in target
    )
    sources = sorted(n for target, n in at.items() if "raw" in target)
    assert sources[20] > mails[-1]
    in_order = Walk(archive, None, REPORT).run().fetched
    assert sorted(in_order) == sorted(walk.fetched)
    assert in_order != walk.fetched


def revisions(target: str) -> Reply:
    """Forty files in ten revisions each, of which nine repeat the first one; all those of a file
    are named before the next file."""
    if target == "/":
        return page("Log", "What has changed.", *(f"/log?file=file{n}" for n in range(40)))
    name = target.partition("file=")[2].partition("&")[0]
    if target.startswith("/log"):
        return page("Log", "", *(f"/show?file={name}&at=commit{n}" for n in range(10)))
    return page("File", document(int(name.removeprefix("file"))))


def test_values_that_were_not_seen_go_before_those_that_were(backend: LmdbBackend) -> None:
    """As pages with one that was seen are not new; which commit it is makes no difference."""
    walk = Walk(revisions, backend).run()
    files = [target.partition("&")[0] for target in walk.fetched if target.startswith("/show")]
    assert len({*files[:60]}) == 40
    known = walk.traps.known("h:80").records.values()
    tally = next(one.tally for one in known if one.text == "/show?at=*&file=*")
    assert tally is not None
    assert (tally[13] > 10, tally[15]) == (True, 0)  # of names that were not seen, and that were


def test_a_new_file_is_fetched_at_once_where_only_revisions_were_left(
    backend: LmdbBackend, tmp_path: Path
) -> None:
    """Also after a restart; further revisions are held as before, but those that are tried."""
    first = Walk(repository, backend).run(2_000)
    assert sum("a=file" in target for target in first.fetched) < 200
    assert [n for n in first.news if n.startswith("URLs /git?a=file&f=*&h=* are held from now on")]
    first.frontier.checkpoint({})
    for walk, new in ((first, 60), (Walk(repository, backend), 70)):
        held, fetched = backend.counts().held, len(walk.fetched)
        names = [f"file{n}" for n in range(new, new + 10)]
        more = [
            f"/git?a=file&f={name}&h=0{name}" for name in [*names, *(f"file{n}" for n in range(20))]
        ]
        walk.add(more, Page(f"{H}/", status=200))
        walk.run(9_999)
        asked = walk.fetched[fetched:]
        assert {f"/git?a=file&f={name}&h=0{name}" for name in names} <= {*asked}
        assert len([target for target in asked if "a=file" in target]) <= 10 + 5
        assert backend.counts().held > held + 20
        walk.frontier.checkpoint({})


def lists(target: str) -> Reply:
    """A list of which each part says the same, and names five pages and the next part; each page
    has six views, of which every second one is new."""
    name, _, query = target.partition("?")
    asked = dict(one.split("=") for one in query.split("&")) if query else {}
    if name in ("/", "/list"):
        at = int(asked.get("part", 0))
        pages = [f"/page?id={n}" for n in range(5 * at, 5 * at + 5)]
        return page("List", "Some of all.", *pages, *[f"/list?part={at + 1}"] * (at < 11))
    number, view = int(asked["id"]), int(asked.get("view", 0))
    text = document(100 * view + number if view % 2 else number)
    return page("Page", text, *(f"/view?id={number}&view={n}" for n in range(1, 7)))


def test_pages_that_lead_to_new_ones_are_as_good_as_these(backend: LmdbBackend) -> None:
    walk = Walk(lists, backend).run()
    last = walk.fetched.index("/list?part=11")
    assert sum("view=" in target for target in walk.fetched[:last]) < 80


def comparisons(target: str) -> Reply:
    """Files and what has changed in each; all of them say something."""
    if target == "/":
        changes = [f"/show?file=file{n}&new=tip&old=base{n}" for n in range(40)]
        files = [f"/show?file=file{n}" for n in range(40)]
        return page("Files", "All of them.", *files[:5], *changes, *files[5:])
    number = int(target.partition("file=file")[2].partition("&")[0])
    return page("File", document(number + 100 * ("old=" in target)))


def test_of_pages_that_give_as_much_those_with_fewer_parameters_come_first(
    backend: LmdbBackend,
) -> None:
    walk = Walk(comparisons, backend).run()
    assert sum("old=" in target for target in walk.fetched[:41]) < 5


def test_views_of_many_paths_are_held_together(backend: LmdbBackend) -> None:
    walk = Walk(folders, backend).run()
    orders = [target for target in walk.fetched if "?" in target]
    assert len(walk.fetched) - len(orders) == 40
    assert len(orders) < 200
    assert any("/**?C=*&O=*" in news for news in walk.news)


def one_script(target: str) -> Reply:
    """Sixty pages as ``/w?PageN``, two views of each, and what links to it."""
    query = target.partition("?")[2]
    number = int("".join(filter(str.isdigit, query)) or 0)
    others = [f"/w?Page{n}" for n in (2 * number + 1, 2 * number + 2) if n < 60]
    views = [f"/w?back=Page{number}", f"/w?action=edit&id=Page{number}"]
    text = "Pages that link here." if "back" in query else document(number)
    return page("Wiki", text, *others, *views)


def test_pages_that_are_a_query_are_the_content_and_not_what_has_one_parameter(
    backend: LmdbBackend,
) -> None:
    walk = Walk(one_script, backend).run()
    assert {f"/w?Page{n}" for n in range(1, 60)} <= {*walk.fetched}
    assert len(walk.fetched) < 110
    assert any("/w?back=* are held" in news for news in walk.news)


def special(target: str) -> Reply:
    """Sixty pages, an edit form of each, and below /w/special/ what links to each."""
    number = int("".join(filter(str.isdigit, target)) or 0)
    others = [f"/w/Page{n}" for n in (2 * number + 1, 2 * number + 2) if n < 60]
    views = [f"/w/special/Page{number}", f"/w/Page{number}?action=edit"]
    text = "Pages that link here." if "special" in target else document(number)
    return page("Wiki", text, *others, *views)


def views_first(target: str) -> Reply:
    """Eighty pages, each of which is named by a list of changes as a comparison, too."""
    if target == "/":
        lists = ["/changes", *(f"/list?part={n}" for n in range(4))]
        return page("Wiki", "Welcome to all.", *lists)
    number = int("".join(filter(str.isdigit, target)) or 0)
    if target.startswith("/list"):
        return page(
            "List", document(900 + number), *(f"/w?id={20 * number + n}" for n in range(20))
        )
    if target == "/changes":
        return page("Changes", document(999), *(f"/w?diff=1&id={n}9" for n in range(8)))
    asked = number if "diff" not in target else int(target.rpartition("=")[2])
    others = (f"/w?diff=1&id={n}" for n in range(asked, min(80, asked + 8)))
    return page("Wiki", document(asked), *others)


def test_a_view_that_comes_before_its_page_is_known_as_one_when_that_comes(
    backend: LmdbBackend,
) -> None:
    walk = Walk(views_first, backend).run()
    assert {f"/w?id={n}" for n in range(80)} <= {*walk.fetched}
    assert sum("diff" in target for target in walk.fetched) < 40
    assert any("/w?diff=*&id=* are held" in news for news in walk.news)


def test_pages_that_repeat_those_of_one_segment_less_are_views_of_them(
    backend: LmdbBackend,
) -> None:
    walk = Walk(special, backend).run()
    assert {f"/w/Page{n}" for n in range(1, 60)} <= {*walk.fetched}
    assert sum("special" in target for target in walk.fetched) < 40
    assert any("/w/special/* are held" in news for news in walk.news)


def tracker(target: str) -> Reply:
    """Eighty tickets, each with 24 views of one parameter that say what it says."""
    number = int(target.rpartition("=")[2] if "?" in target else target[1:] or 0)
    if "?" in target:
        return page("View", document(number))
    others = [f"/{n}" for n in (2 * number + 1, 2 * number + 2) if n < 80]
    views = [f"/view{chr(97 + n)}?by{n}={number}" for n in range(24)]
    return page("Ticket", document(number), *others, *views)


@acceptance
def test_what_waits_behind_all_others_is_held_together(backend: LmdbBackend) -> None:
    """Or each of the 24 views would be tried by twelve pages and more."""
    walk = Walk(tracker, backend).run(2_000)
    assert {f"/{n}" for n in range(1, 80)} <= {*walk.fetched}
    assert sum("?" in target for target in walk.fetched) < 290
    assert [n for n in walk.news if n.startswith("URLs the pages that wait behind all others")]
    known = walk.traps.known("h:80")
    assert not [one.text for one in known.waiting() if one.params == 0]
    walk.add([f"/{n}" for n in range(200, 240)], Page(f"{H}/", status=200))
    walk.run(3_000)
    assert {f"/{n}" for n in range(200, 240)} <= {*walk.fetched}


@acceptance
def test_a_view_that_turns_out_new_is_let_go_though_all_others_wait(backend: LmdbBackend) -> None:
    changed = False

    def site(target: str) -> Reply:
        if changed and target.startswith("/viewa"):
            return page("View", document(1_000 + int(target.rpartition("=")[2])))
        return tracker(target)

    walk = Walk(site, backend).run(2_000)
    changed = True
    more = [f"/viewa?by0={n}" for n in range(300, 500)]
    walk.add(more, Page(f"{H}/", status=200))
    walk.run(3_000)
    assert len({*more} & {*walk.fetched}) > 150


def rows(target: str) -> Reply:
    """A browser of a database: 90 rows, each also as JSON, and as a search for its name."""
    path, _, query = target.partition("?")
    name = query.partition("=")[2] or path.removeprefix("/rows/").removesuffix(".json")
    if target == "/":
        lists = [f"/rows?page={n}" for n in range(9)]
        return page("Rows", "All rows.", *(f"/rows/row-{n}" for n in range(90)), *lists)
    if query.startswith("page="):
        return page("Rows", "Some rows.")
    said = document(int(name.removeprefix("row-")))
    if path.endswith(".json"):
        return page(name, said)
    return page(name, said, f"/rows/{name}.json", f"/find?like={name}")


def browser(target: str) -> Reply:
    """A repository: 80 files in 4 folders, each also below /blame and /plain."""
    path, _, query = target.partition("?")
    _, _, name = path.strip("/").partition("/")
    if target == "/":
        logs = [f"/log/?page={n}" for n in range(16)]
        return page("Works", "All.", *(f"/tree/part{n}" for n in range(4)), *logs)
    if query:
        return page("Log", "Some commits.")
    part, _, file = name.partition("/")
    if not file:
        own = [f"{part}/file-{n}" for n in range(80) if n % 4 == int(part[-1])]
        return page(part, "A folder.", *(f"/{v}/{one}" for one in own for v in VIEWS))
    return page(file, document(int(file.removeprefix("file-"))))


def formats(target: str) -> Reply:
    """80 rows, each also in three formats, on a host without any parameter."""
    if target == "/":
        return page("Rows", "All rows.", *(f"/rows/row-{n}" for n in range(80)))
    name, _, suffix = target.removeprefix("/rows/").partition(".")
    said = document(int(name.removeprefix("row-")))
    links = () if suffix else (f"/rows/{name}.{one}" for one in ("json", "atom", "txt"))
    return page(name, said, *links)


VIEWS = ("tree", "plain", "blame")


@pytest.mark.parametrize(
    ("site", "content", "view", "held"),
    [
        (rows, {f"/rows/row-{n}" for n in range(90)}, "/rows/*.json", 40),
        (formats, {f"/rows/row-{n}" for n in range(80)}, "/rows/*.json", 120),
        (browser, {f"/tree/part{n % 4}/file-{n}" for n in range(80)}, "/blame/**", 40),
    ],
)
def test_a_suffix_or_a_word_of_the_path_names_a_view(
    site: Callable[[str], Reply], content: set[str], view: str, held: int, backend: LmdbBackend
) -> None:
    walk = Walk(site, backend).run()
    assert content <= {*walk.fetched}
    assert any(f"{view} are held" in news for news in walk.news)
    assert backend.counts().held > held


def editions(target: str) -> Reply:
    """A manual in three versions, on a host with searches."""
    if target == "/":
        asked = [f"/find?page={n}" for n in range(40)]
        pages = (f"/{one}/page-{at}.html" for one in EDITIONS for at in PAGES)
        return page("Manuals", "All.", *pages, *asked)
    if "?" in target:
        return page("Found", document(100 + int(target.partition("=")[2])))
    _, name = target.strip("/").split("/")
    at = int(name.removeprefix("page-").removesuffix(".html"))
    return page(name, document(at), *(f"/{one}/{name}" for one in EDITIONS))


EDITIONS, PAGES = ("5.1", "5.2", "latest"), range(40)


def test_a_version_of_a_manual_is_no_view_of_another_one(backend: LmdbBackend) -> None:
    walk = Walk(editions, backend).run()
    assert len(walk.fetched) == 1 + 40 + 3 * 40
    assert backend.counts().held == 0


@acceptance
@pytest.mark.parametrize("mode", [REPORT, OFF])
def test_nothing_is_held_where_that_is_not_wanted(mode: str, backend: LmdbBackend) -> None:
    walk = Walk(wiki, backend, mode).run(most=999)
    assert walk.frontier.backend.counts().queued == 0
    assert sum("do=" in target for target in walk.fetched) > 400
    assert bool(walk.news) is (mode == REPORT)
    assert all("would be held" in news for news in walk.news)


def late(target: str) -> Reply:
    """A list of 450 pages, of which the first 200 say nothing."""
    if target == "/":
        return page("List", "All of them.", *(f"/item?n={n}" for n in range(450)))
    number = int(target.partition("=")[2])
    return page("Item", document(number) if number >= 200 else "Not in stock.")


@acceptance
def test_a_class_that_turns_out_new_is_fetched_whole(backend: LmdbBackend) -> None:
    """But for those of which it is true that they say nothing."""
    walk = Walk(late, backend).run()
    assert walk.news[0].startswith(
        "URLs /item?n=* are held from now on: its budget is used up: 150"
    )
    assert {f"/item?n={n}" for n in range(200, 450)} <= {*walk.fetched}
    assert backend.counts().held == backend.counts().queued < 50


def test_files_are_never_held(backend: LmdbBackend) -> None:
    """A share of scans, forms or empty files is what somebody has put there."""
    traps, folder = Walk(wiki, backend).traps, "file:///srv/share/scans/"
    for number in range(400):
        url = f"{folder}scan-{number:03}.txt"
        entry = QueuedUrl(url, url, url_key(url), "file://", from_page=folder)
        assert traps.admits(entry), number
        scan = Page(url, status=200, body=b"one form", text="one form", from_page=folder)
        assert traps.saw(entry, scan) == ""


def test_what_is_held_stays_so_after_a_crash(tmp_path: Path) -> None:
    """And what led to it is known, until there is another budget."""
    site = GENERATORS["calendar by week and year"]
    backend = LmdbBackend(tmp_path / "frontier")
    walk = Walk(site, backend).run(most=250)
    walk.frontier.checkpoint({})
    counts, fetched = backend.counts(), len(walk.fetched)
    assert counts.held == counts.queued > 0
    backend.close()  # nothing since the checkpoint is kept
    backend = LmdbBackend(tmp_path / "frontier")
    again = Walk(site, backend).run()
    assert (again.fetched, backend.counts()) == ([], counts)
    backend.close()
    backend = LmdbBackend(tmp_path / "frontier")
    more = Walk(site, backend, budgets=Budgets(of_class=fetched, deep=0)).run()
    assert len(more.fetched) > 10
    assert backend.counts() == backend.audit()
    backend.close()


@pytest.mark.parametrize(
    "name", ["calendar by timestamp", pytest.param("growing path", marks=acceptance)]
)
def test_kills_cost_what_was_not_committed_and_nothing_that_was_learned(
    name: str, tmp_path: Path
) -> None:
    """After every 27 fetches, of which the last 7 are behind the last checkpoint."""
    asked, lost, finished = 0, 0, False
    while not finished:
        backend = LmdbBackend(tmp_path / "frontier")
        walk = Walk(GENERATORS[name], backend)
        for pages in (10, 20):
            walk.run(pages).frontier.checkpoint({})
        committed = len(walk.fetched)
        finished = walk.run(27).frontier.finished
        asked += len(walk.fetched)
        lost += len(walk.fetched) - committed
        counts = backend.counts()
        backend.close()
        assert asked - lost < 500
    assert counts.queued == counts.held
    assert asked - lost <= len(Walk(GENERATORS[name]).run().fetched)


def versions(target: str) -> Reply:
    """A manual of 160 pages in three versions, one after the other."""
    if target == "/":
        return page("Manuals", "The last one first.", "/manual?page=0&version=3")
    number, version = (int(one.partition("=")[2]) for one in target[8:].split("&"))
    text = f"{document(number)} This is about version {version}.0."
    others = [(n, version) for n in (2 * number + 1, 2 * number + 2) if n < 160]
    others += [(0, version - 1)] * (number == 159 and version > 1)
    return page(f"Part {number}", text, *(f"/manual?page={n}&version={v}" for n, v in others))


def test_all_versions_of_a_manual_are_fetched(backend: LmdbBackend) -> None:
    walk = Walk(versions, backend).run()
    assert (len(walk.fetched), walk.news) == (1 + 3 * 160, [])


def test_a_host_that_is_dropped_from_memory_is_known_by_its_notes(backend: LmdbBackend) -> None:
    walk = Walk(GENERATORS["pages of results"], backend).run()
    before = walk.traps.known("h:80")
    known, seen = before.records, before.seen
    walk.frontier.notes.max_bytes = 0
    walk.frontier.checkpoint({})
    assert walk.traps.known("h:80").records is not known
    assert walk.traps.known("h:80").records == known
    assert walk.traps.known("h:80").seen.pack() == seen.pack()


def test_explain_names_class_budget_and_evidence(backend: LmdbBackend, tmp_path: Path) -> None:
    walk = Walk(GENERATORS["pages of results"], backend).run()
    walk.frontier.checkpoint({})
    held = max(int(n.partition("=")[2]) for n in walk.fetched if "page" in n) + 10
    key = url_key(f"{H}/find?page={held}")
    politeness = walk.frontier.politeness
    with FrontierReader(tmp_path / "frontier") as reader:
        lines = url_report(reader, politeness, key, walk.clock.now)
    assert lines[0] == "URL: queued"
    assert lines[1].startswith("held as one of /find?page=* of h:80, its budget is used up: 1")
    assert "held by this (LARM_CLASS_PAGES); one in 20 is fetched" in lines[2]
    assert len(lines) == 8
    assert lines[3].startswith(f"not new: {H}/find?page=")


def tickets(target: str) -> Reply:
    """Documents, and an error text with a number, all below the menu of page()."""
    number = int(re.sub(r"\D", "", target) or 0)
    links = [f"/doc/{n}" for n in range(12)] + [f"/ticket?n={n}" for n in range(200)]
    if target.startswith("/ticket"):
        return page("Oops", f"Sorry, it failed as number {number * 7919}. Call the desk.")
    return page("A page", document(number), *links)


def test_an_error_text_is_shown_without_the_menu_that_all_pages_begin_with(
    backend: LmdbBackend,
) -> None:
    (said,) = Walk(tickets, backend).run().traps.alike()
    assert re.search(r'"(Oops )?Sorry, it failed as number', said), said


@pytest.mark.parametrize(
    ("learning", "said"),
    [
        (
            Learning(),
            [
                "put behind the other URLs of h:80, by 3 levels of 3, because similar pages had"
                " little new text (LARM_TRAPS)"
            ],
        ),
        (Learning(order=PageRank), []),
        (Learning(mode=REPORT), []),
    ],
)
def test_explain_says_why_a_url_waits_behind_others(
    learning: Learning, said: list[str], backend: LmdbBackend, tmp_path: Path
) -> None:
    walk = Walk(archive, backend).run(90)
    walk.frontier.checkpoint({})
    politeness = walk.frontier.politeness
    asked = next(n for n in range(60) if f"/mail/{n}/raw" not in walk.fetched)
    key = url_key(f"{H}/mail/{asked}/raw")
    with FrontierReader(tmp_path / "frontier") as reader:
        lines = url_report(reader, politeness, key, walk.clock.now, learning=learning)
        off = url_report(reader, politeness, key, walk.clock.now, learning=Learning(mode=OFF))
    before, [evidence, *others] = lines[: len(off)], lines[len(off) :]
    assert (before, others) == (off, said)
    assert re.fullmatch(
        r"of class /mail/\*/raw: \d+ of its last \d+ pages new; \d+ in a row with nothing new"
        r" of the 150 that its budget allows \(LARM_CLASS_PAGES\)",
        evidence,
    )


def test_explain_says_what_is_held_when_its_turn_comes(
    backend: LmdbBackend, tmp_path: Path
) -> None:
    walk = Walk(wiki, backend)
    while not any("/wiki?do=edit&id=*" in news for news in walk.news):
        walk.run(len(walk.fetched) + 1)
    walk.frontier.checkpoint({})
    politeness = walk.frontier.politeness
    with FrontierReader(tmp_path / "frontier") as reader:
        asked = next(one.key for one in reader.queued("h:80", 999) if "do=edit" in one.url)
        lines = url_report(reader, politeness, asked, walk.clock.now)
    assert lines[-1].startswith("is held when its turn comes, as quarantined: ")


def test_explain_says_which_urls_of_a_class_are_fetched_all_the_same(
    backend: LmdbBackend, tmp_path: Path
) -> None:
    walk = Walk(repository, backend).run(2_000)
    walk.frontier.checkpoint({})
    politeness = walk.frontier.politeness
    with FrontierReader(tmp_path / "frontier") as reader:
        held = next(one.key for one in reader.queued("h:80", 999) if "a=file" in one.url)
        lines = url_report(reader, politeness, held, walk.clock.now)
    assert lines[1].startswith("held as one of /git?a=file&f=*&h=* of h:80, known by f: ")
    assert lines[1].endswith(" pages were new; URLs with a new f are fetched")


def test_purging_a_host_takes_what_is_held(backend: LmdbBackend) -> None:
    walk = Walk(GENERATORS["pages of results"], backend).run()
    assert backend.counts().held
    while walk.frontier.control.purge_host("h:80"):
        pass
    counts = backend.counts()
    assert (counts.held, counts.queued, counts == backend.audit()) == (0, 0, True)


def test_each_time_a_quarantine_ends_it_takes_one_new_page_more() -> None:
    """A class that seems new now and then does not keep a crawl for ever; after a restart, too."""
    traps = HostTraps(Budgets(), "h:80")
    for number in range(30):
        traps.judge(traps.meet(f"{H}/doc/{number}", 1), 1.0)
    visits = (f"{H}/doc/{number % 30}?visit={number}" for number in count())

    def visited(*shares: float) -> ClassState:
        for share in shares:
            met = next(
                met
                for url in visits
                if (met := traps.meet(url, 2)).blocked is None or met.probe or met.later
            )
            traps.judge(met, share)
        return met.records[0].state

    for new in (3, 4, 5):
        while visited(0.0) is not ClassState.QUARANTINED:
            pass
        assert visited(*[1.0] * (new - 1)) is ClassState.QUARANTINED
        assert visited(1.0) is ClassState.OPEN
        traps = HostTraps.unpack(traps.pack(), "h:80")


def maze(target: str) -> Reply:
    """Each page has words of its own, and links to three new pages."""
    name = target.removeprefix("/maze/")
    links = [f"/maze/{name}{branch}" for branch in "xyz"]
    if target == "/":
        links = ["/maze/v", "/doc/0"]
    if target.startswith("/doc/"):
        number = int(target[5:])
        links = [f"/doc/{n}" for n in (number + 1, number // 2) if n < CONTENT]
        return page("Document", document(number), *links)
    return page("Words", words(crc32(name.encode()), 40), "/", *links)


def tree(target: str) -> Reply:
    """Nodes with three branches each down to level 5, none of them linked twice."""
    name = target.removeprefix("/node/").strip("/")
    links = [f"/node/{name}{branch}" for branch in "xyz"] if len(name) < 5 else []
    return page("Node", words(crc32(name.encode()), 40), *links)


def test_texts_at_random_without_end_are_held_and_explained(backend: LmdbBackend) -> None:
    walk = Walk(maze, backend, budgets=Budgets(endless=60)).run()
    assert {f"/doc/{n}" for n in range(CONTENT)} <= {*walk.fetched}
    assert len(walk.fetched) < 60 + CONTENT + 40
    assert backend.counts().queued == backend.counts().held > 100
    assert ["/maze/* are held from now on: without end" in news for news in walk.news] == [True]


def test_held_pages_at_random_are_fetched_without_such_a_budget(tmp_path: Path) -> None:
    backend = LmdbBackend(tmp_path / "frontier")
    walk = Walk(maze, backend, budgets=Budgets(endless=60)).run()
    walk.frontier.checkpoint({})
    backend.close()
    backend = LmdbBackend(tmp_path / "frontier")
    assert Walk(maze, backend, budgets=Budgets(endless=60)).run().fetched == []
    backend.close()
    backend = LmdbBackend(tmp_path / "frontier")
    more = Walk(maze, backend, budgets=Budgets(endless=0)).run(100)
    assert len(more.fetched) == 100
    backend.close()


def test_a_tree_with_leaves_is_stored_whole(backend: LmdbBackend) -> None:
    """121 pages come before the first leaf."""
    walk = Walk(tree, backend, budgets=Budgets(endless=200)).run(2_000)
    assert walk.news == []
    assert len(walk.fetched) == sum(3**level for level in range(6))


def woven(target: str) -> Reply:
    """300 pages; each has two links that are new, and two into what is known."""
    number = int(target.removeprefix("/page/").strip("/") or 0)
    others = [2 * number + 1, 2 * number + 2, number * 7 // 11, number * 5 // 13]
    return page("Page", words(number, 40), *(f"/page/{n}" for n in others if n < 300))


def test_pages_with_links_in_common_are_no_maze(backend: LmdbBackend) -> None:
    walk = Walk(woven, backend, budgets=Budgets(endless=60)).run()
    assert walk.news == []
    assert len(walk.fetched) == 301
