"""How a crawl deals with awkward answers, by the server's log and the stored pages."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest

from tests.support.crawling import crawl, crawl_of_cases, records, scrapy
from tests.support.servers.scripted import Reply, Request, Route, ScriptedServer

Start = Callable[..., ScriptedServer]
HTML = {"Content-Type": "text/html; charset=utf-8"}


def targets(server: ScriptedServer) -> list[str]:
    """The requested paths in order, without robots.txt."""
    return [request.target for request in server.log if request.target != "/robots.txt"]


def statuses(folder: Path) -> dict[str, str]:
    """Path -> HTTP status, of all stored pages."""
    lines = records(folder / "crawl" / "store.log")
    return {"/" + line["url"].split("/", 3)[3]: line["http-code"] for line in lines}


def links_to(*paths: str) -> tuple[int, dict[str, str], bytes]:
    return (200, HTML, "".join(f'<a href="{path}">{path}</a> ' for path in paths).encode())


def test_fetches_the_original_and_compares_the_canonical_form(
    scripted_server: Start, tmp_path: Path
) -> None:
    """The server sees the URL as it was written; by LARM's rules other spellings of it are not
    fetched again."""
    server = scripted_server(
        {
            "/": links_to("/x/../Wiki//Main.HTML?B=2", "/wiki/main.html?B=2", "/wiki/?b=2"),
            "/Wiki//Main.HTML": (200, HTML, b"x"),
            "/wiki/": (200, HTML, b"y"),
        }
    )
    assert crawl(server.url("/"), tmp_path, LARM_CANONICAL_RULES="always").status == 0
    assert targets(server) == ["/", "/Wiki//Main.HTML?B=2", "/wiki/?b=2"]


def test_redirects_pass_the_filters_of_any_link(scripted_server: Start, tmp_path: Path) -> None:
    """Followed in scope; out of scope, to other schemes and to itself not; each is stored."""
    other = scripted_server({"/secret": (200, HTML, b"secret")}, host="127.0.0.2")
    server = scripted_server(
        {
            "/": links_to("/in", "/out", "/file", "/self", "/ring1", "/blank"),
            "/in": (302, {"Location": "/target"}, b""),
            "/target": (200, HTML, b"here"),
            "/out": (301, {"Location": other.url("/secret")}, b""),
            "/file": (307, {"Location": "file:///etc/passwd"}, b""),
            "/self": (302, {"Location": "/self"}, b""),
            "/ring1": (302, {"Location": "/ring2"}, b""),
            "/ring2": (302, {"Location": "/ring1"}, b""),
            "/blank": (302, {"Location": ""}, b""),
        }
    )
    assert crawl(server.url("/"), tmp_path).status == 0
    assert other.log == []
    asked = targets(server)
    assert sorted(asked) == [
        "/", "/blank", "/file", "/in", "/out", "/ring1", "/ring2", "/self", "/target",
    ]  # fmt: skip
    assert statuses(tmp_path)["/out"] == "301"


def test_a_redirect_to_another_spelling_of_itself_is_followed(
    scripted_server: Start, tmp_path: Path
) -> None:
    """The canonical form is the same, but only the target has the page."""
    server = scripted_server(
        {
            "/": links_to("/Start/index.html"),
            "/Start/index.html": (301, {"Location": "/Start/"}, b""),
            "/Start/": (200, HTML, b"<title>Here</title>"),
        }
    )
    crawl(server.url("/"), tmp_path)
    assert statuses(tmp_path) == {"/": "200", "/Start/index.html": "301", "/Start/": "200"}


def test_credentials_in_links_are_left_out(scripted_server: Start, tmp_path: Path) -> None:
    """A link with user and password is one to the page; no log has the password."""
    server = scripted_server({"/a": (200, HTML, b"a"), "/b": (200, HTML, b"b")})
    secret = server.url("/").replace("//", "//joe:secret@")
    body = f"<a href='{secret}a'>a</a> <a href=/a>a</a> <a href=/moved>moved</a>"
    server.routes["/"] = (200, HTML, body.encode())
    server.routes["/moved"] = (302, {"Location": f"{secret}b"}, b"")
    ran = crawl(server.url("/"), tmp_path)
    assert targets(server) == ["/", "/a", "/moved", "/b"]
    assert statuses(tmp_path) == {"/": "200", "/a": "200", "/moved": "302", "/b": "200"}
    assert "secret" not in ran.err + ran.out
    for path in (tmp_path / "crawl").glob("*.[lj]*"):
        assert b"secret" not in path.read_bytes(), path


def test_a_location_that_is_not_utf8_is_asked_for_as_it_was_sent(
    scripted_server: Start, tmp_path: Path
) -> None:
    """Its bytes as escapes; a replacement character would name another page."""
    server = scripted_server(
        {"/": (302, {"Location": "/caf\xe9.html"}, b""), "/caf%E9.html": (200, HTML, b"x")}
    )
    crawl(server.url("/"), tmp_path)
    assert targets(server) == ["/", "/caf%E9.html"]


def test_an_endless_chain_of_redirects_ends(scripted_server: Start, tmp_path: Path) -> None:
    """After LARM_MAX_REDIRECTS in a row."""

    def onward(request: Request) -> Reply:
        number = int(request.target.rsplit("/", 1)[1])
        return Reply(302, {"Location": f"/n/{number + 1}"})

    server = scripted_server({"/": links_to("/n/0")} | {f"/n/{n}": onward for n in range(40)})
    crawl(server.url("/"), tmp_path, LARM_MAX_REDIRECTS="3")
    assert targets(server) == ["/", "/n/0", "/n/1", "/n/2", "/n/3"]


@pytest.mark.parametrize(
    "parts",
    [
        {},
        {
            "SCHEDULER": "scrapy.core.scheduler.Scheduler",
            "DOWNLOADER": "scrapy.core.downloader.Downloader",
        },
    ],
    ids=["frontier", "scrapy"],
)
def test_redirects_to_ever_new_spellings_of_a_page_end(
    tmp_path: Path, parts: dict[str, str]
) -> None:
    """At most LARM_MAX_REDIRECTS more fetches for each of two links, whatever the answers hold;
    under Scrapy's own scheduler too."""
    numbers = itertools.count()

    def onward(answer: str) -> Reply:
        targets = [f"/page?sid={next(numbers)}" for _ in range(4)]
        metas = "".join(f"<meta http-equiv=refresh content='0;url={t}'>" for t in targets)
        if answer == "refresh":
            return Reply(200, HTML, metas.encode())
        body = metas.encode() if answer == "both" else b""
        return Reply(302, HTML | {"Location": targets[-1]}, body)

    links = links_to("/page?sid=a", "/page?SID=b")
    cases = {
        answer: {"/": links, "/page": lambda _, answer=answer: onward(answer)}
        for answer in ("refresh", "location", "both")
    }
    with crawl_of_cases(cases, tmp_path, LARM_MAX_REDIRECTS="5", **parts) as crawled:
        assert crawled.ran.status == 0
        for answer, server in crawled.servers.items():
            assert len(server.requests("/page")) <= 12, answer


