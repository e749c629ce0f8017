"""The application around the pages: what it serves of itself, and what each directory is."""

from __future__ import annotations

import gc
import http.client
import json
import re
import shutil
import socket
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, suppress
from pathlib import Path

import pytest
from selectolax.lexbor import LexborHTMLParser
from selenium.common.exceptions import StaleElementReferenceException
from selenium.webdriver import ActionChains
from selenium.webdriver.remote.webelement import WebElement

from larmspider.errors import ConfigError
from larmspider.web.auth import (
    MAX_SESSIONS,
    SESSION_SECS,
    Guard,
    checked_token,
    cookie_name,
    found_token,
    stored_token,
)
from larmspider.web.connections import MAX_CONNECTIONS, Connections
from larmspider.web.request import THREADS
from larmspider.workdir.manifest import MANIFEST, SHARED
from tests.support.web.browser import Browser
from tests.support.web.console import until
from tests.support.web.serving import ADDRESS, LOOKS, Served, request, shown
from tests.support.web.serving import TOKEN as SERVED


def test_serves_its_own_files_only(served: Callable[..., Served], demo_crawl: Path) -> None:
    """Style and icon have their types; no path leads out of static/."""
    site = served(demo_crawl)
    assert site.get("/static/larm.css").headers["Content-Type"].startswith("text/css")
    assert site.get("/static/icon.svg").status == 200
    for name in ("..%2fguard.py", "%2e%2e/guard.py", "../guard.py", "x.css", ".", "larm.css/"):
        assert site.get(f"/static/{name}").status == 404, name


def test_who_connects_while_it_stops_is_cut_off(
    served: Callable[..., Served], tmp_path: Path, connect: Callable[..., socket.socket]
) -> None:
    """No socket stays open, whatever the event loop has accepted by then."""
    for _ in range(10):
        site = served(tmp_path)
        site.tell_to_stop()
        with suppress(OSError):
            for _ in range(60):
                connect(site)
        site.wait()
    with warnings.catch_warnings(record=True) as unclosed:
        warnings.simplefilter("always", ResourceWarning)
        gc.collect()
    assert [str(warning.message) for warning in unclosed] == []


def test_an_empty_directory_says_so(served: Callable[..., Served], tmp_path: Path) -> None:
    """And so does one that is not there, or no crawl's."""
    site = served(tmp_path / "crawl")
    assert "is not a directory" in site.get("/").text
    missing = site.get("/search?q=vpn&format=json")
    assert (missing.status, [*missing.json]) == (404, ["error"])
    (tmp_path / "crawl").mkdir()
    assert "no crawl has written here yet" in site.get("/").text
    (tmp_path / "crawl" / "x").touch()
    assert "not a crawl" in site.get("/").text


def test_a_crawl_that_cannot_be_opened_says_why(
    served: Callable[..., Served], demo_crawl: Path, tmp_path: Path
) -> None:
    """Not that there is none."""
    shutil.copytree(demo_crawl, tmp_path / "crawl")
    (tmp_path / "crawl" / "frontier" / "data.mdb").write_bytes(b"no LMDB" * 2_000)
    site = served(tmp_path / "crawl")
    for target in ("/", "/hosts", "/stats.json"):
        got = site.get(target)
        assert got.status == 404
        assert "cannot open the frontier in" in got.text
        assert "No crawl here" not in got.text


def is_nameless(control: WebElement) -> bool:
    return control.is_displayed() and not control.accessible_name


@pytest.mark.parametrize(("width", "dark"), [(1280, False), (390, True)])
@pytest.mark.parametrize("target", LOOKS.values(), ids=LOOKS)
def test_every_page_fits_and_says_nothing_to_the_console(
    served: Callable[..., Served],
    demo_crawl: Path,
    browser: Browser,
    target: str,
    width: int,
    dark: bool,
) -> None:
    """No horizontal scroll, no error, one heading of the first rank, every control has a name."""
    site = served(demo_crawl)
    browser.look(width, dark=dark)
    browser.open(site.url + shown(target, demo_crawl))
    assert browser.overflow() <= 0
    assert browser.errors() == []
    assert len(browser.all("h1")) == 1
    browser.script("for (const one of document.querySelectorAll('details')) one.open = true")
    browser.script("for (const one of document.querySelectorAll('#filters')) one.checked = true")
    css = "input:not([type=hidden], [hidden]), select, textarea, button"
    found = browser.until(  # an update of the page may replace some meanwhile
        lambda: [[one.get_attribute("outerHTML") for one in browser.all(css) if is_nameless(one)]],
        "controls",
    )
    assert found == [[]]


