"""Names, certificates and robots.txt files that are wrong."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta

from tests.hostile.link_cases import NOT_ASKED
from tests.support.hostile.behaviours import (
    MB,
    endless,
    gzip_bomb,
    head,
    html,
    links_to,
    reply,
    sends,
)
from tests.support.hostile.outcome import fails, page
from tests.support.hostile.server import Behaviour, Case, Wire
from tests.support.servers.certificate import self_signed

TRUSTED: list[bytes] = []
"""Certificates, as PEM, that the crawl trusts; complete when the server has started."""

HOSTS = [
    Case("name-that-does-not-exist", sends(), fails("dns"), name_as="no-host.invalid"),
    Case(
        "name-with-underscore", sends(html("well")), page(200, b"well"), name_as="my_wiki.localhost"
    ),
    Case("address-of-metadata", sends(html("x")), fails("address"), name_as="169.254.169.254"),
    Case("nothing-listens", sends(), fails("refused"), listens=False),
    Case(
        "certificate-that-is-trusted",
        sends(html("well")),
        page(200, b"well"),
        tls=lambda address: self_signed(address, trusted=TRUSTED),
    ),
    Case("certificate-self-signed", sends(html("x")), fails("tls", "self-signed"), tls=self_signed),
    Case(
        "certificate-expired",
        sends(html("x")),
        fails("tls", "expired"),
        tls=lambda address: self_signed(address, timedelta(days=-1), TRUSTED),
    ),
    Case(
        "certificate-of-another",
        sends(html("x")),
        fails("tls", "match"),
        tls=lambda _: self_signed("127.66.255.255", trusted=TRUSTED),
    ),
    Case("https-at-an-http-port", sends(b""), fails("tls"), scheme="https"),
    Case(
        "http-at-an-https-port",
        sends(html("secret")),
        fails("reset"),
        tls=self_signed,
        scheme="http",
    ),
]


def robots(txt: Callable[[Wire], Awaitable[None]]) -> Behaviour:
    """``txt`` answers for robots.txt; / leads to /private and /public."""

    async def behave(wire: Wire) -> None:
        while True:
            if wire.target == "/":
                await wire.send(links_to(["/private", "/public"]))
            elif wire.target in ("/private", "/public"):
                await wire.send(html("well"))
            else:
                await txt(wire)
                return
            await wire.next_request()

    return behave


def rules(name: str, txt: Behaviour, *, allowed: bool, obeyed: bool = False) -> Case:
    """Whether / is fetched under this file, and whether its rule about /private counts."""
    if not allowed:
        return Case(name, robots(txt), NOT_ASKED, path="/")
    also = {"/private": fails("robots") if obeyed else page(200), "/public": page(200)}
    return Case(name, robots(txt), page(200, links=2), path="/", also=also)


def text(body: bytes, *lines: str, status: str = "HTTP/1.1 200 OK") -> Behaviour:
    return sends(
        reply("Content-Type: text/plain", "Connection: close", *lines, body=body, status=status)
    )


def moved(location: str) -> Behaviour:
    return text(b"", f"Location: {location}", status="HTTP/1.1 302 Found")


RULE = b"User-agent: *\nDisallow: /private\n"
WILDCARDS = b"".join(b"Disallow: /x*a%d*b$\n" % number for number in range(25_000))

ROBOTS = [
    rules(
        "robots-is-html",
        sends(html("<title>Not found</title>" + "<p>Disallow this</p>" * 99)),
        allowed=True,
    ),
    rules("robots-is-html-with-rules", sends(html(b"<pre>\n" + RULE)), allowed=True, obeyed=True),
    rules("robots-is-binary", text(bytes(range(256)) * 400), allowed=True),
    rules("robots-with-nul", text(RULE.replace(b"D", b"\0D")), allowed=True, obeyed=True),
    rules("robots-of-10-mb", text(RULE + b"Disallow: /x\n" * 800_000), allowed=True, obeyed=True),
    rules("robots-of-wildcards", text(RULE + WILDCARDS), allowed=True, obeyed=True),
    rules(
        "robots-without-end",
        endless(head("Content-Type: text/plain") + RULE, b"# on\n" * 99),
        allowed=True,
        obeyed=True,
    ),
    rules("robots-is-one-line", text(b"User-agent: *\nDisallow: /" + b"x" * 900_000), allowed=True),
    rules(
        "robots-is-a-gzip-bomb", text(gzip_bomb(64 * MB), "Content-Encoding: gzip"), allowed=True
    ),
    rules("robots-redirects-to-itself", moved("/robots.txt"), allowed=True),
    rules("robots-redirects-to-a-file", moved("file:///etc/passwd"), allowed=True),
    rules("robots-redirects-to-the-home-page", moved("/"), allowed=True),
    rules("robots-redirects-to-metadata", moved("http://169.254.169.254/"), allowed=False),
    rules("robots-forbidden", text(b"", status="HTTP/1.1 403 No"), allowed=True),
    rules(
        "robots-delays-for-years",
        text(RULE + b"Crawl-delay: 99999999\n"),
        allowed=True,
        obeyed=True,
    ),
    rules("robots-fails", text(b"", status="HTTP/1.1 500 No"), allowed=False),
    rules("robots-says-too-many", text(b"", status="HTTP/1.1 429 No"), allowed=False),
    rules("robots-is-silent", lambda _: asyncio.sleep(99), allowed=False),
    rules("robots-is-no-http", sends(b"User-agent: *\nDisallow: /\n"), allowed=False),
]