def test_x_robots_tag_is_obeyed(scripted_server: Start, tmp_path: Path) -> None:
    """noindex keeps out of the index, nofollow the links out of the queue; both are logged."""
    beyond = b"<a href=/beyond>zebra</a>"
    server = scripted_server(
        {
            "/": links_to("/hidden", "/end"),
            "/hidden": (200, HTML | {"X-Robots-Tag": "noindex"}, b"<title>Hidden</title> zebra"),
            "/end": (200, HTML | {"X-Robots-Tag": "larmspider: nofollow"}, beyond),
        }
    )
    crawl(server.url("/"), tmp_path)
    assert targets(server) == ["/", "/hidden", "/end"]
    found = scrapy("search", "zebra", "--json", cwd=tmp_path).json["hits"]
    assert [hit["url"] for hit in found] == [server.url("/end")]
    links = records(tmp_path / "crawl" / "links.log")
    assert server.url("/beyond") in {line["to-page"] for line in links}


def test_only_html_is_searched_for_links(scripted_server: Start, tmp_path: Path) -> None:
    """Everything is stored; text and scripts name no links. The header Refresh of any does."""
    body = b"<a href=/no>no</a>"
    server = scripted_server(
        {
            "/": links_to("/a.txt", "/b.bin", "/c.xhtml"),
            "/a.txt": (200, {"Content-Type": "text/plain", "Refresh": "5;URL='/later'"}, body),
            "/later": (404, HTML, b""),
            "/b.bin": (200, {"Content-Type": "application/octet-stream"}, body),
            "/c.xhtml": (200, {"Content-Type": "application/xhtml+xml"}, b"<a href='/yes'>y</a>"),
            "/yes": (404, HTML, b"<a href=/from-an-error-page>x</a>"),
            "/from-an-error-page": (200, HTML, b""),
        }
    )
    crawl(server.url("/"), tmp_path)
    assert statuses(tmp_path) == {
        "/": "200", "/a.txt": "200", "/b.bin": "200", "/c.xhtml": "200", "/yes": "404",
        "/from-an-error-page": "200", "/later": "404",
    }  # fmt: skip


