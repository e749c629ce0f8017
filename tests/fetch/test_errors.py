"""Each way in which a fetch fails has its kind, by real servers and their raw bytes."""

from __future__ import annotations

import socket
from collections.abc import Callable
from itertools import repeat

import pytest
from scrapy import Request, exceptions

from larmspider.fetch import errors
from larmspider.fetch.errors import kind_of, message_of
from larmspider.frontier.politeness import KINDS, failure_kind
from tests.support.fetch.fetching import Fetcher
from tests.support.servers.nginx import Nginx
from tests.support.servers.scripted import Raw, Reply, Route, ScriptedServer

Start = Callable[..., ScriptedServer]
Make = Callable[..., Fetcher]
OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        pytest.param(b"", "reset", id="closes without a word"),
        pytest.param(b"HTTP/1.1 200 OK\r\nServer: ", "reset", id="closes in its head"),
        pytest.param(OK + b"Content-Length: 9\r\n\r\nshort", "reset", id="length too large"),
        pytest.param(CHUNKED + b"5\r\nhello\r\n", "reset", id="no last chunk"),
        pytest.param(CHUNKED + b"zz\r\nhello\r\n", "bad-response", id="no chunk"),
        pytest.param(CHUNKED + b"ffffffffffffffffff\r\nx", "bad-response", id="endless chunk"),
        pytest.param(OK + b"Content-Length: -5\r\n\r\nabc", "bad-response", id="negative length"),
        pytest.param(OK + b"Content-Length: abc\r\n\r\n", "bad-response", id="textual length"),
        pytest.param(
            OK + b"Content-Length: 3\r\nContent-Length: 4\r\n\r\nabcd", "bad-response", id="lengths"
        ),
        pytest.param(b"<html>HTTP/0.9", "bad-response", id="HTTP/0.9"),
        pytest.param(b"HTTP/7 200 OK\r\n\r\n", "bad-response", id="HTTP/7"),
        pytest.param(b"HTTP/1.1 206 P\r\n\r\n<p>", "bad-response", id="a part"),
        pytest.param(b"HTTP/1.1 226 IM\r\n\r\n<p>", "bad-response", id="a difference"),
        pytest.param(
            OK + b"Content-Range: bytes 0-2/9\r\n\r\nabc", "bad-response", id="a part as 200"
        ),
        pytest.param(b"HTTP/1.1 2 OK\r\n\r\n", "bad-response", id="status 2"),
        pytest.param(b"HTTP/1.1 99999 OK\r\n\r\nx", "bad-response", id="status 99999, body"),
        pytest.param(b"HTTP/1.1 99999 OK\r\n\r\n", "bad-response", id="status 99999"),
        pytest.param(b"HTTP/1.1 600 OK\r\n\r\n", "bad-response", id="status 600"),
        pytest.param(b"HTTP/1.1 000 OK\r\n\r\n", "bad-response", id="status 0"),
        pytest.param(b"HTTP/1.1 101 Hm\r\n\r\nx", "bad-response", id="status 101"),
        pytest.param(b"HTTP/1.1 OK\r\n\r\n", "bad-response", id="no status"),
        pytest.param(OK + b"X: a\0b\r\n\r\n", "bad-response", id="NUL in a header"),
        pytest.param(OK + b"no colon\r\n\r\n", "bad-response", id="header without colon"),
        pytest.param(
            OK + b"Content-Encoding: gzip\r\n\r\nplain", "bad-response", id="gzip that is none"
        ),
        pytest.param(
            OK + b"Content-Encoding: gzip,gzip,gzip,gzip,gzip,gzip\r\n\r\nx",
            "bad-response",
            id="six encodings",
        ),
    ],
)
def test_what_is_no_answer(scripted_server: Start, fetcher: Make, answer: bytes, kind: str) -> None:
    server = scripted_server({"*": Raw(answer)})
    error = fetcher(DOWNLOAD_TIMEOUT=5).failure(server.url())
    assert kind_of(error) == kind, message_of(error)


def test_nobody_there(fetcher: Make) -> None:
    """No address, and no server at an address."""
    one = fetcher()
    error = one.failure("http://nowhere.invalid/")
    assert isinstance(error, exceptions.CannotResolveHostError)
    assert (kind_of(error), message_of(error)) == ("dns", "Could not resolve host: nowhere.invalid")
    error = one.failure("http://127.0.0.1:9/")
    assert isinstance(error, exceptions.DownloadConnectionRefusedError)
    assert kind_of(error) == "refused"


