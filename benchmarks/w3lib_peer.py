"""What w3lib would give in place of our own code: equal results in peer data, and microseconds.

    python -m benchmarks.w3lib_peer DIR      # DIR/whatwg-url, DIR/html5lib-encoding

The figures are in docs/internals/libraries.md.
"""

from __future__ import annotations

import argparse
import base64
import html.entities
import json
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

import webencodings
from scrapy.http import Headers
from w3lib.encoding import html_body_declared_encoding, read_bom, resolve_encoding
from w3lib.html import get_base_url, get_meta_refresh, replace_entities
from w3lib.http import headers_raw_to_dict
from w3lib.url import canonicalize_url, safe_url_string

from larmspider.extraction.pages.html import extract
from larmspider.extraction.texts.charset import declared_charset
from larmspider.fetch.transfer import ResponseHead
from larmspider.urls.canonical import canonicalize
from larmspider.urls.resolve import location_of, parse_base, resolve
from larmspider.urls.syntax import without_userinfo

URLS = [
    f"http://docs.example/library/{name}{number}"
    for number in range(1000)
    for name in ("os.path.html#a", "a%20b?x=1&y=", "Index.html?n=", "wiki/Page_")
]
PAGE = b"<title>t</title>" + b"<p>Some text with <a href=x>a link</a>.</p>\n" * 900  # 40 KB
HEAD = [b"HTTP/1.1 200 OK\r\n", b"Server: nginx\r\n", b"Content-Type: text/html\r\n",
        b"Date: x\r\n", b"Etag: a\r\n", b"Content-Length: 3\r\n", b"\r\n"]  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("suites", type=Path, help="the folder of the peers' data")
    suites = parser.parse_args().suites
    links = json.loads((suites / "whatwg-url" / "http_subset.json").read_text())
    sniffed = json.loads((suites / "html5lib-encoding" / "encoding_sniff.json").read_text())
    good, bad = links["resolve_ok"], links["must_fail"]
    for name, join in (("ours", resolve), ("w3lib", _join)):
        equal = sum(_or_none(join, c) == _plain(c["href"]) for c in good)
        refused = sum(_or_none(join, c) is None for c in bad)
        print(f"{name}: links {equal} of {len(good)}, refused {refused} of {len(bad)}")
    for name, declared in (("ours", lambda body: declared_charset(body, None)), ("w3lib", _sniff)):
        found = sum(
            _name(declared(base64.b64decode(c["data_b64"])) or "windows-1252")
            == _name(c["encoding"])
            for c in sniffed["cases"]
        )
        print(f"{name}: charset of markup {found} of {len(sniffed['cases'])}")
    names = {encoding.name for encoding in map(webencodings.lookup, webencodings.LABELS)}
    same = sum(resolve_encoding(name) == name for name in names)
    print(f"w3lib: charset names as browsers write them {same} of {len(names)}")
    entities = [name for name in html.entities.html5 if name.endswith(";")]
    known = sum(replace_entities(f"&{name}") == html.entities.html5[name] for name in entities)
    print(f"w3lib: named entities {known} of {len(entities)}")
    page, raw = parse_base("http://docs.example/a/"), b"".join(HEAD)
    for what, ours, w3lib, things in (
        ("canonical form", canonicalize, canonicalize_url, URLS),
        ("link", lambda u: resolve(page, u[8:]), lambda u: _join("http://docs.example/", u[8:]),
         URLS),
        ("Location", location_of, _location, [url.encode() for url in URLS]),
        ("declared charset, 40 KB", lambda p: declared_charset(p, None), _sniff, [PAGE] * 100),
        ("meta refresh, 40 KB", None, get_meta_refresh, [PAGE] * 100),
        ("base, 40 KB", None, get_base_url, [PAGE] * 100),
        ("whole extraction, 40 KB", lambda p: extract(p, "http://h/", None), None, [PAGE] * 100),
        ("head", lambda _: ResponseHead.parse(HEAD), lambda _: Headers(headers_raw_to_dict(raw)),
         URLS),
    ):  # fmt: skip
        print(f"{what}: ours {_micros(ours, things)}, w3lib {_micros(w3lib, things)} us")


def _join(base: str, href: str) -> str:
    return safe_url_string(urljoin(base, href))


def _location(header: bytes) -> str:
    return safe_url_string(header.decode("latin-1"), "latin-1", "latin-1")


def _sniff(body: bytes) -> str | None:
    return read_bom(body)[0] or html_body_declared_encoding(body)


def _name(label: str) -> str:
    """w3lib's names are those of Python's codecs; they count where they mean the same."""
    encoding = webencodings.lookup(label.replace("_", "-").replace("cp125", "windows-125"))
    return label if encoding is None else encoding.name


def _plain(url: str) -> str:
    return without_userinfo(url).partition("#")[0]


def _or_none(join: Callable[..., str | None], case: dict[str, str | None]) -> str | None:
    try:
        url = join(case["base"] or "about:blank", case["input"])
        return None if url is None else _plain(url)
    except ValueError:
        return None


def _micros(function: Callable[[Any], object] | None, things: Iterable[Any]) -> str:
    """The best of five rounds, per thing."""
    if function is None:
        return "-"
    things, rounds = list(things), []
    for _ in range(5):
        start = time.process_time()
        for thing in things:
            function(thing)
        rounds.append(time.process_time() - start)
    return f"{min(rounds) / len(things) * 1e6:.2f}"


if __name__ == "__main__":
    main()
