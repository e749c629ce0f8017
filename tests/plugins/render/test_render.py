"""Pages that JavaScript makes, in whole crawls with Debian's Chromium and its sandbox."""

from __future__ import annotations

import os
import shutil
import signal
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.crawling import FAST, Ran, crawl, crawl_with, records, scrapy, stored
from tests.support.other_user import scrapy_as_other
from tests.support.servers.scripted import Reply, Request, ScriptedServer
from tests.support.servers.scripted_pages import ScriptedPages

pytestmark = [
    pytest.mark.acceptance,
    pytest.mark.skipif(shutil.which("chromium") is None, reason="needs chromium"),
]
Start = Callable[..., ScriptedServer]


def render(
    server: ScriptedServer, cwd: Path, start: str = "", *others: ScriptedServer, **settings: str
) -> Ran:
    """A crawl of hosts with ``render``, by a user who is not root."""
    table = '[[site]]\nhosts = "127.0.0.1:{}"\nrender = true\n'
    (cwd / "sites.toml").write_text("".join(table.format(one.port) for one in (server, *others)))
    own = FAST | {"LARM_SITES_FILE": str(cwd / "sites.toml"), "LARM_RENDER_SECS": "120"} | settings
    words = [word for pair in own.items() for word in ("-s", "=".join(pair))]
    seeds = f"start={start or server.url()}"
    ran = scrapy_as_other("crawl", "intranet", "-a", seeds, *words, cwd=cwd)
    if ran.status == 2 and "does not start with its sandbox" in ran.err:
        pytest.skip(f"Chromium does not start in its sandbox here: {ran.err.splitlines()[-1]}")
    return ran


def asked(server: ScriptedServer) -> set[str]:
    return {f"{request.method} {request.target}" for request in server.log}


def test_hosts_that_need_javascript_are_named(scripted_server: Start, tmp_path: Path) -> None:
    server = scripted_server({"*": ScriptedPages().answer})
    ran = crawl(server.url(), tmp_path)
    named = f"127.0.0.1:{server.port} (1 of 1 page)"
    assert f"empty       without JavaScript: {named}; render = true" in ran.out
    assert f"{named} without JavaScript" in scrapy("report", cwd=tmp_path).out


def test_pages_are_as_their_scripts_leave_them(scripted_server: Start, tmp_path: Path) -> None:
    """The browser requests nothing that is not allowed, uses no method but GET and no other
    host."""
    other = scripted_server({"*": "x"})
    site = ScriptedPages(4, ("/secret/x", other.url("/x"), "/missing"))
    server = scripted_server({"*": site.answer})
    ran = render(server, tmp_path)
    assert ran.status == 0, ran.err
    assert stored(tmp_path) == site.titles
    data = {f"GET /data{path}" for path in site.titles}
    pages = {f"GET {path}" for path in site.titles}
    assert asked(server) == {"GET /robots.txt", "GET /app.js", "GET /missing"} | data | pages
    assert other.log == []
    assert len(server.requests("/app.js")) == 1, "it is kept for further pages"
    found = scrapy("search", "déjà script", "--json", cwd=tmp_path).json
    assert len(found["hits"]) == len(site.titles)
    assert "empty       " not in ran.out