def test_a_certificate_that_does_not_verify(scripted_server: Start, fetcher: Make) -> None:
    """tls, and nothing is asked; DOWNLOAD_VERIFY_CERTIFICATES=False fetches it."""
    server = scripted_server({"*": "x"}, tls=True)
    error = fetcher().failure(server.url())
    assert isinstance(error, exceptions.DownloadFailedError)
    assert kind_of(error) == "tls"
    assert server.log == []
    assert fetcher(DOWNLOAD_VERIFY_CERTIFICATES=False).get(server.url()).body == b"x"


def test_tls_where_plain_http_is_spoken(nginx: Callable[..., Nginx], fetcher: Make) -> None:
    url = nginx({"127.77.3.2": "return 200 x;"}).url().replace("http:", "https:")
    assert kind_of(fetcher().failure(url)) == "tls"


SILENT = Raw(b"", hang=True)
HALF = Raw(OK + b"Content-Length: 9\r\n\r\nshort", hang=True)
TRICKLE = Raw([OK + b"\r\n", *repeat(b"x", 10_000)], pause=0.1)


@pytest.mark.parametrize("answer", [SILENT, HALF], ids=["no word", "half a body"])
def test_the_total_time_has_a_limit(scripted_server: Start, fetcher: Make, answer: Raw) -> None:
    """DOWNLOAD_TIMEOUT, or meta download_timeout; the message names it."""
    server = scripted_server({"*": answer})
    error = fetcher(DOWNLOAD_TIMEOUT=0.3).failure(server.url())
    assert isinstance(error, exceptions.DownloadTimeoutError)
    assert message_of(error) == "took longer than 0.3 s (DOWNLOAD_TIMEOUT)"
    error = fetcher().failure(server.url(), meta={"download_timeout": 0.2})
    assert (kind_of(error), "0.2 s" in message_of(error)) == ("timeout", True)


def test_what_comes_after_the_total_time_is_no_page(scripted_server: Start, fetcher: Make) -> None:
    """A server that answers a second late has not answered."""
    server = scripted_server({"*": Reply(body=b"late", delay=1.3)})
    assert kind_of(fetcher(DOWNLOAD_TIMEOUT=0.3).failure(server.url())) == "timeout"


@pytest.mark.parametrize("secs", [-1, "-0.5", float("nan"), "soon"])
def test_a_time_that_is_none(fetcher: Make, secs: object) -> None:
    """Nothing is begun that would have to be over before."""
    error = fetcher().failure("http://127.0.0.1:9/", meta={"download_timeout": secs})
    assert (kind_of(error), "download_timeout" in message_of(error)) == ("bad-url", True)


@pytest.mark.parametrize("secs", [0, None])
def test_no_time_is_that_of_the_setting(
    scripted_server: Start, fetcher: Make, secs: object
) -> None:
    server = scripted_server({"*": SILENT})
    error = fetcher(DOWNLOAD_TIMEOUT=0.3).failure(server.url(), meta={"download_timeout": secs})
    assert message_of(error) == "took longer than 0.3 s (DOWNLOAD_TIMEOUT)"


def test_the_connection_has_a_limit(fetcher: Make) -> None:
    """A full backlog: the connection is never accepted."""
    with socket.create_server(("127.77.3.1", 0), backlog=0) as listening:
        address = listening.getsockname()
        waiting = [socket.socket() for _ in range(3)]
        for one in waiting:
            one.setblocking(False)
            one.connect_ex(address)
        settings = {"LARM_CONNECT_TIMEOUT_SECS": 0.3, "DOWNLOAD_TIMEOUT": 20}
        error = fetcher(**settings).failure(f"http://127.77.3.1:{address[1]}/")
        for one in waiting:
            one.close()
    assert kind_of(error) == "timeout"
    assert message_of(error) == "no connection within 0.3 s (LARM_CONNECT_TIMEOUT_SECS)"


@pytest.mark.parametrize("answer", [TRICKLE, SILENT], ids=["trickled body", "no word"])
def test_a_slow_answer_is_given_up(scripted_server: Start, fetcher: Make, answer: Raw) -> None:
    """10 bytes/s or none where 1,000 are demanded, long before the total time is over."""
    server = scripted_server({"*": answer})
    settings = {"LARM_LOW_SPEED_BYTES": 1000, "LARM_LOW_SPEED_SECS": 1, "DOWNLOAD_TIMEOUT": 60}
    error = fetcher(**settings).failure(server.url())
    assert isinstance(error, exceptions.DownloadTimeoutError)
    assert kind_of(error) == "slow"
    assert "1000 bytes/s for 1 s" in message_of(error)


