"""Settings, stats, commands and files that a user can set or read are documented."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable
from hashlib import sha1
from pathlib import Path
from typing import Any

import pytest
from scrapy.settings import Settings

from docs.reference import pages
from larmspider import options, stats
from larmspider.access.lists import AUTHENTICATED, EVERYONE
from larmspider.crawl.log_index.update import SOUND
from larmspider.errors import ConfigError
from larmspider.extraction import body_type, formats
from larmspider.extraction.documents import parts
from larmspider.extraction.documents.reading import Unread
from larmspider.frontier.frontier import Frontier
from larmspider.frontier.hosts import HostPace, HostRules
from larmspider.frontier.politeness import KINDS, Limits, Politeness
from larmspider.frontier.slots import SlotPool
from larmspider.frontier.storage.records import FetchRecord, UrlState
from larmspider.frontier.strategies import BreadthFirst
from larmspider.index.access import Access
from larmspider.index.writer import IndexWriter
from larmspider.items import Page
from larmspider.middlewares.url_filter import UrlFilter
from larmspider.pipelines.fetch_log import BY_KIND
from larmspider.pipelines.outbox.receiver import AwayError, Sent
from larmspider.reports.explain import filters
from larmspider.search import operators, query, ranking
from larmspider.search.request import SearchRequest
from larmspider.search.searcher import Searcher
from larmspider.urls import media_types
from tests.support import spooled
from tests.support.crawling import FAST, Ran, crawl, scrapy
from tests.support.frontier.memory_backend import Disk, MemoryBackend
from tests.support.servers.scripted import ScriptedServer

DOCS = Path(__file__).parents[1] / "docs"
SETTINGS = [name for name in options.defaults() if name.startswith("LARM_")]
STATS = sorted(
    value for name, value in vars(stats).items() if name.isupper() and isinstance(value, str)
)


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.name)
def test_the_reference_is_up_to_date(page: Path) -> None:
    """docs/settings.md and docs/stats.md are what ``make docs`` writes."""
    assert page.read_text("utf-8") == pages()[page]


def test_every_setting_has_a_row() -> None:
    """Each LARM_ setting, and no other one is named."""
    text = (DOCS / "settings.md").read_text("utf-8")
    assert sorted(re.findall(r"^\| `(LARM_\w+)` \|", text, re.MULTILINE)) == sorted(SETTINGS)
    assert set(re.findall(r"`(LARM_[A-Z0-9_]+)`", text)) == set(SETTINGS)


def test_documented_defaults_are_taken_on_the_command_line() -> None:
    """As they stand there, lists among them; not what is read from elsewhere, or not set."""
    text = (DOCS / "settings.md").read_text("utf-8")
    rows = re.findall(r"^\| `(\w+)` \| `(.*?)` \|", text, re.MULTILINE)
    computed = re.compile(r"None|[a-z]+\(|os\.|f\"")
    settings = Settings()
    written = {name: default for name, default in rows if not computed.match(default)}
    assert {"LARM_DENY_ADDRESSES", "LARM_COLLECTIONS", "LARM_DOCUMENT_BYTES"} < set(written)
    for name, default in written.items():
        settings.set(name, default if default[0] in "[{" else default.strip('"'), "cmdline")
        assert options.typed(settings, name) == options.defaults()[name], name


@pytest.mark.parametrize("given", [
    "10.0.0.0/8, fe80::/10", '["10.0.0.0/8", "fe80::/10"]', ' [ "10.0.0.0/8","fe80::/10" ]',
    ["10.0.0.0/8", "fe80::/10"],
])  # fmt: skip
def test_a_list_on_the_command_line(given: object) -> None:
    settings = Settings({"LARM_DENY_ADDRESSES": given})
    assert options.strings(settings, "LARM_DENY_ADDRESSES") == ["10.0.0.0/8", "fe80::/10"]


def test_lists_that_are_none() -> None:
    """A word in brackets is an address of IPv6, or a pattern, and no list."""
    for given, expected in (("", []), ("[]", []), ("[::1],[a-c]*", ["[::1]", "[a-c]*"])):
        assert options.strings(Settings({"LARM_WEB_HOSTS": given}), "LARM_WEB_HOSTS") == expected
    with pytest.raises(ConfigError, match=r"LARM_WEB_HOSTS=\[1\]: expected a list of strings"):
        options.strings(Settings({"LARM_WEB_HOSTS": "[1]"}), "LARM_WEB_HOSTS")


def test_every_stats_key_has_a_row() -> None:
    text = (DOCS / "stats.md").read_text("utf-8")
    assert sorted(re.findall(r"^\| `(larm/[^`]+)` \|", text, re.MULTILINE)) == STATS


def test_every_extra_has_a_row() -> None:
    """The table of docs/server.md, and its line about those for developers."""
    text = (DOCS / "server.md").read_text("utf-8")
    table, _, line = text[text.index("| extra | for |") :].partition("\n\n")
    rows = re.findall(r"^\| (`.*?`) \|", table, re.MULTILINE)
    named = re.findall(r"`([a-z-]+)`", " ".join([*rows, line.splitlines()[0]]))
    project = tomllib.loads((DOCS.parent / "pyproject.toml").read_text("utf-8"))["project"]
    assert sorted(named) == sorted(project["optional-dependencies"])


def test_every_result_of_fetch_log_is_documented() -> None:
    """Each word that stands there where there was no response, or its status is no answer."""
    row = re.search(r"^\| result \|.*$", (DOCS / "formats.md").read_text("utf-8"), re.MULTILINE)
    assert row is not None
    words = KINDS.keys() | {"error"} | SOUND | BY_KIND
    assert words == set(re.findall(r"`([a-z0-9-]+)`", row[0]))


EXAMPLES = re.findall(
    r"^```python\n(.*?)^```$",
    (DOCS.parent / "CONTRIBUTING.md").read_text("utf-8"),
    re.MULTILINE | re.DOTALL,
)
"""CONTRIBUTING.md's, in the order of the page."""
(
    DRAFTS, LANGUAGE_LOG, SHELF, GUIDE_SETTINGS, SUBTITLES, FORMATS_LINE, YEAR, SLOW_HOSTS, BOARDS,
    BOARD_SETTINGS,
) = EXAMPLES  # fmt: skip


