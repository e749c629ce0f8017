r"""Records of WARC/1.1 (ISO 28500:2017), each a gzip member of its own, and lines of CDXJ.

    for record in page_records(page, original=None):      # response, request, metadata
        file.write(record.member)

A body is written as it is stored: decoded. The head of its response therefore has the true length.
The original values for the coded body are in X-Archive-Orig-Content-Encoding, -Transfer-Encoding
and -Content-Length. No field that may hold credentials is written: no cookie, no Authorization, no
header whose name speaks of a token, a session or a password, none of LARM_SITES_FILE, no user name
or password in a URL.
"""

from __future__ import annotations

import hashlib
import json
import re
import time
import uuid
import zlib
from base64 import b32encode
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from http.client import responses
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

try:
    from isal import isal_zlib as fast_zlib  # an eighth of zlib's time
except ImportError:
    import zlib as fast_zlib  # type: ignore[no-redef]

from larmspider import __version__
from larmspider.fetch.curl_options import url_for_curl
from larmspider.fetch.errors import BadUrl
from larmspider.fetch.transfer import ReceivedHeaders
from larmspider.formatting import utc
from larmspider.items import FRAME, ORDINARY, REDIRECT, Outcome, Page, Removed
from larmspider.urls.schemes import is_source
from larmspider.urls.syntax import without_userinfo

if TYPE_CHECKING:
    from larmspider.items import Link

IDENTICAL = "http://netpreserve.org/warc/1.1/revisit/identical-payload-digest"
_LEVEL, _GZIP = 1, 31
_END = b"\r\n\r\n"
_PIECE = 1 << 20
_FIELDS = "application/warc-fields"
_RESPONSE, _REQUEST = "application/http;msgtype=response", "application/http;msgtype=request"
_CODING = frozenset({b"content-encoding", b"transfer-encoding", b"content-length"})
_SECRET = re.compile(
    rb"cookie|auth(?!ors?\Z)|token|secret|passw|api-?key|session|csrf|xsrf|credential|signature"
)
_USERINFO = re.compile(rb"([a-z][a-z0-9+.-]*://)[^/?#\s@]*@", re.IGNORECASE)
_PORT = re.compile(r"(.*?)(?::([0-9]*))?", re.DOTALL)
_HOPS = {ORDINARY: "L a/@href", FRAME: "E iframe/@src", REDIRECT: "R Location:"}
"""How a link was found, in the words of Heritrix."""


class Record(NamedTuple):
    """``member`` is the compressed record. With a ``body_file``, it is the uncompressed part before
    the body, and `pieces` are the record. ``payload``: "sha1:" and the digest in base32, if a CDXJ
    has a line for the record, else "". ``fields`` are the fields of that line."""

    member: bytes
    url: str = ""
    date: str = ""
    payload: str = ""
    fields: dict[str, str] | None = None
    body_file: Path | None = None

    def pieces(self) -> Iterator[bytes]:
        """The body of a file is not compressed: films, disk images and archives gain nothing."""
        if self.body_file is None:
            yield self.member
            return
        packer = zlib.compressobj(0, zlib.DEFLATED, _GZIP)
        yield packer.compress(self.member)
        with self.body_file.open("rb") as body:
            while piece := body.read(_PIECE):
                yield packer.compress(piece)
        yield packer.compress(_END) + packer.flush()


class Original(NamedTuple):
    """An earlier record with the same payload; ``file`` is the number of its WARC file."""

    url: str
    date: str
    file: int = 0
    offset: int = 0


def payload_digest(page: Page) -> str:
    if page.body_file is not None:
        sha1 = bytes.fromhex(page.digest)
    else:
        sha1 = hashlib.sha1(page.body, usedforsecurity=False).digest()
    return "sha1:" + b32encode(sha1).decode()


def info_record(name: str, **fields: str) -> Record:
    """The first record of each file; ``fields`` are added to the common ones."""
    found = {
        "software": f"larmspider/{__version__}",
        "format": "WARC File Format 1.1",
        "conformsTo": "http://iipc.github.io/warc-specifications/specifications/warc-format/"
        "warc-1.1/",
        **fields,
    }
    head = [("WARC-Filename", name)]
    return Record(
        _member("warcinfo", _new_id(), _seconds(time.time()), head, _FIELDS, _lines(found.items()))
    )


def lost_record() -> Record:
    """A record of as few bytes as possible in place of one that is lost."""
    return Record(_member("warcinfo", _new_id(), _seconds(time.time()), (), _FIELDS, b""))


