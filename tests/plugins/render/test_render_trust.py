"""A rendered page tries to read other servers, with Debian's Chromium. It gets nothing that the
crawl's credentials open, unless the operator has said so."""

from __future__ import annotations

import base64
import json
import shutil
import ssl
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from larmspider.index.access import Access
from larmspider.search.searcher import Searcher
from larmspider.workdir.restricted import restricted_hosts
from tests.support.crawling import FAST, Ran, records
from tests.support.other_user import scrapy_as_other
from tests.support.servers.certificate import Authority
from tests.support.servers.prying import HTML, Closed, Prying
from tests.support.servers.scripted import Reply, Request, ScriptedServer
from tests.support.servers.signed_in import SignedInSite

pytestmark = [
    pytest.mark.acceptance,
    pytest.mark.skipif(shutil.which("chromium") is None, reason="needs chromium"),
]
AWHILE = 3.0
"""Seconds after which a page is there that asks another host: the crawl has met that by then."""
WORDS = {"basic": "wordofbasic", "login": "wordoflogin", "header": "wordofheader",
         "cookie": "wordofcookie", "client": "wordofclient", "open": "wordofopen"}  # fmt: skip
JOE = "Basic " + base64.b64encode(b"joe:canary").decode()
OWN = """<title>own</title><p>Application<div id=o></div><script>
const add = promise => promise.then(r => r.text()).then(t => o.append(t + ' '), () => 0);
add(fetch('%(api)s/data.json'));
add(fetch('%(api)s/data.json?2', {credentials: 'include'}));
add(fetch('/data.json'));
</script>"""


@dataclass(frozen=True)
class Pried:
    """A crawl of all hosts of this file; ``servers`` by what they ask for."""

    servers: Mapping[str, ScriptedServer]
    prying: Prying
    folder: Path
    ran: Ran

    def found(self, word: str, **which: object) -> list[str]:
        """URLs of pages that have the word, for a searcher without any rights."""
        manifest = json.loads((self.folder / "crawl/crawl.json").read_text())
        searcher = Searcher.open(self.folder / "crawl/index")
        if not which.get("everybody", True):
            return [hit.url for hit in searcher.search(word).hits]
        limited = searcher.seen_by(Access(restricted_hosts([manifest])))
        return [hit.url for hit in limited.search(word).hits]