def test_links_and_urls_are_not_mixed_up(served: Callable[..., Served], demo_crawl: Path) -> None:
    """Filters reject links; what robots.txt refuses are URLs, and counted as those alone."""
    page = served(demo_crawl).get("/").text
    links = page[page.index("Links rejected by filter") :]
    assert '<th scope="row">scope</th>' in links
    assert ">robots<" not in links
    assert 'data-text="refused">0<' not in page


def test_linked_hosts_lead_to_pages_that_exist(
    served: Callable[..., Served], demo_crawl: Path
) -> None:
    """Hosts outside of the scope are listed, and have no page."""
    site = served(demo_crawl)
    until(lambda: site.get("/links?show=hosts&format=json").status == 200, "links are counted")
    rows = LexborHTMLParser(site.get("/links?show=hosts").text).css(".data tbody th")
    led = [one.css_first("a") for one in rows]
    assert [site.get(one.attributes["href"] or "").status for one in led if one] == [200]
    assert None in led


@pytest.mark.parametrize(
    ("below", "above"),
    [("/traps", "/control"), ("/deletes", "/control"), ("/hosts/{host}", "/hosts")],
)
def test_the_navigation_marks_the_page_above(
    served: Callable[..., Served], demo_crawl: Path, below: str, above: str
) -> None:
    """A page that the navigation does not name shows where it belongs, and leads back there."""
    site = served(demo_crawl)
    hosts = LexborHTMLParser(site.get("/hosts").text)
    found = hosts.css_first(".data tbody th a").attributes["href"]
    page = LexborHTMLParser(site.get(found if "{host}" in below else below).text)
    (marked,) = page.css("nav [aria-current]")
    assert marked.attributes["href"] == above
    assert page.css_first("main a").attributes["href"] == above


@pytest.mark.parametrize("dark", [False, True])
def test_the_text_of_buttons_can_be_read(
    served: Callable[..., Served], demo_crawl: Path, browser: Browser, dark: bool
) -> None:
    """A contrast of 4.5 or more (WCAG 2.2, 1.4.3)."""
    site = served(demo_crawl)
    browser.look(dark=dark)
    browser.open(site.url + "/search?q=siren")
    button = browser.find("main button")
    inks = [luminance(button.value_of_css_property(n)) for n in ("color", "background-color")]
    assert (max(inks) + 0.05) / (min(inks) + 0.05) >= 4.5