def page_records(page: Page, original: Original | None, payload: str = "") -> Iterator[Record]:
    """A page's `response`, or `revisit` where ``original`` has its payload, its `request` and its
    `metadata`; of a file or a connector's document a `resource` and `metadata`. ``payload`` is the
    body's digest."""
    url, date, own = _written(page.url), _seconds(page.fetched), _new_id()
    payload = payload or payload_digest(page)
    about = [("WARC-Target-URI", url)]
    head = [*about, ("WARC-Payload-Digest", payload)]
    cdx = {"mime": page.mime or "application/octet-stream", "status": str(page.status)}
    received = _received(page)
    if received is not None:
        if received.address:
            head.append(("WARC-IP-Address", received.address))
        if received.received[0].startswith(b"HTTP/2"):
            head.append(("WARC-Protocol", "h2"))
    if not page.size and page.unread.startswith(Outcome.TOO_LARGE):
        head.append(("WARC-Truncated", "length"))
    if is_source(url):  # no HTTP: its headers are made by the connector, its rights among them
        member = _member("resource", own, date, head, cdx["mime"], page.body, page.file_bytes)
        yield Record(member, url, date, payload, cdx, page.body_file)
    elif original is not None:
        head += [
            ("WARC-Profile", IDENTICAL),
            ("WARC-Refers-To-Target-URI", original.url),
            ("WARC-Refers-To-Date", original.date),
        ]
        member = _member("revisit", own, date, head, _RESPONSE, _response_head(page))
        yield Record(member, url, date, payload, cdx | {"mime": "warc/revisit"})
    else:
        block = _response_head(page) + page.body
        member = _member("response", own, date, head, _RESPONSE, block, page.file_bytes)
        yield Record(member, url, date, payload, cdx, page.body_file)
    about.append(("WARC-Concurrent-To", own))
    if received is not None:
        sent = _request_head(page.url, received)
        yield Record(_member("request", _new_id(), date, about, _REQUEST, sent))
    yield Record(_member("metadata", _new_id(), date, about, _FIELDS, _metadata(page)))


def removed_record(removed: Removed) -> Record:
    """A record that a page was removed, and why; its earlier records stay."""
    about = [("WARC-Target-URI", _written(removed.url))]
    block = _lines([("removed", removed.reason or "another worker has its newest version")])
    return Record(_member("metadata", _new_id(), _seconds(removed.time), about, _FIELDS, block))


def cdxj_line(record: Record, file: str, offset: int, length: int) -> str:
    """The line of a record that lies in ``file`` at ``offset``."""
    assert record.fields is not None
    place = {"length": str(length), "offset": str(offset), "filename": file}
    fields = {"url": record.url, **record.fields, "digest": record.payload, **place}
    stamp = re.sub(r"\D", "", record.date)[:14]
    return f"{surt(record.url)} {stamp} {json.dumps(fields)}\n"


def surt(url: str) -> str:
    """The key that CDXJ is sorted by: host backwards, then path and query, in lower case.

    >>> surt("http://www.Wiki.example:8080/A/?b=2&a=1")
    'example,wiki:8080)/a?a=1&b=2'
    """
    scheme, _, rest = url.partition("://")
    authority, _, path = rest.lower().partition("/")
    found = _PORT.fullmatch(authority.removeprefix("www."))
    assert found is not None
    host, port = found.groups()
    if not host.startswith("["):
        host = ",".join(reversed(host.split(".")))
    if port and (scheme.lower(), port) not in (("http", "80"), ("https", "443")):
        host += f":{port}"
    path, mark, query = path.partition("?")
    path = path.rstrip("/")
    if query:
        path += mark + "&".join(sorted(query.split("&")))
    return f"{host})/{path}".replace(" ", "%20")


def _member(
    kind: str,
    own: str,
    date: str,
    fields: Iterable[tuple[str, str]],
    content_type: str,
    block: bytes,
    file_bytes: int = 0,
) -> bytes:
    """The part of a record before the ``file_bytes`` bytes of a file that end its block."""
    head = [
        f"WARC/1.1\r\nWARC-Type: {kind}\r\nWARC-Record-ID: {own}\r\nWARC-Date: {date}\r\n",
        *(f"{name}: {value}\r\n" for name, value in fields),
        f"Content-Type: {content_type}\r\nContent-Length: {len(block) + file_bytes}\r\n\r\n",
    ]
    if file_bytes:
        return "".join(head).encode() + block
    content = b"".join(("".join(head).encode(), block, _END))
    packed: bytes = fast_zlib.compress(content, _LEVEL, _GZIP)
    return packed