@pytest.mark.parametrize(
    ("url", "options"),
    [
        ("http://127.0.0.1:1/", {"headers": {"X": "a\r\nInjected: 1"}}),
        ("http://127.0.0.1:1/", {"method": "GET / HTTP/1.1\r\nX:"}),
        ("http://127.0.0.1:1/", {"meta": {"proxy": "ftp://127.0.0.1:1"}}),
        ("http://127.0.0.1:1/", {"meta": {"proxy": "http://127.0.0.1:99999"}}),
    ],
)
def test_what_cannot_be_sent_is_not(fetcher: Make, url: str, options: dict[str, object]) -> None:
    """bad-url: nothing is tried, the host is not to blame; the next fetch is not disturbed."""
    one = fetcher()
    assert kind_of(one.failure(url, **options)) == "bad-url"
    assert kind_of(one.failure("http://127.0.0.1:9/")) == "refused"


@pytest.mark.parametrize("url", ["http://h:99999/", "http:///path", "http://[::1/", "http://a b/"])
def test_a_url_without_a_host_that_can_be_asked(fetcher: Make, url: str) -> None:
    """Request lets none of these pass; a middleware may make its own."""
    request = Request("http://joe:canary@h/")
    request._url = url
    with pytest.raises(errors.BadUrl):
        fetcher().fetch(request)


def test_every_kind_is_known_to_the_frontier() -> None:
    """Each has an effect on URL and host; scope and robots.txt are checked before the fetch."""
    kinds = {
        cls.kind
        for cls in vars(errors).values()
        if isinstance(cls, type) and issubclass(cls, Exception) and hasattr(cls, "kind")
    }
    assert kinds - set(KINDS) == {"robots", "scope"}
    for kind in ("address", "bad-url", "too-big"):
        assert not any(failure_kind(kind))


def test_no_error_tells_a_password(scripted_server: Start, fetcher: Make) -> None:
    """Neither of the URL nor of the proxy, whatever fails."""
    server, one = scripted_server({"*": Reply(body=b"x" * 100)}), fetcher(DOWNLOAD_MAXSIZE=10)
    proxy = {"proxy": "http://joe:canary@127.0.0.1:9"}
    failures = [
        one.failure(f"http://joe:canary@127.0.0.1:{server.port}/"),
        one.failure("http://joe:canary@127.0.0.1:9/"),
        one.failure("http://joe:canary@nowhere.invalid/"),
        one.failure(server.url(), meta=proxy),
        one.failure(server.url(), meta={"proxy": "gopher://joe:canary@127.0.0.1:9"}),
    ]
    for error in failures:
        assert "canary" not in f"{error!r} {error.__cause__!r} {error.__context__!r}"


DATALOSS: list[Route] = [
    Raw(OK + b"Content-Length: 9\r\n\r\nshort"),
    Raw(CHUNKED + b"5\r\nshort\r\n"),
    Raw(CHUNKED + b"5\r\nshort\r\nzz\r\n"),
]


@pytest.mark.parametrize("answer", DATALOSS)
def test_part_of_a_body_is_an_answer_where_that_is_wanted(
    scripted_server: Start, fetcher: Make, answer: Route
) -> None:
    """DOWNLOAD_FAIL_ON_DATALOSS=False, or its key in meta: the flag dataloss."""
    server = scripted_server({"*": answer})
    error = fetcher().failure(server.url())
    assert isinstance(error, exceptions.ResponseDataLossError)
    response = fetcher(DOWNLOAD_FAIL_ON_DATALOSS=False).get(server.url())
    assert (response.body, response.flags) == (b"short", ["dataloss"])
    response = fetcher().get(server.url(), meta={"download_fail_on_dataloss": False})
    assert response.flags == ["dataloss"]


def test_a_part_that_is_asked_for_and_a_range_that_is_the_whole_are_well(
    scripted_server: Start, fetcher: Make
) -> None:
    part = Reply(206, {"Content-Range": "bytes 0-2/9"}, b"abc")
    whole = Reply(200, {"Content-Range": "bytes 0-2/3"}, b"abc")
    server = scripted_server({"/part": part, "/whole": whole})
    assert fetcher().get(server.url("/part"), headers={"Range": "bytes=0-2"}).body == b"abc"
    assert fetcher().get(server.url("/whole")).body == b"abc"