def luminance(colour: str) -> float:
    """Relative luminance of rgb(...) or rgba(...), as WCAG 2.2 defines it."""
    red, green, blue = (int(value) / 255 for value in re.findall(r"\d+", colour)[:3])
    linear = [
        c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in (red, green, blue)
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize(
    "lines",
    [b"GET / HTTP/1.1", b"GET / HTTP/1.0", b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nHost: evil"],
)
def test_a_request_without_one_host_is_refused_quietly(
    served: Callable[..., Served], tmp_path: Path, caplog: pytest.LogCaptureFixture, lines: bytes
) -> None:
    """With 400, and nothing in the log: anyone who can connect could fill it."""
    port = int(served(tmp_path).url.rpartition(":")[2])
    with socket.create_connection((ADDRESS, port), timeout=120) as connection:
        connection.sendall(lines + b"\r\n\r\n")
        assert connection.makefile("rb").readline().split()[1] == b"400"
    assert caplog.records == []


# How many may ask, for how long, and what is no request.


@pytest.fixture
def connect() -> Iterator[Callable[..., socket.socket]]:
    """Connections that are closed when the test ends: ``connect(site, b"GET / HT")``."""
    with ExitStack() as stack:

        def begin(site: Served, sent: bytes = b"") -> socket.socket:
            address = (ADDRESS, int(site.url.rpartition(":")[2]))
            opened = stack.enter_context(socket.create_connection(address, timeout=120))
            opened.sendall(sent)
            return opened

        yield begin


HEAD = b"GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n"


def test_idle_connections_take_no_place_from_others(
    served: Callable[..., Served], tmp_path: Path, connect: Callable[..., socket.socket]
) -> None:
    """The connections that have waited longest are closed; every request is answered."""
    site = served(tmp_path)
    idle = [connect(site, b"GET / HT") for _ in range(300)]
    assert site.get("/healthz").status == 200
    assert site.get("/").status == 404
    assert len(site.site.connections) <= MAX_CONNECTIONS
    for opened in idle[:100]:
        assert gone(opened)


def gone(opened: socket.socket) -> bool:
    """Whether the server has closed the connection; waits until it has."""
    try:
        return opened.recv(1) == b""
    except ConnectionResetError:
        return True


def test_health_is_answered_while_all_others_are_busy(
    served: Callable[..., Served], demo_crawl: Path, connect: Callable[..., socket.socket]
) -> None:
    """Connections that are busy are left alone; of the spare ones the newest counts."""
    site = served(demo_crawl, connections=Connections(most=4, spare=2))
    windows = [connect(site, HEAD) for _ in range(2)]
    for window in windows:
        assert window.recv(15) == b"HTTP/1.1 200 OK"
    idle = [connect(site) for _ in range(5)]
    for _ in range(3):
        assert site.get("/healthz").status == 200
        refused = site.get("/")
        assert (refused.status, refused.headers.get("Connection")) == (503, "close")
    assert all(map(gone, idle[:4]))
    windows[0].close()
    end = time.monotonic() + 120
    while site.get("/").status != 200:
        assert time.monotonic() < end


def test_whoever_is_signed_in_keeps_the_connection(
    served: Callable[..., Served], tmp_path: Path, connect: Callable[..., socket.socket]
) -> None:
    """Between two requests, while others try wrong tokens on all connections that there are."""
    site = served(tmp_path, connections=Connections(most=6, spare=2))
    mine = http.client.HTTPConnection(ADDRESS, int(site.url.rpartition(":")[2]), timeout=120)

    def ask() -> int:
        mine.request("GET", "/", headers={"Authorization": f"Bearer {SERVED}"})
        answer = mine.getresponse()
        answer.read()
        return answer.status

    with closing(mine):
        assert ask() == 404
        kept = mine.sock
        wrong = b"GET / HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer wrong\r\n\r\n"
        for _ in range(12):
            assert connect(site, wrong).recv(8) == b"HTTP/1.1"
        assert ask() == 404
        assert mine.sock is kept


def test_health_waits_for_no_page(served: Callable[..., Served], tmp_path: Path) -> None:
    """Pages that hang hold their own threads."""
    site, end = served(tmp_path), threading.Event()
    for _ in range(THREADS):
        site.site.work._pool.submit(end.wait, 30)
    try:
        assert site.get("/healthz").status == 200
    finally:
        end.set()


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nX-Slow: ",
        b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\nx",
    ],
)
def test_a_request_has_its_time(
    served: Callable[..., Served],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    connect: Callable[..., socket.socket],
    sent: bytes,
) -> None:
    """For its head, its body, and between two requests; then the connection is closed."""
    monkeypatch.setattr("larmspider.web.connections.REQUEST_SECS", 0.1)
    monkeypatch.setattr("larmspider.web.connections._LOOK_SECS", 0.05)
    opened = connect(served(tmp_path), sent)
    assert opened.makefile("rb").read()[:8] in (b"", b"HTTP/1.1")


@pytest.mark.parametrize("path", ["/login", "/control/pause"])
def test_a_form_that_does_not_come_is_given_up(
    served: Callable[..., Served],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    connect: Callable[..., socket.socket],
    path: str,
) -> None:
    """With 408, also for a user who is signed in."""
    monkeypatch.setattr("larmspider.web.actions.REQUEST_SECS", 0.1)
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {SERVED}\r\n"
    head += "Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 99\r\n\r\n"
    opened = connect(served(tmp_path), head.encode() + b"token=")
    assert opened.makefile("rb").readline().split()[1] == b"408"


