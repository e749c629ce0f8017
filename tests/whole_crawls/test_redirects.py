"""Redirects in a crawl: links of type 2 through all filters, chains that end, loops with a name."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.support.crawling import crawl, records, scrapy
from tests.support.servers.scripted import Reply, Request, Route, ScriptedServer

Start = Callable[..., ScriptedServer]
HTML = {"Content-Type": "text/html; charset=utf-8"}


def onward(location: str) -> Reply:
    return Reply(302, {"Location": location})


def targets(server: ScriptedServer) -> list[str]:
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
    assert len(targets(server)) == len(set(targets(server))) == 8
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
    assert targets(server) == [f"/n{number}" for number in range(11)]
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
    assert targets(server) == ["/", "/a", "/b", "/c"]


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
    assert targets(server) == ["/Start/index.html"]
    assert crawl(seed, tmp_path).status == 0
    assert targets(server) == ["/Start/index.html", "/Start/"]
    stored = records(tmp_path / "crawl" / "store.log")
    assert [line["http-code"] for line in stored] == ["302", "200"]


def test_a_ring_of_spellings_ends(scripted_server: Start, tmp_path: Path) -> None:
    """/a and /A are one page by our comparison and redirect to each other."""
    server = scripted_server({"/a": onward("/A"), "/A": onward("/a")})
    crawl(server.url("/a"), tmp_path, LARM_MAX_REDIRECTS="4", timeout=30)
    assert targets(server) == ["/a", "/A"]
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
