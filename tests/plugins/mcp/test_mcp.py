"""larmspider mcp: the SDK's own client, over stdio and HTTP, against a real server."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from larmspider.commands.mcp import _token as token_of
from larmspider.errors import ConfigError
from larmspider.plugin import load
from tests.server.test_search_api import GUIDE, TEXT, Asking, asking
from tests.support.crawling import scrapy
from tests.support.web.serving import Got, request

pytestmark = pytest.mark.skipif(find_spec("mcp") is None, reason="needs the package mcp")
__all__ = ["asking"]
COMMAND = [sys.executable, "-m", "scrapy", "mcp"]
HIDDEN, PUBLIC = "http://pay.hr.example/a", "http://wiki.example/"


@pytest.fixture(scope="module")
def anna(asking: Asking) -> str:
    """The token of a person with the role reader."""
    asking.users.add("anna", "reader", "correct horse")
    return asking.tokens.make("of-anna", "search", user="anna")


def called(client: Any, tool: str, **arguments: object) -> Callable[[], Awaitable[str]]:
    """A call that answers with the text, of an error after "error: "."""

    async def call() -> str:
        found = await client.call_tool(tool, arguments)
        text = "".join(one.text for one in found.content)
        text = text.removeprefix(f"Error executing tool {tool}: ")
        return f"error: {text}" if found.is_error else text

    return call


async def use(client: Any) -> None:
    """An assistant of anna searches and reads."""
    tools = {one.name: one for one in (await client.list_tools()).tools}
    assert sorted(tools) == ["read", "search"]
    assert tools["search"].input_schema["required"] == ["query"]
    assert tools["read"].annotations.read_only_hint
    found = await called(client, "search", query="water")()
    assert found.startswith("1 page found")
    assert f"1. Pump guide, section Water\n   {GUIDE}#water\n   html, en, 2001-09-09" in found
    assert "<b>" not in found
    oil = await called(client, "read", url=f"{GUIDE}#oil")()
    assert oil.startswith(f"Title: Pump guide\nURL: {GUIDE}\nDate: 2001-09-09\nLanguage: en\n")
    assert oil.endswith("```\noil --fill\n  5\n```\n\n### Sorts\n\nThree sorts.")
    assert "Gehalt" not in await called(client, "search", query="canteen")()
    assert "canteen" in await called(client, "read", url=PUBLIC)()
    assert await called(client, "read", url=HIDDEN)() == "error: This page is not in the index."
    later = await called(client, "read", url=GUIDE, start=99_999)()
    assert later.startswith("error: start 99,999: expected less than")
    assert "expected one of" in await called(client, "search", query="a", collection="x")()
    for wrong in ({"query": "a", "size": 99}, {"page": 1}, {"query": 5}):
        assert (await called(client, "search", **wrong)()).startswith("error: ")


@contextmanager
def listening(asking: Asking, token: str, *arguments: str) -> Iterator[str]:
    """The address of the process over HTTP."""
    process = subprocess.Popen(
        [*COMMAND, "--url", asking.url, "--http", "127.0.0.1:0", *arguments],
        env={**os.environ, "LARMSPIDER_TOKEN": token}, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert process.stderr is not None
        line = process.stderr.readline()
        found = re.search(r"http://127\.0\.0\.1:[0-9]+/mcp", line)
        assert found, line
        yield found[0]
    finally:
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 0
        process.stderr.close()


@pytest.mark.acceptance
def test_over_stdio(asking: Asking, anna: str, tmp_path: Path) -> None:
    """The token is in a file."""
    file = tmp_path / "token"
    file.write_text(anna + "\n")

    async def run() -> None:
        arguments = [*COMMAND[1:], "--url", asking.url, "--token-file", str(file)]
        parameters = import_module("mcp").StdioServerParameters(command=COMMAND[0], args=arguments)
        async with import_module("mcp").Client(parameters) as client:
            await use(client)

    asyncio.run(run())


@pytest.mark.acceptance
def test_over_http(asking: Asking, anna: str) -> None:
    """The token is in the environment. Other hosts and origins are refused."""

    async def run(address: str) -> None:
        async with import_module("mcp").Client(address) as client:
            await use(client)

    call = b'{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}'
    types = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}

    def post(address: str, **headers: str) -> Got:
        return request(address, "POST", types | headers, call)

    with listening(asking, anna, "--name", "tools.example") as address:
        asyncio.run(run(address))
        assert post(address, Host="evil.example").status == 421
        assert post(address, Origin="http://evil.example").status == 403
        assert post(address, Host="tools.example:6090").status not in (403, 421)
        assert request(address, "POST", types, b"x" * 1_000_001).status == 413


def test_a_long_page_is_read_on() -> None:
    """The text says where the next part begins."""
    section = {"anchor": None, "heading": "", "level": 0, "target": None, "text": TEXT}
    found = {
        "url": "http://h/", "target": None, "title": "T", "language": "", "modified": None,
        "fetched": 1e9, "section": None, "start": 20_000, "next": 40_000, "chars": 50_000,
        "cut": True, "sections": [section],
    }  # fmt: skip
    server = load("mcp.server")
    text = server.page_text(found)
    assert text.startswith("Title: T\nURL: http://h/\nDate: 2001-09-09\n\nPump guide")
    assert text.endswith("[Characters 20,000 to 40,000 of 50,000; read on with start=40000]")
    assert server.page_text(found | {"next": None}).endswith("is not kept for readers.]")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--url", "ftp://h"], "--url ftp://h: expected an address such as"),
        (["--http", "192.0.2.1:1"], "--http 192.0.2.1:1: "),
        (["--name", "h"], "--name: expected together with --http"),
    ],
)
def test_bad_input(arguments: list[str], said: str, tmp_path: Path) -> None:
    """One line and status 2."""
    ran = scrapy("mcp", *arguments, cwd=tmp_path)
    assert (ran.status, ran.out, len(ran.err.splitlines())) == (2, "", 1), ran.err
    assert said in ran.err


def test_tokens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A token comes from a file or from the environment. A wrong token is not shown."""
    file = tmp_path / "token"
    for content, said in (
        (None, "No such file"), (b" \n", "it is empty"), (b"\xff", "expected a token alone"),
        (b"a\nsecret", "of printable ASCII"), (b"secret" * 200, "of printable ASCII"),
    ):  # fmt: skip
        if content is not None:
            file.write_bytes(content)
        with pytest.raises(ConfigError, match=said) as error:
            token_of(str(file))
        assert "secret" not in str(error.value)
    file.write_text("one\n")
    monkeypatch.setenv("LARMSPIDER_TOKEN", "two")
    assert (token_of(str(file)), token_of(None)) == ("one", "two")
    monkeypatch.delenv("LARMSPIDER_TOKEN")
    assert token_of(None) == ""


def test_places() -> None:
    """Where it listens, and by which names."""
    server = load("mcp.server")
    assert server.Place.of("[::1]:6090") == ("::1", 6090)
    places = [server.Place.of(f"{one}:1") for one in ("localhost", "127.0.0.2", "h")]
    assert [place.is_loopback for place in places] == [True, True, False]
    assert "http://[::1]:*" in server.security(server.Place("::1", 1), []).allowed_origins
    for wrong in ("6090", "h:99999", "h:1/x", ":1"):
        with pytest.raises(ConfigError, match="expected ADDRESS:PORT"):
            server.Place.of(wrong)