def test_breadth_first(scripted_server: Start, tmp_path: Path) -> None:
    """One connection: every page of one depth before any of the next."""
    tree = {"/": ["/a", "/b"], "/a": ["/a/1", "/a/2"], "/b": ["/b/1"], "/a/1": ["/a/1/x"]}
    paths = ["/", "/a", "/b", "/a/1", "/a/2", "/b/1", "/a/1/x"]
    server = scripted_server({path: links_to(*tree.get(path, [])) for path in paths})
    crawl(server.url("/"), tmp_path, threads="1", CONCURRENT_REQUESTS_PER_DOMAIN="1")
    assert targets(server) == paths


def test_depth_limit_keeps_scrapys_meaning(scripted_server: Start, tmp_path: Path) -> None:
    """DEPTH_LIMIT=1: the seeds and what they link to."""
    server = scripted_server({"/": links_to("/a"), "/a": links_to("/b"), "/b": links_to()})
    crawl(server.url("/"), tmp_path, DEPTH_LIMIT="1")
    assert targets(server) == ["/", "/a"]


@pytest.mark.parametrize("name", ["@seeds.txt", " @seeds.txt", "{0}a {0}b {0}%61"])
def test_seeds_come_from_a_file_or_the_command_line(
    scripted_server: Start, tmp_path: Path, name: str
) -> None:
    """Several, in order, each page once."""
    server = scripted_server(dict.fromkeys(("/a", "/b", "/A"), (200, HTML, b"")))
    url = server.url("/")
    odd = url.replace("//", "")  # a URL to every browser
    (tmp_path / "seeds.txt").write_text(f"# ours\n{odd}a  # first\n\n  {url}b\n{url}%61\n")
    crawl(name.format(url), tmp_path, threads="1")
    assert targets(server) == ["/a", "/b"]


def test_host_rules_make_two_names_one_site(scripted_server: Start, tmp_path: Path) -> None:
    """With a synonym, a page under either name is fetched once."""
    server = scripted_server({"/": links_to("/a"), "/a": (200, HTML, b"")})
    port = server.url("/").rsplit(":", 1)[1].rstrip("/")
    (tmp_path / "hosts.properties").write_text("synonym(localhost) = 127.0.0.1\n")
    server.routes["/"] = links_to(f"http://localhost:{port}/a", "/a")
    crawl(server.url("/"), tmp_path, hostresolver="hosts.properties")
    assert targets(server) == ["/", "/a"]


