"""Hosts with a login in whole crawls: all pages, and nothing that acts."""

from __future__ import annotations

import re
import signal
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest

from larmspider.crawl.api import open_crawl
from tests.support.crawling import FAST, begin, crawl_with, records, scrapy, stored
from tests.support.servers.application import Application
from tests.support.servers.django_admin import DjangoAdmin
from tests.support.servers.scripted import Reply, Request, ScriptedServer
from tests.support.servers.signed_in import SignedInSite
from tests.support.servers.wikis import DokuWiki, MediaWiki
from tests.support.web.serving import Served

pytestmark = pytest.mark.acceptance
Start = Callable[..., ScriptedServer]
LINKS = (
    "<a href=/logout>out</a> <a href=/p1/delete>x</a> <a href='/p2?action=remove'>x</a>"
    "<a href=/p3 data-method=delete>x</a>"
)
PAGES = {
    "/": "<title>start</title>" + "".join(f"<a href=/p{n}>{n}</a> " for n in range(12)) + LINKS,
    **{
        f"/p{n}": f"<title>page {n}</title>the text of page {n} <a href=/p{n}/edit>edit</a>"
        for n in range(12)
    },
}
TITLES = {"/": "start"} | {f"/p{n}": f"page {n}" for n in range(12)}


def table(server: ScriptedServer, site: SignedInSite) -> str:
    return f'[[site]]\nhosts = "http://127.0.0.1:{server.port}"\n{site.toml}'