def test_no_datagram_leaves_a_page(scripted_server: Start, tmp_path: Path) -> None:
    """WebRTC asks STUN servers without a proxy, at any address."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
        other.bind(("127.0.0.1", 0))
        other.setblocking(False)
        page = Reply(200, {"Content-Type": "text/html"}, RTC % other.getsockname()[1])
        server = scripted_server({"/": page, "/wait": Reply(delay=5)})
        render(server, tmp_path)
        assert stored(tmp_path) == {"/": "offered"}
        with pytest.raises(BlockingIOError):
            other.recv(100)


RTC = b"""<title>page</title><p>text<script>fetch('/wait'); (async () => {
  const peer = new RTCPeerConnection({iceServers: [{urls: 'stun:127.0.0.1:%d'}]});
  peer.createDataChannel('x');
  await peer.setLocalDescription(await peer.createOffer());
  document.title = 'offered';
})()</script>"""


def test_limits(scripted_server: Start, tmp_path: Path) -> None:
    """A page is stored as it is when a limit is reached."""
    tries = tuple(f"/missing/{number}" for number in range(9))
    site = ScriptedPages(1, tries)
    server = scripted_server({"*": site.answer})
    ran = render(server, tmp_path, LARM_RENDER_REQUESTS="4")
    assert stored(tmp_path) == site.titles
    assert len(asked(server)) == 2 + 4
    assert "ended by 4 requests (LARM_RENDER_REQUESTS)" in ran.err


def test_the_limit_of_bytes(scripted_server: Start, tmp_path: Path) -> None:
    """A file that would exceed it is cut, and then nothing more is requested."""
    site = ScriptedPages(1, tuple(f"/large/{number}" for number in range(6)))

    def answer(request: Request) -> Reply:
        if request.path.startswith("/large"):
            return Reply(200, {"Content-Type": "text/plain"}, b"x" * 40_000)
        return site.answer(request)

    server = scripted_server({"*": answer})
    ran = render(
        server, tmp_path, LARM_RENDER_BYTES="50000", CONCURRENT_REQUESTS_PER_DOMAIN="1",
        DOWNLOAD_DELAY="0.5",
    )  # fmt: skip
    assert stored(tmp_path) == site.titles
    assert "ended by 50000 bytes (LARM_RENDER_BYTES)" in ran.err
    assert len([one for one in server.log if one.path.startswith("/large")]) < 6


def test_a_page_that_grows_without_bound_stays_in_chromium(
    scripted_server: Start, tmp_path: Path
) -> None:
    """Whatever its script says of its own size."""
    lies = "Object.defineProperty(Element.prototype, 'outerHTML', {get: () => 'small'});"
    script = f"{lies} document.head.append(new Comment('x'.repeat(30_000_000)))"
    page = f"<!doctype html><title>grows</title><body>before<script>{script}</script>"
    html = {"Content-Type": "text/html"}
    server = scripted_server({"/": Reply(200, html, page.encode())})
    ran = render(server, tmp_path, LARM_RENDER_BYTES="1000000", LARM_RETRY_TIMES="0")
    (line,) = records(tmp_path / "crawl/fetch.log")
    assert "grown larger than LARM_RENDER_BYTES" in line["message"], ran.err


def test_denied_addresses_are_not_asked_for_a_page_either(
    scripted_server: Start, tmp_path: Path
) -> None:
    """Though the crawl has met the host, and another address of this network answers."""
    denied = scripted_server({"*": "x"}, "127.0.7.1")
    site = ScriptedPages(1, (denied.url("/x"),))
    server = scripted_server({"*": site.answer})
    ran = render(
        server, tmp_path, LARM_DENY_ADDRESSES="127.0.7.0/24", ROBOTSTXT_OBEY="no",
        LOG_LEVEL="DEBUG", start=f"{denied.url('/')} {server.url()}",
    )  # fmt: skip
    assert stored(tmp_path) == site.titles
    assert denied.log == []
    assert f"Not asked while a page was rendered: {denied.url('/x')}: " in ran.err
    assert "127.0.7.1" in ran.err.partition(f"rendered: {denied.url('/x')}: ")[2].split("\n")[0]


def test_the_pace_of_the_host_holds(scripted_server: Start, tmp_path: Path) -> None:
    site = ScriptedPages(1, ("/missing/1", "/missing/2"))
    server = scripted_server({"*": site.answer})
    render(server, tmp_path, DOWNLOAD_DELAY="1")
    paths = [request.path for request in server.log]
    assert paths[:4] == ["/robots.txt", "/", "/app.js", "/data/"]
    assert sorted(paths[4:]) == ["/missing/1", "/missing/2"]
    assert server.log[-1].time - server.log[2].time > 2, "three delays, at the server"


def test_a_script_that_does_not_end(scripted_server: Start, tmp_path: Path) -> None:
    """The page fails, by its kind, and other pages go on."""
    site = ScriptedPages(3)

    def answer(request: Request) -> Reply:
        if request.path == "/page/1":
            body = b"<title>x</title><script>while (true) {}</script>"
            return Reply(200, {"Content-Type": "text/html"}, body)
        return site.answer(request)

    server = scripted_server({"*": answer})
    settings = {"LARM_RENDER_SECS": "5", "LARM_RETRY_TIMES": "0"}
    ran = render(server, tmp_path, CONCURRENT_REQUESTS_PER_DOMAIN="1", **settings)
    assert ran.status == 0, ran.err
    titles = {path: title for path, title in site.titles.items() if path != "/page/1"}
    assert stored(tmp_path) == titles
    failed = [one for one in records(tmp_path / "crawl" / "fetch.log") if one["result"] == "render"]
    assert [one["url"] for one in failed] == [server.url("/page/1")]
    assert running(tmp_path) == []


def test_chromium_is_killed(scripted_server: Start, tmp_path: Path) -> None:
    """The page is tried again, by another one."""
    site, killed = ScriptedPages(3), list[int]()

    def answer(request: Request) -> Reply:
        if request.path == "/data/page/1" and not killed:
            killed.extend(one for one in running(tmp_path) if is_browser(one))
            os.kill(killed[0], signal.SIGKILL)
        return site.answer(request)

    server = scripted_server({"*": answer})
    ran = render(server, tmp_path)
    assert ran.status == 0, ran.err
    assert len(killed) == 1, "there is one process, with children of its own"
    assert stored(tmp_path) == site.titles
    assert running(tmp_path) == []


def is_browser(pid: int) -> bool:
    words = Path(f"/proc/{pid}/cmdline").read_bytes()
    program = words.partition(b"\0")[0].rpartition(b"/")[2]
    return program == b"chromium" and b"--type=" not in words


def test_where_a_script_leads_is_a_link(scripted_server: Start, tmp_path: Path) -> None:
    site = ScriptedPages(2)
    leads = b"<title>wait</title><script>location.replace('/page/1')</script>"
    html = {"Content-Type": "text/html"}
    server = scripted_server({"/": Reply(200, html, leads), "*": site.answer})
    render(server, tmp_path)
    assert stored(tmp_path) == {"/": "wait", "/page/1": "Page 1"}


def running(cwd: Path) -> list[int]:
    """Processes that a crawl in ``cwd`` has left behind."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            if path.joinpath("cwd").readlink() == cwd:
                found.append(int(path.name))
        except OSError:
            continue
    return found