@pytest.fixture(scope="module")
def pried(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pried]:
    folder = tmp_path_factory.mktemp("pried")
    authority = Authority(folder)
    tls = authority.context("127.71.0.5")
    tls.verify_mode = ssl.CERT_REQUIRED
    tls.load_verify_locations(authority.ca)
    certificate, key = authority.issue("crawler")
    site = SignedInSite({"/": f"<title>{WORDS['login']}</title><p>inside"})

    def session(request: Request) -> bool:
        return any(f"id={one}" in request.headers.get("cookie", "") for one in site.sessions)

    behind = Closed(WORDS["login"], session)
    closed = {
        "basic": Closed(WORDS["basic"], lambda one: one.headers.get("authorization") == JOE),
        "header": Closed(WORDS["header"], lambda one: one.headers.get("x-key") == "canary"),
        "cookie": Closed(
            WORDS["cookie"], lambda one: "sid=canary" in one.headers.get("cookie", "")
        ),
        "client": Closed(WORDS["client"], lambda _: True),
    }

    def login(request: Request) -> Reply:
        return (behind if "." in request.path else site).answer(request)

    def api(request: Request) -> Reply:
        if request.path == "/robots.txt":
            return Reply(404)
        may = request.headers.get("authorization") == JOE
        cors = {"Content-Type": "application/json", "Access-Control-Allow-Credentials": "true"}
        if request.headers.get("origin") == servers["own"].url()[:-1]:
            cors["Access-Control-Allow-Origin"] = request.headers["origin"]
        return Reply(200 if may else 401, cors, b'"wordofapi"' if may else b"no")

    def shared(request: Request) -> Reply:
        if request.path == "/robots.txt":
            return Reply(404)
        return Reply(200, {"Access-Control-Allow-Origin": "*", "Content-Type": "application/json"},
                     json.dumps(WORDS["open"]).encode())  # fmt: skip

    def own(request: Request) -> Reply:
        if request.path != "/":
            return Reply(200, {"Content-Type": "text/plain"}, b"wordofown")
        page = OWN % {"api": servers["api"].url()[:-1]}
        return Reply(200, HTML, page.encode(), delay=AWHILE)

    with ExitStack() as running:
        routes = {name: one.answer for name, one in closed.items()} | {"login": login, "api": api}
        routes |= {"open": shared, "own": own}
        servers = {
            name: running.enter_context(
                ScriptedServer(
                    {"*": route}, f"127.71.0.{number}", tls=tls if name == "client" else False
                )
            )
            for number, (name, route) in zip((2, 3, 4, 5, 6, 7, 8, 9), routes.items(), strict=True)
        }
        seeds = " ".join(one.url() for one in servers.values())
        prying = Prying([one.url()[:-1] for name, one in servers.items() if name != "own"])
        servers["prying"] = running.enter_context(
            ScriptedServer({"*": prying.answer}, "127.71.0.1")
        )
        # so that the other hosts are met before, and the script of this one is kept
        opaque = f"fetch('{servers['basic'].url('/closed.json?opaque')}')"
        closed["basic"].more = (
            f"<a href={servers['prying'].url()}>go</a><script>fetch('/closed.json?own');"
            f'new Worker("data:text/javascript,{opaque}")</script>'
            f'<iframe src="data:text/html,<script>{opaque}</script>"></iframe>'
            f'<iframe sandbox=allow-scripts src="/sandboxed"></iframe>'
        )
        servers["basic"].routes["/sandboxed"] = "<script>fetch('/closed.json?framed')</script>"
        at = {name: f"{one.host}:{one.port}" for name, one in servers.items()}
        basic = 'auth = "basic"\nuser = "joe"\npassword = "canary"\nscheme = "http"\n'
        tables = {
            "prying": "render = true\n",
            "basic": f"{basic}render = true\n",
            "login": site.toml + 'scheme = "http"\n',
            "header": 'headers = { X-Key = "canary" }\nscheme = "http"\n',
            "cookie": 'cookies = { sid = "canary" }\nscheme = "http"\n',
            "client": f'ca_file = "{authority.ca}"\nclient_cert = "{certificate}"\n'
            f'client_key = "{key}"\n',
            "api": basic,
            "own": f'render = true\nrender_origins = ["http://{at["api"]}"]\nscheme = "http"\n',
        }
        sites = folder / "sites.toml"
        sites.write_text(
            "".join(f'[[site]]\nhosts = "{at[name]}"\n{keys}' for name, keys in tables.items())
        )
        for path in folder.iterdir():
            path.chmod(0o644)
        settings = FAST | {
            "LARM_SITES_FILE": str(sites), "LARM_RENDER_SECS": "60",
            "LARM_RENDER_REQUESTS": "1000", "LOG_LEVEL": "DEBUG",
        }  # fmt: skip
        words = [word for pair in settings.items() for word in ("-s", "=".join(pair))]
        seeded = ("-a", f"start={seeds}", "-a", "restrict=.*")
        ran = scrapy_as_other("crawl", "intranet", *seeded, *words, cwd=folder)
        if ran.status == 2 and "does not start with its sandbox" in ran.err:
            pytest.skip("Chromium does not start in its sandbox here")
        yield Pried(servers, prying, folder, ran)


EMBEDDED = "/closed.json?14"
"""An object and an embed are links, too: the crawl visits their target once, as itself."""
OF_BASIC = ("own", "opaque", "framed")
"""Queries by which pages of the host with a password ask for its data."""
CLOSED = ("basic", "login", "header", "cookie", "client")


@pytest.mark.parametrize("name", [*CLOSED, "api"])
def test_a_rendered_page_learns_nothing_of_a_protected_host(pried: Pried, name: str) -> None:
    """Neither its server nor an anonymous searcher has the word; the crawl's own visit has."""
    word = WORDS.get(name, "wordofapi")
    assert pried.ran.status == 0, pried.ran.err
    asked = [one for one in pried.servers[name].log if "closed" in one.path or "back" in one.path]
    assert asked or name == "client", "or this test shows nothing"
    assert not [one for one in pried.prying.told if word in one]
    assert pried.found(word) == []
    assert pried.servers["prying"].url() not in pried.found(word, everybody=False)
    if name in CLOSED:
        assert pried.servers[name].url() in pried.found(word, everybody=False)


