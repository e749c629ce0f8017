"""Bytes and lines have limits: the fetch ends as soon as one is reached, and says which."""

from __future__ import annotations

import gzip
import hashlib
import os
import subprocess
import sys
import zlib
from collections.abc import Callable
from functools import partial
from itertools import repeat
from pathlib import Path
from typing import Any

import brotli
import pycurl
import pytest
from scrapy import Request
from scrapy.settings import Settings

from larmspider.errors import ConfigError
from larmspider.fetch import curl_handler
from larmspider.fetch.curl_options import set_option
from larmspider.fetch.errors import kind_of, message_of
from larmspider.fetch.limits import Limits
from larmspider.fetch.transfer import Transfer
from larmspider.requests import BLOB, TOO_LARGE
from tests.support.crawling import PROJECT
from tests.support.fetch.fetching import Fetcher
from tests.support.servers.scripted import Raw, Reply, ScriptedServer

Start = Callable[..., ScriptedServer]
Make = Callable[..., Fetcher]
Pack = Callable[[bytes], bytes]
OK = b"HTTP/1.1 200 OK\r\n"
MEGABYTE = b"x" * 1_000_000


def _set_but(left_out: int) -> Callable[[Transfer, int, Any], None]:
    """set_option() that does not set one option."""

    def set_some(transfer: Transfer, option: int, value: Any) -> None:
        if option != left_out:
            set_option(transfer, option, value)

    return set_some


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(Raw(OK + b"Content-Length: 5000000000\r\n\r\n", hang=True), id="promised"),
        pytest.param(Raw([OK + b"\r\n", *repeat(MEGABYTE, 1000)]), id="until it closes"),
        pytest.param(
            Raw([OK + b"Transfer-Encoding: chunked\r\n\r\n",
                 *repeat(b"f4240\r\n" + MEGABYTE + b"\r\n", 1000)]),
            id="chunks",
        ),
    ],
)  # fmt: skip
@pytest.mark.parametrize("libcurl_knows", [True, False])
def test_a_body_ends_at_its_limit(
    scripted_server: Start,
    fetcher: Make,
    monkeypatch: pytest.MonkeyPatch,
    answer: Raw,
    libcurl_knows: bool,
) -> None:
    """too-big, with the setting's name, and the server is not listened to any longer; also with a
    libcurl older than 8.4, whose own limit is for lengths that are promised."""
    if not libcurl_knows and not answer.hang:
        monkeypatch.setattr(curl_handler, "set_option", _set_but(pycurl.MAXFILESIZE_LARGE))
    server = scripted_server({"*": answer})
    error = fetcher(DOWNLOAD_MAXSIZE=100_000).failure(server.url())
    assert kind_of(error) == "too-big"
    assert "DOWNLOAD_MAXSIZE" in message_of(error)


@pytest.mark.parametrize("size", [999, 1000])
def test_a_body_of_exactly_the_limit_is_fetched(
    scripted_server: Start, fetcher: Make, size: int
) -> None:
    server = scripted_server({"*": Reply(body=b"x" * size)})
    assert len(fetcher(DOWNLOAD_MAXSIZE=1000).get(server.url()).body) == size


@pytest.mark.parametrize("announced", [True, False])
@pytest.mark.parametrize(("size", "taken"), [(1500, True), (2001, False)])
def test_a_document_has_a_limit_of_its_own(
    scripted_server: Start, fetcher: Make, size: int, taken: bool, announced: bool
) -> None:
    """By the type in the head; a larger one is a response without a body, and no failure."""
    body, head = b"x" * size, {"Content-Type": "application/pdf"}
    if not announced:
        head["Connection"] = "close"
        head["Transfer-Encoding"] = "identity"
    server = scripted_server({"*": Reply(200, head, body, close=not announced)})
    one = fetcher(DOWNLOAD_MAXSIZE=1000, LARM_DOCUMENT_MAXSIZE_BYTES=2000)
    response = one.get(server.url())
    assert response.body == (body if taken else b"")
    assert (TOO_LARGE in response.flags) is not taken
    head["Content-Type"] = "text/html"
    assert kind_of(one.failure(server.url())) == "too-big"


@pytest.mark.parametrize("how", ["announced", "unannounced", "gzip"])
def test_a_body_that_is_larger_than_memory_is_a_file(
    scripted_server: Start, fetcher: Make, tmp_path: Path, how: str
) -> None:
    """For the Request of a page alone; the file lasts as long as the Request does."""
    body, head = bytes(range(256)) * 40, {"Content-Type": "text/html"}
    sent = gzip.compress(body) if how == "gzip" else body
    if how == "gzip":
        head["Content-Encoding"] = "gzip"
    elif how == "unannounced":
        head |= {"Connection": "close", "Transfer-Encoding": "identity"}
    server = scripted_server({"*": Reply(200, head, sent, close=how == "unannounced")})
    blobs = {"LARM_DIR": str(tmp_path), "LARM_DOCUMENT_MAXSIZE_BYTES": 1100}
    one = fetcher(DOWNLOAD_MAXSIZE=1000, LARM_BLOB_BYTES=10_240, **blobs)
    response = one.get(server.url(), meta={"from_page": ""})
    blob = response.meta[BLOB]
    assert response.body == b""
    assert (blob.path.read_bytes(), blob.size) == (body, len(body))
    assert blob.digest == hashlib.sha1(body).hexdigest()
    del response, blob
    assert not list((tmp_path / "blobs").iterdir())
    assert kind_of(one.failure(server.url())) == "too-big"
    error = fetcher(DOWNLOAD_MAXSIZE=1000, LARM_BLOB_BYTES=10_239, **blobs).failure(
        server.url(), meta={"from_page": ""}
    )
    assert (kind_of(error), "LARM_BLOB_BYTES" in message_of(error)) == ("too-big", True)
    assert not list((tmp_path / "blobs").iterdir())