def test_the_format_of_the_guide_is_read(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """By the list of formats, as any other."""
    (tmp_path / "subtitles_example.py").write_text(SUBTITLES, "utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    mime, names, module = eval(FORMATS_LINE, {"_APART": ""})
    assert len(media_types.FORMATS[0]) == len((mime, names, module))
    monkeypatch.setitem(media_types._READERS, mime, f"{module}_example")
    monkeypatch.setitem(media_types._BY_EXTENSION, names, mime)
    body = b"1\r\n00:00:01,000 --> 00:00:02,500\r\nTides: http://h/tides\r\n"
    assert formats.media_type("text/plain", body, "/talk.srt") == "text/plain"
    textual = {*body_type.TEXTUAL, f"{module}_example"}
    monkeypatch.setattr(body_type, "TEXTUAL", textual)
    monkeypatch.setattr(body_type, "PLAIN_NAMES", {*body_type.PLAIN_NAMES, mime})
    for said in ("", "application/octet-stream", "text/plain", mime):
        assert formats.media_type(said, body, "/talk.srt") == mime
    page = parts.read(mime, body, "http://h/talk.srt", None)
    links = [link.url for link in page.links]
    assert (page.text, links) == ("Tides: http://h/tides", ["http://h/tides"])
    with pytest.raises(Unread, match="no subtitles"):
        parts.read(mime, b"x", "http://h/talk.srt", None)


def test_the_operator_of_the_guide_finds_pages(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """By the list of operators, as any other."""
    code = dict(vars(operators))
    exec(YEAR, code)
    monkeypatch.setattr(ranking, "OPERATORS", {**operators.OPERATORS, "year": code["year"]})
    monkeypatch.setattr(query, "FIELDS", (*query.FIELDS, "year"))
    with IndexWriter(tmp_path) as writer:
        for year, fetched in ((2023, 1_700_000_000.0), (2024, 1_720_000_000.0)):
            url = f"http://h/{year}"
            writer.add(Page(url, normalized=url, text="tide", body=b"%d" % year, fetched=fetched))
        writer.commit()
    searcher = Searcher.open(tmp_path)
    found = {typed: [hit.url for hit in searcher.search(typed).hits]
             for typed in ("tide year:2024", "tide -year:2024", "tide year:2022",
                           "tide year:2024-02-29", "tide year:2023-12")}  # fmt: skip
    first, second = ["http://h/2023"], ["http://h/2024"]
    assert [*found.values()] == [second, first, [], second, first]


def test_the_filter_of_the_guide_does_something() -> None:
    """No other filter has rejected its URLs before."""
    code: dict[str, object] = {"__name__": "example"}
    exec(DRAFTS, code)
    drafts = code["DraftsFilter"]
    assert isinstance(drafts, type)
    assert issubclass(drafts, UrlFilter)
    drafts.check()
    url = "http://h/drafts/plan.html"
    assert drafts().reject_reason(url) == "a draft"
    settings = Settings()
    settings.setmodule("larmspider.settings")
    for url_filter in filters(settings, ["http://h/"]):
        assert url_filter.reject_reason(url) is None, url_filter.name


def test_the_examples_of_the_guide_work_in_a_crawl(
    scripted_server: Callable[..., ScriptedServer], tmp_path: Path
) -> None:
    """As they stand, by a settings module of their own: drafts are rejected, languages logged, and
    the receiver gets each page."""
    files = {"drafts": DRAFTS, "language_log": LANGUAGE_LOG, "shelf": SHELF}
    for name, code in (files | {"guide_settings": GUIDE_SETTINGS}).items():
        (tmp_path / f"{name}.py").write_text(code)
    html = {"Content-Type": "text/html"}
    bodies = [b"<html lang=de><a href=/a>a</a><a href=/drafts/b>b</a>", b"<html lang=en>a"]
    server = scripted_server({"/": (200, html, bodies[0]), "/a": (200, html, bodies[1])})
    settings = [option for name, value in FAST.items() for option in ("-s", f"{name}={value}")]
    settings += ["-s", "LARM_OUTBOX_END_SECS=300"]  # a busy machine may take long to start a sender
    start = ["-a", f"start={server.url('/')}"]
    ran = scrapy(
        "crawl", "intranet", *start, *settings, cwd=tmp_path, settings_module="guide_settings"
    )
    assert ran.status == 0, ran.err
    assert "'larm/drafts/rejected': 1" in ran.err
    written = (tmp_path / "crawl" / "languages.log").read_text("utf-8")
    assert written == f"{server.url('/')}\tde\n{server.url('/a')}\ten\n"
    shelf = {path.name: path.read_bytes() for path in (tmp_path / "shelf").iterdir()}
    assert shelf == {sha1(body).hexdigest(): body for body in bodies}


@pytest.mark.acceptance
def test_the_connector_of_the_guide_reads_documents_and_rights(tmp_path: Path) -> None:
    """As it stands: two cards, of which one changes its readers between two runs, and a board that
    is away."""
    (tmp_path / "boards.py").write_text(BOARDS)
    (tmp_path / "board_settings.py").write_text(BOARD_SETTINGS)
    (tmp_path / "boards").mkdir()
    board = tmp_path / "boards" / "team.json"
    cards = {
        "tides": {"text": "harbour at noon", "time": 1_700_000_000, "readers": ["group:hr"]},
        "plan": {"text": "harbour plan", "time": 1_700_000_000, "readers": ["everyone"]},
    }
    board.write_text(json.dumps(cards))

    def found_by(group: str) -> set[str]:
        whole = Searcher.open(tmp_path / "crawl" / "index")
        seen = whole.seen_by(
            Access(("file://",), (), frozenset({EVERYONE, AUTHENTICATED, f"group:{group}"}))
        )
        return {hit.url for hit in seen.search(SearchRequest("harbour", 10)).hits}

    def run(**arguments: str) -> Ran:
        return crawl(
            "board://team/", tmp_path, settings_module="board_settings", LARM_HOST_MAX_PARKS="0",
            **arguments,
        )  # fmt: skip

    assert run().status == 0
    assert found_by("hr") == {"board://team/tides", "board://team/plan"}
    assert found_by("it") == {"board://team/plan"}
    cards["tides"]["readers"] = ["group:it"]
    board.write_text(json.dumps(cards))
    assert run(refresh="all").status == 0
    assert found_by("it") == {"board://team/tides", "board://team/plan"}
    board.unlink()
    assert "is the share mounted?" in run(refresh="all").err
    assert found_by("it") == {"board://team/tides", "board://team/plan"}
    refused = crawl("board://team/x", tmp_path, settings_module="board_settings", fresh="force")
    assert refused.status == 2
    assert "start=board://team/x: expected a board, as board://team/" in refused.err


def test_the_receiver_of_the_guide_refuses_and_forgets(tmp_path: Path) -> None:
    """A page without a digest is rejected, a removal is no page, and a folder that cannot be made
    is a receiver that is away."""
    code: dict[str, Any] = {"__name__": "example"}
    exec(SHELF, code)
    receiver = code["ShelfReceiver"].from_settings(Settings({"SHELF": str(tmp_path / "shelf")}))
    receiver.connect()
    items = spooled.page("a"), spooled.removed("b"), spooled.page("c", digest="c0")
    sent = receiver.send(spooled.entries(tmp_path / "crawl", *items))
    assert sent == Sent({0: "no digest"})
    assert [path.name for path in receiver.folder.iterdir()] == ["c0"]
    (tmp_path / "file").touch()
    receiver.folder = tmp_path / "file" / "shelf"
    with pytest.raises(AwayError):
        receiver.connect()


def test_the_part_of_the_guide_keeps_what_it_learns() -> None:
    """Over two runs of one frontier."""
    code: dict[str, Any] = {"__name__": "example"}
    exec(SLOW_HOSTS, code)
    disk, rules = Disk(), HostRules([], HostPace(delay=0.0))
    for seconds, longest in ((0.5, 0.5), (0.2, 0.5), (0.9, 0.9)):
        frontier = Frontier(
            MemoryBackend(disk),
            Politeness(Limits(), rules, lambda: 0.5),
            BreadthFirst(),
            SlotPool(4),
            parts=lambda frontier: [code["SlowHosts"](frontier.notes)],
        )
        frontier.recover()
        url = f"http://wiki/{seconds}"
        frontier.add([frontier.entry(url, url)])
        frontier.politeness.limits = Limits(response_factor=0.0)
        frontier.hosts["wiki:80"].record.next_time = 0.0
        frontier.reschedule(frontier.hosts["wiki:80"])
        lease = frontier.pop()
        assert lease is not None
        frontier.answered(lease, seconds)
        frontier.acknowledge(lease, FetchRecord(UrlState.STORED, status=200))
        frontier.checkpoint({})
        note = code["Slowest"].unpack(frontier.backend.note("slow wiki:80"))
        assert note.seconds == longest


def test_no_stats_key_is_written_out_in_the_code() -> None:
    """Keys are constants of stats.py, so that the docs cannot miss one."""
    for path in (DOCS.parent / "larmspider").rglob("*.py"):
        if path.name != "stats.py":
            assert '"larm/' not in path.read_text("utf-8"), path


STEPS = re.findall(
    r"^ +([\w/]+\.py): (\w+(?:\(\), \w+)*)(?:\(\))?(?= |$)",
    (DOCS.parent / "ARCHITECTURE.md").read_text("utf-8"),
    re.MULTILINE,
)
"""The files of its pictures that name the functions, or the class, that run."""


@pytest.mark.parametrize(("path", "named"), STEPS)
def test_a_picture_names_what_exists(path: str, named: str) -> None:
    source = (DOCS.parent / "larmspider" / path).read_text("utf-8")
    for name in named.split("(), "):
        assert re.search(rf"^ *(?:async )?(?:def|class) {name}\b", source, re.MULTILINE), name


def test_the_picture_has_each_filter_in_order() -> None:
    """As the settings list them, with the helpers beside them left out."""
    text = (DOCS.parent / "ARCHITECTURE.md").read_text("utf-8")
    picture = text[text.index("    filters, in this order") : text.index("    queue\n")]
    shown = re.findall(r"^ {6}middlewares/(\w+)\.py", picture, re.MULTILINE)
    settings = Settings()
    settings.setmodule("larmspider.settings")
    numbers = settings.getdict("SPIDER_MIDDLEWARES")
    paths = sorted((path for path, at in numbers.items() if at), key=lambda p: -numbers[p])
    modules = [path.split(".")[-2] for path in paths if path.startswith("larmspider.middlewares")]
    others = {"sources", "revisits", "copies", "acknowledge"}
    assert shown == [name for name in modules if name not in others]


PAGES = [*DOCS.parent.glob("*.md"), *DOCS.rglob("*.md"), *DOCS.parent.glob("benchmarks/*.md")]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    """To files that there are, and headings in them."""
    for target in re.findall(r"\]\((?!https?:)([^)\s]+)\)", page.read_text("utf-8")):
        path, _, heading = target.partition("#")
        linked = page.parent / path if path else page
        assert linked.exists(), target
        headings = (
            re.findall(r"^#+ (.+)$", linked.read_text("utf-8"), re.MULTILINE) if heading else []
        )
        slugs = {re.sub(r"[^\w\- ]", "", text).lower().replace(" ", "-") for text in headings}
        assert not heading or heading in slugs, target


@pytest.mark.parametrize("page", [page for page in PAGES if page.name != "CHANGELOG.md"])
def test_modules_that_are_named_exist(page: Path) -> None:
    """By their path, or the end of it."""
    project = DOCS.parent
    files = [
        path
        for top in project.iterdir()
        if top.is_dir() and top.name[0] != "."
        for path in top.rglob("*.py")
    ]
    known = {"/" + path.relative_to(project).as_posix() for path in files} | {"/setup.py"}
    examples = {"drafts.py", "language_log.py", "shelf.py", "subtitles.py", "slow_hosts.py"}
    examples |= {"boards.py", "mine.py"}
    examples |= {f"larmspider/plugins/languages/{name}.py" for name in ("__init__", "store")}
    for name in set(re.findall(r"[\w/]+\.py\b", page.read_text("utf-8"))) - examples:
        assert any(path.endswith(f"/{name}") for path in known), name


def test_pages_that_the_code_names_exist() -> None:
    """Such as docs/internals/performance.md, in any text file of the project."""
    project = DOCS.parent
    for top in ("larmspider", "tests", "benchmarks", "deploy", "examples"):
        for path in (project / top).rglob("*"):
            if path.suffix in {".py", ".conf", ".yaml", ".service", ".lua", ".sh"}:
                for name in re.findall(r"\bdocs/[a-z-]+\.md", path.read_text("utf-8")):
                    assert (project / name).exists(), f"{path}: {name}"