def test_polite_by_default(scripted_server: Start, tmp_path: Path) -> None:
    """One connection a host, half a second between two requests, a telling User-Agent."""
    leaves = dict.fromkeys(["/a", "/b", "/c"], (200, HTML, b""))
    server = scripted_server({"/": links_to(*leaves)} | leaves)
    ran = scrapy("crawl", "intranet", "-a", f"start={server.url('/')}", cwd=tmp_path)
    assert ran.status == 0
    assert server.peak_open == 1
    assert targets(server)[:2] == ["/", "/sitemap.xml"]
    times = [request.time for request in server.log]
    assert [round(b - a, 1) >= 0.5 for a, b in pairwise(times)] == [True] * 5
    assert server.log[0].headers["user-agent"].startswith("larmspider/")


def test_a_failed_fetch_is_counted_and_logged(scripted_server: Start, tmp_path: Path) -> None:
    """A host without a name, a port without a server, a body too large: a kind for each."""
    big = (200, HTML, b"x" * 5000)
    links = links_to("http://nowhere.invalid/", "http://127.0.0.1:9/", "http://[::1]:9/", "/big")
    server = scripted_server({"/": links, "/big": big})
    ran = crawl(
        server.url("/"),
        tmp_path,
        restrict="http://.*",
        LARM_RETRY_TIMES="0",
        DOWNLOAD_MAXSIZE="4000",
        ROBOTSTXT_OBEY="0",
    )
    results = {line["url"]: line["result"] for line in records(tmp_path / "crawl" / "fetch.log")}
    assert results.pop("http://[::1]:9/") != "dns", "an address is no name to look up"
    assert results == {
        server.url("/"): "200",
        "http://nowhere.invalid/": "dns",
        "http://127.0.0.1:9/": "refused",
        server.url("/big"): "too-big",
    }
    assert "failed      4 URLs" in ran.out
    assert "Traceback" not in ran.err


# Redirects in a crawl: links of type 2 through all filters, chains that end, loops with a name.


def onward(location: str) -> Reply:
    return Reply(302, {"Location": location})


def pages_asked(server: ScriptedServer) -> list[str]:
    return [request.target for request in server.log if request.target != "/robots.txt"]


def verdicts(folder: Path, name: str) -> list[tuple[str, str]]:
    """URL and reason, of what a filter rejected by its log."""
    lines = (folder / "crawl" / f"{name}Filter.log").read_text("utf-8").splitlines()
    rows = [line.split("\t") for line in lines]
    return [(url, reason) for url, verdict, reason in rows if verdict == "reject"]


def test_a_redirect_is_a_link_of_type_2(scripted_server: Start, tmp_path: Path) -> None:
    """In links.log, and its target has the redirect as the page it came from."""
    server = scripted_server({"/": onward("/there"), "/there": b"here"})
    crawl(server.url(), tmp_path)
    links = records(tmp_path / "crawl" / "links.log")
    assert [(line["to-page"], line["link-type"]) for line in links] == [(server.url("/there"), "2")]
    stored = records(tmp_path / "crawl" / "store.log")
    assert [line["from-page"] for line in stored] == ["", server.url("/")]


def test_loops_are_named(scripted_server: Start, tmp_path: Path) -> None:
    """A redirect to itself, and the one that closes a ring; one to a page met elsewhere is none."""
    links = "".join(f"<a href={path}>x</a>" for path in ("/self", "/ring1", "/ring3", "/met"))
    server = scripted_server(
        {
            "/": links,
            "/self": onward("/self"),
            "/ring1": onward("/ring2"),
            "/ring2": onward("/ring1"),
            "/met": onward("/"),
        }
    )
    server.routes["/ring3"] = onward("/ring4")
    server.routes["/ring4"] = onward("/ring5")
    server.routes["/ring5"] = onward("/ring3")
    ran = crawl(server.url(), tmp_path, LARM_FILTER_LOGS="1")
    assert ran.status == 0
    assert len(pages_asked(server)) == len(set(pages_asked(server))) == 8
    rings = {
        "/self": ["/self", "/self"],
        "/ring2": ["/ring2", "/ring1", "/ring2"],
        "/ring5": ["/ring5", "/ring3", "/ring4", "/ring5"],
    }
    said = {
        server.url(path): "redirect loop: " + " -> ".join(map(server.url, ring))
        for path, ring in rings.items()
    }
    logged = records(tmp_path / "crawl" / "fetch.log")
    assert {line["url"]: line["message"] for line in logged if line["message"]} == said
    refused = verdicts(tmp_path, "Visited")
    assert sorted(reason for _, reason in refused if reason != "known") == sorted(said.values())
    assert (server.url("/"), "known") in refused
    explained = scrapy("explain", server.url("/ring5"), cwd=tmp_path)
    assert said[server.url("/ring5")] in explained.out