def _seconds(epoch: float) -> str:
    """A time without a fraction of a second. A revisit names the time of its original, and a CDXJ
    has whole seconds."""
    return utc(epoch)[:19] + "Z"


def _new_id() -> str:
    return f"<urn:uuid:{uuid.uuid4()}>"


def _written(url: str) -> str:
    """The URL for a head: without user name, password and line ends."""
    return "%20".join(without_userinfo(url).split()).encode("utf-8", "replace").decode()


def _lines(fields: Iterable[tuple[str, str]]) -> bytes:
    """``name: value``, a line each."""
    text = "".join(f"{name}: {' '.join(value.split())}\r\n" for name, value in fields)
    return text.encode("utf-8", "replace")


def _metadata(page: Page) -> bytes:
    found = [("fetchTimeMs", str(round(page.latency * 1000)))]
    if page.from_page:
        found.insert(0, ("via", without_userinfo(page.from_page)))
    if page.links:
        found += [("outlink", link) for link in dict.fromkeys(map(_outlink, page.links))]
    return _lines(found)


def _outlink(link: Link) -> str:
    url = without_userinfo(link.url) if "@" in link.url else link.url
    return f"{url} {_HOPS.get(link.type, _HOPS[ORDINARY])}"


def _received(page: Page) -> ReceivedHeaders | None:
    headers = page.headers
    return headers if isinstance(headers, ReceivedHeaders) and headers.received else None


@lru_cache(1024)
def _is_secret(name: bytes) -> bool:
    return _SECRET.search(name) is not None


def _response_head(page: Page) -> bytes:
    received = _received(page)
    if received is not None:
        status, lines = received.received[0].strip(), _unfolded(received.received[1:])
        if not status.startswith(b"HTTP/1."):  # readers know no other, WARC-Protocol says it
            status = b"HTTP/1.1 " + status.partition(b" ")[2]
        left = dict.get(received, b"Content-Encoding", ())
    else:
        status = f"HTTP/1.1 {page.status} {responses.get(page.status, '')}".encode()
        lines = [b"%b: %b" % (name, v) for name, values in page.headers.items() for v in values]
        left = ()
        if page.mime and not any(line.lower().startswith(b"content-type:") for line in lines):
            lines.append(b"Content-Type: " + page.mime.encode())
    head = [status]
    for line in lines:
        name = line.partition(b":")[0].strip().lower()
        if name in _CODING:
            head.append(b"X-Archive-Orig-" + line)
        elif not _is_secret(name):
            head.append(line)
    head += [b"Content-Encoding: " + (v if isinstance(v, bytes) else v.encode()) for v in left]
    head.append(b"Content-Length: %d" % page.size)
    return _clean(head)


def _request_head(url: str, received: ReceivedHeaders) -> bytes:
    try:
        url = url_for_curl(url)
    except BadUrl:
        url = _written(url)
    parts = urlsplit(url)
    host = parts.netloc
    default = {"http": ":80", "https": ":443"}.get(parts.scheme, "")
    target = url.partition("://")[2][len(host) :].partition("#")[0] or "/"
    target = target if target.startswith("/") else f"/{target}"
    head = [
        f"{received.method} {target} HTTP/1.1".encode(),
        b"Host: " + host.removesuffix(default).encode(),
    ]
    for line in received.sent:
        name, colon, value = line.partition(b":")
        if not colon and line.endswith(b";"):  # libcurl's way to send an empty value
            name, value = line[:-1], b" "
        if value and not _is_secret(name.lower()):
            head.append(name + b":" + value)
    return _clean(head)


def _unfolded(lines: Sequence[bytes]) -> list[bytes]:
    """Lines of a head until its end, folded lines joined (RFC 9112 5.2), without invalid ones."""
    found: list[bytes] = []
    for line in lines:
        text = line.strip()
        if not text:
            break
        if line[0] in b" \t":
            if found:
                found[-1] += b" " + text
        elif b":" in text:
            found.append(text)
    return found


def _clean(lines: list[bytes]) -> bytes:
    head = b"\r\n".join((*lines, b"", b""))
    return _USERINFO.sub(rb"\1", head) if b"@" in head else head