def test_a_client_that_takes_nothing_is_cut_off(
    served: Callable[..., Served],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    connect: Callable[..., socket.socket],
) -> None:
    """It asks, and reads no answer."""
    monkeypatch.setattr("larmspider.web.connections.STALLED_SECS", 0.1)
    monkeypatch.setattr("larmspider.web.connections._LOOK_SECS", 0.05)
    site = served(tmp_path)
    connect(site, b"GET /static/larm.css HTTP/1.1\r\nHost: localhost\r\n\r\n" * 2_000)
    end = time.monotonic() + 120
    while len(site.site.connections):
        assert time.monotonic() < end


MULTIPART = "multipart/form-data; boundary=x"


@pytest.mark.parametrize(
    "kind, body",
    [
        (MULTIPART, b""),
        (MULTIPART, b"token"),
        (MULTIPART, b"--x\r\n\r\ntoken"),
        (MULTIPART, b"--x\r\nContent-Disposition: form-data\r\n\r\nt\r\n--x--\r\n"),
        (MULTIPART, b"--x\r\nContent-Type: multipart/mixed; boundary=x\r\n\r\n--x\r\n\r\n--x--"),
        (MULTIPART, b'--x\r\nContent-Disposition: form-data; name="t"\r\n'
                    b"Content-Transfer-Encoding: base64\r\n\r\n!\r\n--x--\r\n"),
        (MULTIPART, b'--x\r\nContent-Disposition: form-data; name="t"\r\n'
                    b"Content-Transfer-Encoding: none\r\n\r\n!\r\n--x--\r\n"),
        (MULTIPART, b'--x\r\nContent-Disposition: form-data; name="t"\r\n'
                    b"Content-Type: text/plain; charset=no\r\n\r\n!\r\n--x--\r\n"),
        (MULTIPART, b'--x\r\nContent-Disposition: form-data; name="t"; filename="f"\r\n'
                    b"\r\n!\r\n--x--"),
        ("multipart/form-data", b"--x--"),
        ("multipart/form-data; boundary=" + "x" * 80, b"--x--"),
        ("application/x-www-form-urlencoded; charset=no-such", b"token=x"),
        ("application/x-www-form-urlencoded; charset=utf-16", b"x"),
        ("application/x-www-form-urlencoded; charset=idna", b"token=..%e9"),
        ("application/x-www-form-urlencoded; charset=utf-7", b"token=+%e9"),
        ("application/x-www-form-urlencoded; charset=rot13", b"token=x"),
        (MULTIPART + "; charset=idna", b'--x\r\nContent-Disposition: form-data; name="t"\r\n'
                    b"Content-Type: text/plain; charset=idna\r\n\r\n..\xe9\r\n--x--\r\n"),
        (MULTIPART, b'--x\r\nContent-Disposition: form-data; name="t"\r\n'
                    b"Content-Type: text/plain; charset=punycode\r\n\r\n\xe9-\xe9\r\n--x--\r\n"),
    ],
)  # fmt: skip
def test_a_form_that_is_none_is_refused_quietly(
    served: Callable[..., Served],
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
    body: bytes,
) -> None:
    """With 400 (or as a form without the token), and nothing in the log."""
    got = request(served(tmp_path).url + "/login", "POST", {"Content-Type": kind}, body)
    assert got.status in (400, 403), got.text
    assert caplog.records == []


@pytest.mark.parametrize(
    "lines",
    [
        b"Content-Encoding: gzip\r\nContent-Length: 5\r\n\r\ntoken",
        b"Content-Encoding: deflate\r\nContent-Length: 5\r\n\r\n\xff\xff\xff\xff\xff",
        b"Transfer-Encoding: chunked\r\n\r\nzork\r\ntoken",
        b"Transfer-Encoding: chunked\r\n\r\n5\r\ntoken--\r\n0\r\n\r\n",
    ],
    ids=["gzip", "deflate", "chunk-size", "chunk-end"],
)
@pytest.mark.parametrize("path", [b"/login", b"/healthz"])
def test_a_body_that_cannot_be_decoded_is_refused_quietly(
    served: Callable[..., Served],
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    connect: Callable[..., socket.socket],
    path: bytes,
    lines: bytes,
) -> None:
    """Whether a page wants it or not: an answer, and nothing in the log."""
    site = served(tmp_path)
    form = b"Host: localhost\r\nContent-Type: application/x-www-form-urlencoded\r\n"
    opened = connect(site, b"POST " + path + b" HTTP/1.1\r\n" + form + lines)
    got = opened.makefile("rb").readline().split()
    assert got[1:2] in ([b"400"], [b"405"]), got
    assert site.get("/healthz").status == 200
    assert caplog.records == []


