"""The application around the pages: what it serves of itself, and what each directory is."""

from __future__ import annotations

import re
import shutil
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from larmspider.errors import ConfigError
from larmspider.web.auth import Guard, checked_token, found_token, stored_token
from tests.support.web.browser import Browser
from tests.support.web.serving import ADDRESS, LOOKS, Served, shown


def test_serves_its_own_files_only(served: Callable[..., Served], demo_crawl: Path) -> None:
    """Style and icon have their types; no path leads out of static/."""
    site = served(demo_crawl)
    assert site.get("/static/larm.css").headers["Content-Type"].startswith("text/css")
    assert site.get("/static/icon.svg").status == 200
    for name in ("..%2fguard.py", "%2e%2e/guard.py", "../guard.py", "x.css", ".", "larm.css/"):
        assert site.get(f"/static/{name}").status == 404, name


def test_an_empty_directory_says_so(served: Callable[..., Served], tmp_path: Path) -> None:
    """And so does one that is not there, or no crawl's."""
    site = served(tmp_path / "crawl")
    assert "is no directory" in site.get("/").text
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


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [1280, 390])
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
    for element in browser.all("input:not([type=hidden], [hidden]), select, textarea, button"):
        assert element.accessible_name, element.get_attribute("outerHTML")


def test_links_and_urls_are_not_mixed_up(served: Callable[..., Served], demo_crawl: Path) -> None:
    """Filters reject links; what robots.txt refuses are URLs, and counted as those alone."""
    page = served(demo_crawl).get("/").text
    links = page[page.index("Links rejected by filter") :]
    assert '<th scope="row">scope</th>' in links
    assert ">robots<" not in links
    assert 'data-text="refused">0<' not in page


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
    """With 400, and nothing in the log: whoever can connect could fill it."""
    port = int(served(tmp_path).url.rpartition(":")[2])
    with socket.create_connection((ADDRESS, port), timeout=30) as connection:
        connection.sendall(lines + b"\r\n\r\n")
        assert connection.makefile("rb").readline().split()[1] == b"400"
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
    """The cookie and the forms' word are made from it; each token has a cookie name of its own."""
    guard, other = Guard(TOKEN), Guard(TOKEN + "x")
    assert len({guard.session, guard.csrf, guard.cookie, TOKEN}) == 4
    assert guard.cookie != other.cookie
    assert guard.signed_in({guard.cookie: guard.session})
    assert guard.signed_in({}, f"Bearer {TOKEN}")
    assert guard.signed_in({}, f"bearer  {TOKEN} ")
    for cookies, authorization in (
        ({}, ""), ({guard.cookie: ""}, ""), ({guard.cookie: TOKEN}, ""), ({guard.cookie: "ü"}, ""),
        ({other.cookie: other.session}, ""), ({}, TOKEN), ({}, f"Basic {TOKEN}"), ({}, "Bearer "),
    ):  # fmt: skip
        assert not guard.signed_in(cookies, authorization)


@pytest.mark.parametrize("token", ["", "short", "x" * 15, "0123456789 abcdef", "ü" * 16, "\t" * 20])
def test_poor_tokens_are_refused_unseen(token: str) -> None:
    """The message does not show it."""
    with pytest.raises(ConfigError) as refused:
        checked_token(token)
    assert not token.strip() or token not in str(refused.value)


def test_the_token_of_a_directory_is_made_once(tmp_path) -> None:  # type: ignore[no-untyped-def]
    """For its owner alone, and anew where the file holds none."""
    assert found_token(tmp_path) == ""
    token = stored_token(tmp_path)
    assert stored_token(tmp_path) == token == found_token(tmp_path)
    assert (tmp_path / "web.token").stat().st_mode & 0o777 == 0o600
    (tmp_path / "web.token").write_text("x\n")
    assert stored_token(tmp_path) not in ("x", token)
