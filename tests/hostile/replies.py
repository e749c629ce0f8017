"""Replies that other projects collected, as hosts of ours, and what becomes of each by rule.

curl says of each of its replies with which exit code it ends; those that it reads are pages with
the status and body that Python's http.client finds in the same bytes, the others fail in the way
that the code stands for. EXCEPTIONS are where a crawler should do something else, with the reason.
"""

from __future__ import annotations

import base64
import http.client
import io
import json
import re
import zlib
from pathlib import Path
from typing import Any

from tests.support.hostile.running import Outcome, fails, page
from tests.support.hostile.server import Case, sends

_FAILURES = {
    1: "bad-response",  # unsupported protocol: HTTP/0.9, odd versions and statuses
    8: "bad-response",  # weird server reply
    18: "reset",  # partial file
    52: "reset",  # got nothing
    56: "bad-response",  # receiving failed: chunks that are none
    61: "bad-response",  # bad content encoding
    100: "too-big",  # headers
}
"""By curl's exit code. All others are about curl's own options or files: the reply is well."""

BAD = fails("bad-response")

EXCEPTIONS: dict[str, tuple[Outcome, str]] = {
    "test1116": (page(200, size=145), "chunk sizes end in LF alone, which http.client cannot read"),
    "test1482": (page(200, size=145), "chunked twice and sent once; http.client knows one chunked"),
    "test1122": (BAD, "Transfer-Encoding: gzip, which nobody asked for (RFC 9112 7.4)"),
    "test1124": (BAD, "the same, and chunked"),
    "test1170": (BAD, "the same"),
    "test1164": (BAD, "HTTP/0.9, which curl reads if told to"),
    "test1266": (BAD, "HTTP/0.9"),
    "test306": (BAD, "HTTP/0.9"),
    "test66": (BAD, "HTTP/0.9"),
    "test1548": (fails("reset"), "no byte is sent; curl's code is about a timeout"),
    "test704": (fails("reset"), "no byte is sent; curl's code is about a proxy"),
    "test334": (page(204, b""), "204 has no body (RFC 9110 15.3.5), whatever its headers say"),
    "test498": (fails("too-big"), "1.5 MB of headers; curl has the same code for other things"),
}
"""By the test's name: what is right, and why it is not what the rule says."""

NUTCH: dict[str, tuple[Outcome, str]] = {
    "NUTCH-2564": (
        BAD,
        "a length that is no number: where the body ends is unknown (RFC 9112 6.3)",
    ),
    "NUTCH-2559": (page(200, size=15), "a colon behind the status harms nobody"),
    "NUTCH-2563": (page(200, size=15), "a header that is none of HTTP's"),
    "NUTCH-2557": (page(302, b"", links=1), "a redirect counts whatever its body is"),
    "NUTCH-2558": (BAD, "HTTP/0.9: it could be anything"),
    "NUTCH-2560": (page(200, size=15), "a folded header (RFC 9112 5.2)"),
    "NUTCH-2561": (fails("too-big"), "800 KB of headers"),
    "NUTCH-2562/2575": (page(200, size=81_920), "80 KB in chunks, far below our limit"),
}
"""By the number of the bug."""


class _Socket:
    def __init__(self, raw: bytes) -> None:
        self._raw = raw

    def makefile(self, mode: str) -> io.BytesIO:
        return io.BytesIO(self._raw)


def by_http_client(raw: bytes) -> Outcome:
    """The page that http.client reads from ``raw``, its encoding undone where zlib can."""
    response = http.client.HTTPResponse(_Socket(raw))  # type: ignore[arg-type]
    response.begin()
    body = response.read()
    coding = (response.headers["Content-Encoding"] or "").lower()
    if coding in ("gzip", "deflate"):
        wrapped = coding == "gzip" or body[:1] == b"\x78"
        return page(response.status, zlib.decompress(body, 47 if wrapped else -15))
    if coding in ("", "identity", "none"):
        return page(response.status, body)
    return page(response.status)


def curl_replies(suites: Path) -> list[dict[str, Any]]:
    text = (suites / "curl-http-replies" / "replies.json").read_text("utf-8")
    cases: list[dict[str, Any]] = json.loads(text)["cases"]
    return cases


def nutch_replies(suites: Path) -> list[dict[str, Any]]:
    text = (suites / "nutch-bad-servers" / "responses.json").read_text("utf-8")
    cases: list[dict[str, Any]] = json.loads(text)["cases"]
    return cases


def bytes_of(case: dict[str, Any]) -> bytes:
    """The reply with the variables of curl's test suite filled in."""
    raw = base64.b64decode(case["raw_b64"])
    number = re.sub(r"\D", "", case.get("test", ""))
    for name, value in (("%TESTNUMBER", number), ("%HOSTIP", "127.66.0.1"), ("%HTTPPORT", "9"),
                        ("%HTTPSPORT", "9"), ("%AMP", "&")):  # fmt: skip
        raw = raw.replace(name.encode(), value.encode())
    return raw


def expected(case: dict[str, Any]) -> Outcome:
    """By the rule, or as EXCEPTIONS says."""
    if case["test"] in EXCEPTIONS:
        return EXCEPTIONS[case["test"]][0]
    if case["errorcode"] in _FAILURES:
        return fails(_FAILURES[case["errorcode"]])
    return by_http_client(bytes_of(case))


def curl_cases(suites: Path) -> list[Case]:
    return [
        Case(f"curl-{case['test']}", sends(bytes_of(case)), expected(case))
        for case in curl_replies(suites)
    ]


def nutch_cases(suites: Path) -> list[Case]:
    return [
        Case(
            f"nutch-{number}",
            sends(bytes_of(case)),
            NUTCH[case["name"].split()[0]][0],
        )
        for number, case in enumerate(nutch_replies(suites))
    ]