def test_a_form_whose_sender_is_gone_is_dropped_quietly(
    served: Callable[..., Served],
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    connect: Callable[..., socket.socket],
) -> None:
    """It ends the connection before the body is there: nothing in the log."""
    site = served(tmp_path)
    form = b"Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 100\r\n\r\ntok"
    opened = connect(site, b"POST /login HTTP/1.1\r\nHost: localhost\r\n" + form)
    for state in (1, 0):
        while sum(not one.waiting for one in list(site.site.connections._all.values())) != state:
            time.sleep(0.001)
        opened.close()
    assert site.get("/healthz").status == 200, "and by now it has been dropped"
    assert caplog.records == []


# Who may ask for what.


TOKEN = "0123456789abcdef"


@pytest.mark.parametrize(
    "host, accepted",
    [
        ("127.0.0.1:6080", True), ("127.0.0.1", True), ("localhost:1", True), ("LOCALHOST", True),
        ("[::1]:6080", True), ("192.0.2.7:6080", True), ("wiki.example", True),
        ("Wiki.Example.:6080", True), ("evil.example:6080", False), ("", False), ("[::1", False),
        ("127.0.0.1.evil.example", False), ("localhost.evil.example", False),
        ("a@localhost", False),
        ("localhost@evil.example", False), ("127.1", False), ("0x7f.1", False), ("::1", False),
        ("a@127.0.0.1", False), ("@127.0.0.1", False), ("127.0.0.1/x", False),
        ("127.0.0.1:x", False), ("127.0.0.1:999999", False), ("127.0.0.1 ", False),
        ("a@[::1]", False), ("127.0.0.1?", False), ("127.0.0.1\\", False), ("[]", False),
    ],
)  # fmt: skip
def test_hosts(host: str, accepted: bool) -> None:
    """Addresses, localhost and the names of LARM_WEB_HOSTS; a name that leads here is none."""
    assert Guard(TOKEN, ["wiki.example"]).accepts_host(host) is accepted


def test_what_a_browser_gets_is_not_the_token() -> None:
    """Nor anything that is made from it; a session is of one guard, one host and one port."""
    guard, other, host = Guard(TOKEN), Guard(TOKEN), "wiki.example:6080"
    value, cookie = guard.begin_session(host), cookie_name(host)
    session = guard.session({cookie: value}, host)
    assert session is not None
    assert len({session.csrf, value, guard.begin_session(host), TOKEN}) == 4
    for name in (cookie, cookie_name(host.upper()), cookie_name(host, secure=True)):
        assert guard.proof({"Host": host}, {name: value}, "").signed_in
    for elsewhere in ("wiki.example:6081", "wiki.example", "127.0.0.1:6080", ""):
        assert not guard.proof({"Host": elsewhere}, {cookie_name(elsewhere): value}, "").signed_in
        assert not guard.proof({"Host": elsewhere}, {cookie: value}, "").signed_in
    assert not other.proof({"Host": host}, {cookie: value}, "").signed_in
    assert guard.proof({"Authorization": f"Bearer {TOKEN}"}, {}, "").signed_in
    assert guard.proof({"Authorization": f"bearer  {TOKEN} "}, {}, "").signed_in
    for cookies, authorization in (
        ({}, ""), ({cookie: ""}, ""), ({cookie: TOKEN}, ""), ({cookie: "ü"}, ""), ({}, TOKEN),
        ({}, f"Basic {TOKEN}"), ({}, "Bearer "), ({cookie: session.csrf}, "")
    ):  # fmt: skip
        assert not guard.proof(
            {"Host": host, "Authorization": authorization}, cookies, ""
        ).signed_in
    assert not Guard("").proof({"Authorization": "Bearer "}, {}, "").signed_in