@pytest.mark.parametrize(
    ("name", "pack"),
    [
        ("br", partial(brotli.compress, quality=5)),
        ("gzip, gzip", lambda body: gzip.compress(gzip.compress(body))),
    ],
)
def test_a_bomb_is_not_unpacked_into_a_file(
    scripted_server: Start, fetcher: Make, tmp_path: Path, name: str, pack: Pack
) -> None:
    """30 MB would be allowed, but not in one piece: they would be in memory first."""
    packed = pack(MEGABYTE * 30)
    server = scripted_server({"*": Reply(headers={"Content-Encoding": name}, body=packed)})
    settings = {"LARM_DIR": str(tmp_path), "LARM_BLOB_BYTES": 100_000_000}
    error = fetcher(**settings).failure(server.url(), meta={"from_page": ""})
    assert kind_of(error) == "too-big"
    assert not list((tmp_path / "blobs").glob("*"))


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"DOWNLOAD_MAXSIZE": 2000}, "LARM_BLOB_BYTES=2000: expected 0, for none, or more than DO"),
        ({"DOWNLOAD_MAXSIZE": 0}, r"more than DOWNLOAD_MAXSIZE=0 \(no limit\)"),
        ({"DOWNLOAD_MAXSIZE": 1000}, "more than LARM_DOCUMENT_MAXSIZE_BYTES=48000000"),
    ],
)
def test_blobs_are_larger_than_what_memory_may_hold(settings: dict[str, int], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        Limits.from_settings(Settings({"LARM_BLOB_BYTES": 2000, **settings}))


def test_a_request_may_have_its_own_limit(scripted_server: Start, fetcher: Make) -> None:
    """meta download_maxsize, 0 for none; the next one has the setting's again."""
    server, one = (
        scripted_server({"*": Reply(body=b"x" * 2000)}),
        fetcher(DOWNLOAD_MAXSIZE=1000),
    )
    assert kind_of(one.failure(server.url())) == "too-big"
    for own in (0, 2000):
        assert len(one.get(server.url(), meta={"download_maxsize": own}).body) == 2000
    assert kind_of(one.failure(server.url())) == "too-big"


@pytest.mark.parametrize(
    ("name", "pack"),
    [
        ("gzip", gzip.compress),
        ("deflate", zlib.compress),
        ("br", partial(brotli.compress, quality=1)),
        ("gzip, gzip", lambda body: gzip.compress(gzip.compress(body))),
    ],
)
def test_a_bomb_stops_at_the_limit(
    scripted_server: Start, fetcher: Make, name: str, pack: Pack
) -> None:
    """30 MB out of some KB: no more is unpacked than the limit, and one byte to know it."""
    packed = pack(MEGABYTE * 30)
    assert len(packed) < 60_000
    server = scripted_server({"*": Reply(200, {"Content-Encoding": name}, packed)})
    error = fetcher(DOWNLOAD_MAXSIZE=100_000).failure(server.url())
    assert kind_of(error) == "too-big"
    assert "after decompression" in message_of(error)


def test_an_endless_bomb_is_not_waited_for(scripted_server: Start, fetcher: Make) -> None:
    """The limit holds while it arrives: its end never comes."""
    stream = zlib.compressobj(wbits=31)
    packed = stream.compress(MEGABYTE * 10) + stream.flush(zlib.Z_SYNC_FLUSH)
    server = scripted_server({"*": Raw(OK + b"Content-Encoding: gzip\r\n\r\n" + packed, hang=True)})
    one = fetcher(DOWNLOAD_MAXSIZE=100_000, DOWNLOAD_TIMEOUT=60)
    assert kind_of(one.failure(server.url())) == "too-big"


BYTES = "more than 20000 bytes of headers (LARM_HEADER_BYTES)"
LINES = "more than 500 header lines (LARM_HEADER_LINES)"
INTERIM = b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"


@pytest.mark.parametrize(
    ("chunks", "message"),
    [
        pytest.param([OK, *repeat(b"X: %s\r\n" % (b"x" * 1000), 1000)], BYTES, id="endless"),
        pytest.param([OK + b"X: ", *repeat(b"x" * 1000, 1000)], "a header line", id="one line"),
        pytest.param([OK, *repeat(b"X: y\r\n", 9_000)], LINES, id="many short lines"),
        pytest.param([*repeat(INTERIM, 10_000)], LINES, id="endless 1xx"),
    ],
)
def test_a_head_ends_at_its_limit(
    scripted_server: Start, fetcher: Make, chunks: list[bytes], message: str
) -> None:
    """In bytes and lines, with all that comes before the answer."""
    server = scripted_server({"*": Raw(chunks, hang=True)})
    error = fetcher(LARM_HEADER_BYTES=20_000, DOWNLOAD_TIMEOUT=20).failure(server.url())
    assert kind_of(error) == "too-big"
    assert message_of(error).startswith(message)
    assert "LARM_HEADER_" in message_of(error)


def test_hints_before_the_answer_are_no_part_of_it(scripted_server: Start, fetcher: Make) -> None:
    server = scripted_server({"*": Raw(INTERIM * 3 + OK + b"A: b\r\n\r\nbody")})
    response = fetcher().get(server.url())
    assert (response.status, response.body, dict(response.headers)) == (
        200, b"body", {b"A": [b"b"]},
    )  # fmt: skip


def test_trailers_are_no_headers(scripted_server: Start, fetcher: Make) -> None:
    body = b"Transfer-Encoding: chunked\r\nTrailer: X\r\n\r\n4\r\nbody\r\n0\r\nX: late\r\n\r\n"
    response = fetcher().get(scripted_server({"*": Raw(OK + body)}).url())
    assert (response.body, "X" in response.headers) == (b"body", False)


def test_a_folded_header_is_one(scripted_server: Start, fetcher: Make) -> None:
    """RFC 9112 5.2: the fold is a space."""
    answer = Raw(OK + b"X: one\r\n two\r\nY: z\r\n\r\nbody")
    response = fetcher().get(scripted_server({"*": answer}).url())
    assert (response.headers["X"], response.headers["Y"]) == (b"one two", b"z")


def test_a_body_may_be_cut_as_if_it_were_whole(scripted_server: Start, fetcher: Make) -> None:
    """meta larm_cut_bytes, for robots.txt: this number of bytes of an endless body."""
    server = scripted_server({"*": Raw([OK + b"\r\n", *repeat(MEGABYTE, 1000)])})
    request = Request(server.url(), meta={"larm_cut_bytes": 1234})
    response = fetcher(DOWNLOAD_MAXSIZE=0).fetch(request)
    assert (len(response.body), response.flags) == (1234, ["download_stopped"])


def test_a_time_may_be_longer_than_libcurl_can_count(scripted_server: Start, fetcher: Make) -> None:
    server = scripted_server({"*": "x"})
    one = fetcher(DOWNLOAD_TIMEOUT=1e300, LARM_CONNECT_TIMEOUT_SECS=1e300)
    assert one.get(server.url()).status == 200
    assert one.get(server.url(), meta={"download_timeout": float("inf")}).status == 200


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("LARM_CONNECT_TIMEOUT_SECS", 0),
        ("LARM_LOW_SPEED_BYTES", -1),
        ("LARM_LOW_SPEED_SECS", "soon"),
        ("LARM_HEADER_BYTES", 10**9),
        ("LARM_HEADER_LINES", 0),
        ("LARM_DNS_CACHE_SECS", -1),
        ("LARM_KEPT_CONNECTIONS", 0),
        ("DOWNLOAD_MAXSIZE", "16M"),
    ],
)
def test_a_limit_that_is_none_is_an_error(name: str, value: Any) -> None:
    with pytest.raises(ConfigError, match=name):
        Limits.from_settings(Settings({name: value}))