def all_bytes(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


@pytest.mark.parametrize("connections", [1, 4])
def test_all_pages_and_nothing_done(
    scripted_server: Start, tmp_path: Path, connections: int
) -> None:
    """One attempt; no secret, cookie or token of the form is in a log or in the directory."""
    site = SignedInSite(PAGES)
    server = scripted_server({"*": site.answer})
    ran = crawl_with(
        table(server, site),
        server.url(),
        tmp_path,
        CONCURRENT_REQUESTS_PER_DOMAIN=str(connections),
        LOG_LEVEL="DEBUG",
        LARM_FILTER_LOGS="yes",
    )
    assert ran.status == 0
    assert stored(tmp_path) == TITLES
    assert site.changed == []
    assert site.forms == 1
    written = all_bytes(tmp_path / "crawl") + ran.out.encode() + ran.err.encode()
    assert [secret for secret in (site.word, *site.given) if secret.encode() in written] == []
    log = (tmp_path / "crawl" / "KnownPathsFilter.log").read_text()
    assert re.search(r"/p1/delete\treject\tacts on a host with a login: \"delete\" in", log)
    explained = scrapy("explain", server.url("/p7/edit"), cwd=tmp_path)
    assert 'acts on a host with a login: "edit" in the path' in explained.out


def test_nobody_else_sees_it(scripted_server: Start, tmp_path: Path) -> None:
    """Pages behind a login are as those behind a password."""
    site = SignedInSite(PAGES)
    server = scripted_server({"*": site.answer})
    crawl_with(table(server, site), server.url(), tmp_path)
    assert (tmp_path / "crawl").stat().st_mode & 0o777 == 0o700
    manifest = (tmp_path / "crawl" / "crawl.json").read_text()
    assert f"http://127.0.0.1:{server.port}" in manifest.split('"credentials"')[1]


@pytest.mark.parametrize(
    "change, reason",
    [
        ({"word": "other"}, "login refused: the form came back: wrong user or password?"),
        ({"check": "Welcome"}, "login not proved: after the form came not the text of login_check"),
        ({"fields": "name"}, "login at /login: no form with the fields name, word"),
    ],
)
def test_a_login_that_fails(
    scripted_server: Start, tmp_path: Path, change: dict[str, str], reason: str
) -> None:
    """The host waits, with the reason; nothing is stored and nothing lost."""
    site = SignedInSite(PAGES)
    server = scripted_server({"*": site.answer})
    text = table(server, site)
    text = text.replace(site.word, change.get("word", site.word))
    text = text.replace("Signed in as joe", change.get("check", "Signed in as joe"))
    text = text.replace("{ user", f"{{ {change.get('fields', 'user')}")
    ran = crawl_with(text, server.url(), tmp_path, LARM_SEED_PATIENCE_SECS="2")
    assert ran.status == 1
    assert reason in ran.err
    assert stored(tmp_path) == {}
    with Served(tmp_path / "crawl") as served:
        assert reason.partition(":")[0] in served.get("/").body.decode(), "on the overview"
    explained = scrapy("explain", server.url(), cwd=tmp_path)
    assert reason.partition(":")[0] in explained.out
    again = crawl_with(table(server, site), server.url(), tmp_path)
    assert again.status == 0
    assert stored(tmp_path) == TITLES


def test_the_password_changes_midway(scripted_server: Start, tmp_path: Path) -> None:
    """All sessions end, and the crawl does not know the new password: stored pages stay, queued
    URLs wait. A run with the new one stores the rest."""
    site = SignedInSite(PAGES)

    def answer(request: Request) -> Reply:
        if request.path == "/p6" and site.word == "canary-41aa":
            site.word = "canary-other"
            site.sessions.clear()
        return site.answer(request)

    server = scripted_server({"*": answer})
    text = table(server, site)
    waits = r"Host 127.0.0.1:\d+ waits: login expired, soon after it was made"
    settings = {"CONCURRENT_REQUESTS_PER_DOMAIN": "1", "CLOSESPIDER_TIMEOUT": "4"}
    ran = crawl_with(text, server.url(), tmp_path, **settings)
    assert re.search(waits, ran.err)
    first = stored(tmp_path)
    assert 0 < len(first) < len(TITLES)
    assert first.items() <= TITLES.items()
    assert "login expired" in scrapy("hosts", cwd=tmp_path).out
    assert "login expired" in scrapy("explain", server.url("/p6"), cwd=tmp_path).out
    assert [
        one for one in records(tmp_path / "crawl" / "fetch.log") if one["result"] == "login"
    ] == []
    assert site.changed == []


def test_a_page_that_is_for_others(scripted_server: Start, tmp_path: Path) -> None:
    """It shows the form to everybody: it fails, and holds no other page up."""
    site = SignedInSite(PAGES)

    def answer(request: Request) -> Reply:
        return Reply(302, {"Location": "/login"}) if request.path == "/p4" else site.answer(request)

    server = scripted_server({"*": answer})
    ran = crawl_with(table(server, site), server.url(), tmp_path)
    assert ran.status == 0
    assert stored(tmp_path) == {url: title for url, title in TITLES.items() if url != "/p4"}
    failed = [one for one in records(tmp_path / "crawl" / "fetch.log") if one["result"] == "login"]
    assert [one["url"] for one in failed] == [server.url("/p4")]
    assert site.forms == 1


def test_what_was_queued_before_is_checked_again(scripted_server: Start, tmp_path: Path) -> None:
    """A crawl that continues with a login does not fetch URLs that act, even if they are queued."""
    pages = {"/": "<a href=/p1/delete>x</a>", "/p1": "<title>page</title>"}
    site = SignedInSite(pages)
    server = scripted_server({"/": pages["/"], "*": Reply(503)})
    crawl_with("", server.url(), tmp_path, CLOSESPIDER_PAGECOUNT="1", LARM_SEED_PATIENCE_SECS="2")
    server.routes.clear()
    server.routes["*"] = site.answer
    crawl_with(table(server, site), server.url(), tmp_path)
    assert site.changed == []


def test_a_refresh_signs_in_and_keeps_what_it_has(scripted_server: Start, tmp_path: Path) -> None:
    """With a wrong password no page is visited again, and none is overwritten or taken out."""
    site = SignedInSite(PAGES)
    server = scripted_server({"*": site.answer})
    text = table(server, site)
    crawl_with(text, server.url(), tmp_path)
    site.pages["/p1"] = "<title>changed</title>another text"
    crawl_with(text.replace(site.word, "wrong"), server.url(), tmp_path, refresh="all")
    assert stored(tmp_path) == TITLES
    assert site.forms == 2
    ran = crawl_with(text, server.url(), tmp_path, refresh="all")
    assert ran.status == 0
    assert stored(tmp_path) == TITLES | {"/p1": "changed"}
    assert site.forms == 3
    assert site.changed == []


WORD = "canary-of-the-crawler-7"
WIKI = (
    'login = "/doku.php?id=start&do=login"\nlogin_check = "Logged in as"\n'
    f'login_fields = {{ u = "crawler", p = "{WORD}" }}\n'
)
REAL = {
    DokuWiki: (WIKI, "/.*", "crawler"),
    MediaWiki: (
        'login = "/index.php?title=Special:UserLogin"\nlogin_check = "Log out"\n'
        f'login_fields = {{ wpName = "Crawler", wpPassword = "{WORD}" }}\n',
        "/.*",
        "Crawler",
    ),
    DjangoAdmin: (
        'login = "/admin/login/"\nlogin_check = "Log out"\n'
        f'login_fields = {{ username = "crawler", password = "{WORD}" }}\n',
        "/admin/(|logout/|library/.*)",
        "crawler",
    ),
}
"""Keys of the sites file, what is to be crawled (the administration lists its users in a thousand
ways), and who signs in."""


def started(kind: type[DokuWiki | MediaWiki | DjangoAdmin]) -> DokuWiki | MediaWiki | DjangoAdmin:
    app = kind(30, users={REAL[kind][2]: WORD})
    if app.missing():
        pytest.skip(f"needs {' '.join(app.packages)}")
    return app


def shown(app: Application, cwd: Path) -> set[str]:
    """Documents that are stored."""
    found = {url for url, title in stored(cwd).items() if not title[:1].isdigit()}
    return {app.document_of(app.url(url)) for url in found} - {""}


@pytest.mark.parametrize("kind", REAL)
def test_real_applications(kind: type[DokuWiki | MediaWiki | DjangoAdmin], tmp_path: Path) -> None:
    """All that the application lists is stored, and by its own log the crawl changed nothing, and
    did not sign out."""
    keys, restrict, _ = REAL[kind]
    with started(kind) as app:
        text = f'[[site]]\nhosts = "http://127.0.0.1:{app.port}"\n{keys}'
        ran = crawl_with(
            text,
            app.seed,
            tmp_path,
            restrict=re.escape(app.url("")) + restrict,
            LARM_MAX_PAGES="300",
            LOG_LEVEL="DEBUG",
        )
        assert ran.status == 0
        assert app.changes() == []
        assert app.documents() - shown(app, tmp_path) == set()
        assert "'larm/login/made': 1" in ran.err
        written = all_bytes(tmp_path / "crawl") + ran.err.encode()
        assert WORD.encode() not in written
        if isinstance(app, DokuWiki):
            ids = [one.name[5:] for one in (app.folder / "sessions").glob("sess_*")]
            assert ids
            assert not [one for one in ids if one.encode() in written]
            links = (tmp_path / "crawl" / "links.log").read_text()
            assert "&do=logout&sectok=***" in links
            assert not re.search(r"sectok=[0-9a-f]", links)
        if isinstance(app, DjangoAdmin):
            assert app.sessions() == 1, "and the crawl has not signed out"


def test_the_password_of_a_real_wiki_changes_midway(tmp_path: Path) -> None:
    """Stored pages stay as they are, the host waits with the reason, also in a run with the old
    password; a run with the new password stores the rest."""
    with started(DokuWiki) as wiki:
        assert isinstance(wiki, DokuWiki)
        text = f'[[site]]\nhosts = "http://127.0.0.1:{wiki.port}"\n{WIKI}'
        (tmp_path / "sites.toml").write_text(text)
        words = ["crawl", "intranet", "-a", f"start={wiki.seed}"]
        settings = FAST | {"DOWNLOAD_DELAY": "0.1", "LARM_CHECKPOINT_SECS": "0.2"}
        settings |= {"LARM_SITES_FILE": str(tmp_path / "sites.toml")}
        words += [word for pair in settings.items() for word in ("-s", "=".join(pair))]
        with (tmp_path / "log").open("w") as out:
            process = begin(*words, cwd=tmp_path, out=out)
            until(lambda: len(stored_so_far(tmp_path)) >= 8)
            wiki.set_password("crawler", "another")
            until(lambda: "login expired" in (tmp_path / "log").read_text())
            process.send_signal(signal.SIGTERM)
            assert process.wait(60) == 0
        before = shown(wiki, tmp_path)
        titles = stored(tmp_path)
        assert 0 < len(before) < len(wiki.documents())
        assert "login expired" in scrapy("hosts", cwd=tmp_path).out
        assert "waits       127.0.0.1:" in (tmp_path / "log").read_text(), "in the summary"
        ran = crawl_with(text, wiki.seed, tmp_path)
        assert stored(tmp_path) == titles
        assert "waits       127.0.0.1:" in ran.out
        assert "login refused: the form came back" in ran.out
        links = (one["to-page"] for one in records(tmp_path / "crawl" / "links.log"))
        left = (one for one in links if wiki.document_of(one) in wiki.documents() - before)
        explained = scrapy("explain", next(left), cwd=tmp_path).out
        assert "login refused: the form came back" in explained
        ran = crawl_with(text.replace(WORD, "another"), wiki.seed, tmp_path)
        assert ran.status == 0
        assert shown(wiki, tmp_path) == wiki.documents()
        assert wiki.changes() == []


def stored_so_far(cwd: Path) -> list[str]:
    log = cwd / "crawl" / "store.log"
    return log.read_text().splitlines() if log.exists() else []


def until(holds: Callable[[], bool]) -> None:
    last = time.monotonic() + 90
    while not holds():
        assert time.monotonic() < last
        time.sleep(0.05)


def test_each_worker_signs_in_to_its_hosts(tmp_path: Path) -> None:
    sites = [SignedInSite(PAGES) for _ in range(4)]
    servers = [
        ScriptedServer({"*": site.answer}, f"127.0.7.{n}") for n, site in enumerate(sites, 1)
    ]
    with ExitStack() as running:
        for server in servers:
            running.enter_context(server)
        tables = "".join(
            f'[[site]]\nhosts = "http://{server.host}:{server.port}"\n{site.toml}'
            for server, site in zip(servers, sites, strict=True)
        )
        (tmp_path / "sites.toml").write_text(tables)
        settings = FAST | {"LARM_SITES_FILE": str(tmp_path / "sites.toml"), "LARM_BLOCKS": "8"}
        words = [word for pair in settings.items() for word in ("-s", "=".join(pair))]
        start = " ".join(server.url() for server in servers)
        ran = scrapy("workers", "-n", "2", "-a", f"start={start}", *words, cwd=tmp_path)
    assert ran.status == 0, ran.err
    found = sorted(page.url for page in open_crawl(tmp_path / "crawl").pages())
    assert len(found) == len(set(found)) == len(servers) * len(TITLES)
    assert all(1 <= site.forms <= 2 for site in sites), "once by each worker that had the host"
    assert [site.changed for site in sites] == [[]] * len(sites)


@pytest.mark.parametrize("who", ["itself", "another host"])
def test_no_sitemap_that_acts_is_asked(scripted_server: Start, tmp_path: Path, who: str) -> None:
    """No robots.txt can name one, neither the host's own nor another's. A harmless one is asked."""
    site = SignedInSite(PAGES | {"/map.xml": "<urlset/>"})
    signed_in = scripted_server({"*": site.answer}, "127.31.5.1")
    named = "".join(f"Sitemap: {signed_in.url(path)}\n" for path in ("/p1/delete", "/map.xml"))
    robots = Reply(200, {"Content-Type": "text/plain"}, named.encode(), delay=2.0)
    other = scripted_server({"/": "other", "/robots.txt": robots}, "127.31.5.2")
    if who == "itself":
        signed_in.routes["/robots.txt"] = Reply(200, {"Content-Type": "text/plain"}, robots.body)
    rule = f'[[site]]\nhosts = "http://127.31.5.1:{signed_in.port}"\n{site.toml}'
    seeds = signed_in.url() if who == "itself" else f"{signed_in.url()} {other.url()}"
    ran = crawl_with(rule, seeds, tmp_path, LARM_SITEMAPS="yes", DOWNLOAD_DELAY="0.4")
    assert ran.status == 0, ran.err
    assert signed_in.requests("/map.xml")
    assert site.changed == []
    assert "/p1/delete: scope, 0 URLs" in ran.err