@pytest.mark.skipif(os.geteuid() != 0, reason="is for root")
def test_root_is_refused(scripted_server: Start, tmp_path: Path) -> None:
    server = scripted_server({"*": ScriptedPages().answer})
    rule = f'[[site]]\nhosts = "127.0.0.1:{server.port}"\nrender = true\n'
    ran = crawl_with(rule, server.url(), tmp_path)
    assert ran.status == 2
    assert "Chromium is never run as root: crawl as another user" in ran.err
    assert server.log == []


def test_pages_that_hold_up_chromium_cost_other_hosts_no_page(
    scripted_server: Start, tmp_path: Path
) -> None:
    """No page is tried twice; pages of the other host are in Chromium all the time."""
    flood = "let n = 0; setInterval(() => { history.replaceState(0, '', '/' + n++); while (1) {} })"
    paths = [f"/{number}" for number in range(4)]
    links = "".join(f"<a href={path}>x</a>" for path in paths)
    bad = scripted_server(
        {"/": links, **dict.fromkeys(paths, f"<title>bad</title><script>{flood}</script>")}
    )
    script = "fetch('/data').then(r => r.text()).then(text => document.title = text)"
    good = scripted_server(
        {
            "/": links,
            **dict.fromkeys(paths, f"<title>no</title><script>{script}</script>"),
            "/data": Reply(200, {"Content-Type": "text/plain"}, b"good", delay=3.0),
        }
    )
    own = {"LARM_RENDER_SECS": "10", "LARM_RETRY_TIMES": "0"}
    ran = render(good, tmp_path, f"{bad.url()} {good.url()}", bad, **own)
    assert ran.status == 0, ran.err
    fetched = records(tmp_path / "crawl" / "fetch.log")
    failed = [line["url"] for line in fetched if line["result"] == "render"]
    assert failed
    assert not [url for url in failed if url.startswith(good.url())]
    found = {line["url"] for line in records(tmp_path / "crawl" / "store.log")}
    assert found >= {good.url(), *map(good.url, paths)}