OPEN_FILES = """
import resource

resource.setrlimit(resource.RLIMIT_NOFILE, (100, 1000))
from scrapy.settings import Settings
from larmspider.errors import ConfigError
from larmspider.fetch.limits import check_open_files

settings = Settings({"LARM_WEB": "yes"})
check_open_files(settings, 408, "CONCURRENT_REQUESTS")
print(resource.getrlimit(resource.RLIMIT_NOFILE))
try:
    check_open_files(settings, 409, "CONCURRENT_REQUESTS")
except ConfigError as error:
    print(error)
settings.set("LARM_WEB", "no")
check_open_files(settings, 409, "CONCURRENT_REQUESTS")
try:
    check_open_files(settings, 999, "CONCURRENT_REQUESTS")
except ConfigError as error:
    print(error)
"""


def test_open_files_are_as_many_as_the_system_allows(tmp_path: Path) -> None:
    """The soft limit is raised; where the hard one is too low for the threads, they are refused."""
    environment = {**os.environ, "PYTHONPATH": str(PROJECT)}
    command = [sys.executable, "-c", OPEN_FILES]
    said = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    assert said[0] == "(1000, 1000)"
    assert said[1].startswith("CONCURRENT_REQUESTS=409: 1,001 open files are needed")
    assert "may have 1,000: raise the hard limit" in said[1]
    assert said[1].endswith(", lower these, or do without the pages (LARM_WEB=no)")
    assert said[2].endswith(" of containers), or lower these"), "there are no pages"