def test_a_session_ends() -> None:
    """By itself, by signing out, and when there are too many."""
    now = [0.0]
    guard, host = Guard(TOKEN, clock=lambda: now[0]), "127.0.0.1:6080"
    cookies = {cookie_name(host): guard.begin_session(host)}
    now[0] = SESSION_SECS - 1
    assert guard.session(cookies, host)
    now[0] = SESSION_SECS
    assert guard.session(cookies, host) is None
    cookies = {cookie_name(host): guard.begin_session(host)}
    other = {cookie_name(host): guard.begin_session(host)}
    guard.end_session(cookies, host)
    assert guard.session(cookies, host) is None
    assert guard.session(other, host)
    for _ in range(MAX_SESSIONS):
        guard.begin_session(host)
    assert guard.session(other, host) is None


def sign_in(site: Served, **headers: str) -> str:
    """The Set-Cookie of a browser that signs in."""
    return request(f"{site.url}/login", "POST", headers, {"token": SERVED}).headers["Set-Cookie"]


def test_signing_out_revokes_the_session(served: Callable[..., Served], demo_crawl: Path) -> None:
    """The cookie no longer allows any act, nor listening for updates."""
    site = served(demo_crawl, guard=Guard(SERVED, closed=True))
    cookie = sign_in(site).partition(";")[0]
    page = site.get("/control", Cookie=cookie).text
    csrf = page.partition('name="csrf" value="')[2].partition('"')[0]
    address = site.url.removeprefix("http://")
    listening = http.client.HTTPConnection(address, timeout=120)
    listening.request("GET", "/events", headers={"Cookie": cookie})
    events = listening.getresponse()
    assert events.readline().startswith(b"data: ")
    out = request(f"{site.url}/logout", "POST", {"Cookie": cookie}, {"csrf": csrf})
    assert out.status == 303
    assert "Max-Age=0" in out.headers["Set-Cookie"]
    assert site.get("/", Cookie=cookie).status == 401
    assert b"" in iter(events.readline, None)
    listening.close()


def test_the_cookie_is_for_this_server(served: Callable[..., Served], tmp_path: Path) -> None:
    """Its name stands for host and port, and it has no Domain; where a proxy speaks TLS browsers
    take it from this host alone."""
    site = served(tmp_path)
    plain = sign_in(site)
    assert plain.startswith("larm_")
    assert "Secure" not in plain
    assert "Domain" not in plain
    assert plain.partition("=")[0] != sign_in(site, Host="localhost:6080").partition("=")[0]
    secure = sign_in(site, **{"X-Forwarded-Proto": "https"})
    assert secure.startswith("__Host-larm_")
    assert "Secure" in secure


def test_who_is_not_signed_in_learns_nothing_of_the_crawl(
    served: Callable[..., Served], demo_crawl: Path
) -> None:
    """Where reading asks for the token a browser is led to the way in, and back."""
    site = served(demo_crawl, guard=Guard(SERVED, closed=True))
    got = site.get("/hosts?sort=host", Accept="text/html")
    assert got.status == 303
    page = site.get(got.headers["Location"]).text
    assert 'value="/hosts?sort=host"' in page
    assert site.get("/metrics").status == 401
    assert str(demo_crawl) not in page
    assert "LARM_DIR/web.token" in page


def test_where_the_crawl_lies_is_told_to_the_operator_alone(
    served: Callable[..., Served], demo_crawl: Path, tmp_path: Path
) -> None:
    """At the foot of pages, beside the names of workers, and where there is no crawl."""
    operator = {"Authorization": f"Bearer {SERVED}"}
    worker, none = tmp_path / "worker", tmp_path / "none"
    shutil.copytree(demo_crawl, worker)
    (tmp_path / MANIFEST).write_text(json.dumps({"format": 2, SHARED: {}}))
    assert "worker</strong> only" in served(worker).get("/hosts").text
    for folder, targets in (
        (demo_crawl, LOOKS.values()), (worker, ("/hosts",)), (none, ("/", "/stats.json")),
    ):  # fmt: skip
        site = served(folder)
        for target in targets:
            assert str(folder.parent) not in site.get(shown(target, demo_crawl)).text, target
        assert str(folder) in site.get("/hosts", **operator).text


@pytest.mark.parametrize("token", ["", "short", "x" * 15, "0123456789 abcdef", "ü" * 16, "\t" * 20])
def test_poor_tokens_are_refused_unseen(token: str) -> None:
    """The message does not show it."""
    with pytest.raises(ConfigError) as refused:
        checked_token(token)
    assert not token.strip() or token not in str(refused.value)