@pytest.mark.parametrize("name", [*CLOSED, "api"])
def test_nothing_secret_is_sent_for_a_rendered_page(pried: Pried, name: str) -> None:
    """A server that asks for a client certificate sees the crawl's visits alone."""
    data = {"/closed.json", "/closed.js", "/back", "/data.json"}
    asked = [one for one in pried.servers[name].log if one.path in data]
    asked = [one for one in asked if one.target.partition("?")[2] not in OF_BASIC]
    frames = pried.servers[name].requests("/closed.html")
    secrets = {"authorization", "cookie", "x-key"}
    with_secrets = [one for one in asked + frames if secrets & set(one.headers)]
    visits = [one for one in with_secrets if one.target == EMBEDDED]
    assert len(visits) == (name != "client")
    assert not any({"origin", "referer"} & set(one.headers) for one in visits)
    with_secrets = [one for one in with_secrets if one not in visits]
    by_its_own = {"/closed.js"} if name == "basic" else set()
    if name == "api":
        assert {one.path for one in with_secrets} == {"/data.json", "/closed.html"}
    elif name == "client":
        assert [one.target for one in asked] == [EMBEDDED]
    else:  # a frame is a link, too: the crawl has visited it
        assert {one.path for one in with_secrets} == {"/closed.html"} | by_its_own
        assert len([one for one in with_secrets if one.path in by_its_own]) == len(by_its_own)
        assert len(frames) > 1


def test_a_page_reads_its_own_host_and_what_it_confines_does_not(pried: Pried) -> None:
    """A data: worker, a data: frame and a sandboxed frame have an origin that is like no other."""
    asked: dict[str, list[str | None]] = {name: [] for name in OF_BASIC}
    for one in pried.servers["basic"].requests("/closed.json"):
        if (name := one.target.partition("?")[2]) in asked:
            asked[name].append(one.headers.get("authorization"))
    assert (asked["own"], asked["opaque"]) == ([JOE], [None, None])
    assert set(asked["framed"]) == {None, JOE}, "the frame is a link, too, and a page by itself"


def test_the_log_names_hosts_that_are_asked_without_credentials(pried: Pried) -> None:
    """Once: an application may need its other host (render_origins)."""
    page = pried.servers["prying"].url()[:-1]
    for name, server in pried.servers.items():
        said = f"Pages of {page} ask {server.url()[:-1]}. They get what it shows without cred"
        assert pried.ran.err.count(said) == (name in (*CLOSED, "api"))


def test_what_a_server_shows_to_all_pages_is_read(pried: Pried) -> None:
    """Access-Control-Allow-Origin: *."""
    how = [one.partition('"')[0] for one in pried.prying.told if WORDS["open"] in one]
    assert {"fetch", "headers", "redirect"} <= set(how)
    assert not {"include", "xhr"} & set(how), "not with credentials (Fetch Standard 4.10)"
    assert pried.found(WORDS["open"])


def test_a_named_origin_is_asked_with_its_credentials(pried: Pried) -> None:
    """And the pages that may ask so are protected themselves."""
    own, api = pried.servers["own"], pried.servers["api"]
    asked = api.requests("/data.json")
    assert {(one.headers.get("authorization"), one.headers.get("origin")) for one in asked} == {
        (JOE, own.url()[:-1])
    }
    assert pried.found("wordofapi", everybody=False).count(own.url()) == 1
    assert pried.found("wordofown", everybody=False) == [own.url()]
    assert pried.found("wordofown") == []
    noted = json.loads((pried.folder / "crawl/crawl.json").read_text())["credentials"]
    assert f"{own.host}:{own.port}" in noted
    assert f"{pried.servers['prying'].host}:{pried.servers['prying'].port}" not in noted


def test_the_rendered_page_itself_is_public(pried: Pried) -> None:
    stored = [one["url"] for one in records(pried.folder / "crawl/store.log")]
    assert pried.servers["prying"].url() in stored
    assert pried.found("prying") == [pried.servers["prying"].url()]