def test_a_chain_that_is_too_long_says_so(scripted_server: Start, tmp_path: Path) -> None:
    """The 11th redirect in a row is not followed; fetch.log has why, beside the last status."""

    def next_number(request: Request) -> Reply:
        return onward(f"/n{int(request.target[2:]) + 1}")

    routes: dict[str, Route] = {f"/n{number}": next_number for number in range(20)}
    server = scripted_server(routes)
    crawl(server.url("/n0"), tmp_path)
    assert pages_asked(server) == [f"/n{number}" for number in range(11)]
    last = records(tmp_path / "crawl" / "fetch.log")[-1]
    assert (last["result"], last["message"]) == (
        "302",
        "after 10 redirects in a row (LARM_MAX_REDIRECTS)",
    )


def test_an_ordinary_link_begins_a_new_chain(scripted_server: Start, tmp_path: Path) -> None:
    """Redirects in a row are counted, not those on the way from the seed."""
    server = scripted_server(
        {"/": onward("/a"), "/a": b"<a href=/b>b</a>", "/b": onward("/c"), "/c": b"c"}
    )
    crawl(server.url(), tmp_path, LARM_MAX_REDIRECTS="1")
    assert pages_asked(server) == ["/", "/a", "/b", "/c"]


def test_another_spelling_of_a_page_is_followed_after_a_restart(
    scripted_server: Start, tmp_path: Path
) -> None:
    """/Start/index.html leads to /Start/, the same page by our comparison: the run ends between
    the two, the next one fetches the second."""
    server = scripted_server(
        {"/Start/index.html": onward("/Start/"), "/Start/": b"<title>Here</title>"}
    )
    seed = server.url("/Start/index.html")
    assert crawl(seed, tmp_path, LARM_MAX_PAGES="1").status == 0
    assert pages_asked(server) == ["/Start/index.html"]
    assert crawl(seed, tmp_path).status == 0
    assert pages_asked(server) == ["/Start/index.html", "/Start/"]
    stored = records(tmp_path / "crawl" / "store.log")
    assert [line["http-code"] for line in stored] == ["302", "200"]


def test_a_ring_of_spellings_ends(scripted_server: Start, tmp_path: Path) -> None:
    """/a and /A are one page by our comparison and redirect to each other."""
    server = scripted_server({"/a": onward("/A"), "/A": onward("/a")})
    crawl(server.url("/a"), tmp_path, LARM_MAX_REDIRECTS="4", timeout=120)
    assert pages_asked(server) == ["/a", "/A"]
    last = records(tmp_path / "crawl" / "fetch.log")[-1]
    ring = [server.url(path) for path in ("/A", "/a", "/A")]
    assert last["message"] == "redirect loop: " + " -> ".join(ring)


def test_redirects_obey_robots_txt_and_turns_of_their_target(
    scripted_server: Start, tmp_path: Path
) -> None:
    """The other host's robots.txt is read before the target is fetched, and refuses it."""
    no = (200, {"Content-Type": "text/plain"}, b"User-agent: *\nDisallow: /no\n")
    other = scripted_server({"/robots.txt": no, "/no": b"n", "/yes": b"y"}, host="127.0.0.2")
    server = scripted_server({"/": "<a href=/1>x</a><a href=/2>x</a>"})
    server.routes["/1"], server.routes["/2"] = onward(other.url("/no")), onward(other.url("/yes"))
    crawl(server.url(), tmp_path, restrict="http://127.*")
    assert [request.target for request in other.log] == ["/robots.txt", "/yes"]