def test_the_token_of_a_directory_is_made_once(tmp_path) -> None:  # type: ignore[no-untyped-def]
    """Only its owner can read it; an empty file gets a new one."""
    assert found_token(tmp_path) == ""
    token = stored_token(tmp_path)
    assert stored_token(tmp_path) == token == found_token(tmp_path)
    assert (tmp_path / "web.token").stat().st_mode & 0o777 == 0o600
    (tmp_path / "web.token").write_text("x\n")
    assert stored_token(tmp_path) not in ("x", token)


def test_a_table_sorts_by_a_click_and_by_the_keyboard(
    served: Callable[..., Served], demo_crawl: Path, browser: Browser
) -> None:
    """By number, down at the second click; what a reader with a screen reader hears is set."""
    browser.open(served(demo_crawl).url + "/")
    table = "[data-piece=tables] section:last-child table"
    numbers = f"return [...document.querySelectorAll('{table} td.num')].map(e => +e.textContent)"
    assert len(before := browser.script(numbers)) > 2
    button = f"{table} thead th.num button"

    def pressed(key: str) -> bool:
        with suppress(StaleElementReferenceException):  # the first update replaced the table
            browser.find(button).send_keys(key)
            return True
        return False

    def direction() -> str | None:
        return browser.find(f"{table} thead th.num").get_attribute("aria-sort")

    browser.until(lambda: browser.all(button), "the script ran")
    browser.until(lambda: pressed(" "), "the first press")
    assert browser.script(numbers) == sorted(before)
    assert direction() == "ascending"
    browser.find(button).click()
    assert browser.script(numbers) == sorted(before, reverse=True)
    assert direction() == "descending"


def test_the_overview_leads_with_a_sentence_a_bar_and_what_to_do_next(
    served: Callable[..., Served], demo_crawl: Path, tmp_path: Path, browser: Browser
) -> None:
    """Curves have axes, and values under the pointer; without scripts there is a plain curve."""
    shutil.copytree(demo_crawl, tmp_path / "crawl")
    with (tmp_path / "crawl" / "Monitor.log").open("a") as log:
        for n in range(1, 9):
            pages = n if n < 8 else 7 + 777
            log.write(f"2099-01-31T12:00:0{n}.000Z\t{pages}\t1.0\t{n}\t0\t0\t0\t1\t0\t9\t9\n")
    site = served(tmp_path / "crawl")
    page = LexborHTMLParser(site.get("/").text)
    known = page.css_first("[data-text=known]").text().replace("\u00a0", " ")
    assert re.fullmatch(
        r"\d+ of \d+ known URLs done: \d+ stored(, \d+ (failed|refused|duplicates?))*", known
    )
    done, _, *outcomes = map(int, re.findall(r"\d+", known))
    assert done == sum(outcomes)
    assert 0 < float(page.css_first("progress").attributes["value"] or 0) <= 100
    assert page.css_first("[data-text=pages-top]").text() == "777"
    assert "visits its pages again" in page.css_first("#next").text()
    assert page.css_first(".chart svg path.line").attributes["d"]
    browser.open(site.url + "/")
    browser.until(lambda: len(browser.all(".chart .uplot")) == 2, "curves with axes")
    ActionChains(browser.driver).move_to_element(browser.find(".chart .u-over")).perform()
    browser.until(lambda: re.search(r"\d{4}-\d\d-\d\d", browser.text(".u-legend")), "a value")
    assert browser.errors() == []


def test_updates_end_when_the_crawl_is_deleted(
    served: Callable[..., Served], demo_crawl: Path, tmp_path: Path
) -> None:
    """An open page then says that it is no longer up to date."""
    shutil.copytree(demo_crawl, tmp_path / "crawl")
    site = served(tmp_path / "crawl")
    connection = http.client.HTTPConnection(site.url.removeprefix("http://"), timeout=30)
    connection.request("GET", "/events")
    updates = connection.getresponse()
    assert updates.readline().startswith(b"data: ")
    shutil.rmtree(tmp_path / "crawl")
    end = time.monotonic() + 10
    while updates.readline():
        assert time.monotonic() < end, "updates go on"
    connection.close()
