"""One crawl over many cases by the real command, watched, and its outcomes beside those wanted."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from tests.support.crawling import FAST, Ran, body_of, records, scrapy
from tests.support.hostile.server import HostileServer

SETTINGS = {
    **FAST,
    "ROBOTSTXT_OBEY": "0",
    "CONCURRENT_REQUESTS": "64",
    "LARM_PROBE_SHARE": "1",  # nearly all hosts are new ones
    "LARM_SLOW_SHARE": "1",
    "LARM_RETRY_TIMES": "0",
    "LARM_HOST_MAX_FAILURES": "2",
    "LARM_HOST_MAX_PARKS": "1",
    "LARM_HOST_PARK_SECS": "0.2",
    "LARM_MAX_REDIRECTS": "5",
    "LARM_HOST_MAX_PAGES": "40",
    "restrict": r"https?://(127\.66\.|my_wiki\.localhost|no-host\.invalid|169\.254\.169\.254:).*",
    "DOWNLOAD_TIMEOUT": "2",
    "DOWNLOAD_MAXSIZE": str(1 << 20),
}
"""The limits of these crawls: small, so that they are met soon."""

MORE_MB = 200
"""Memory that a crawl among hostile hosts may take beyond a crawl without any."""

_SETTINGS_MODULE = """
from larmspider.settings import *
EXTENSIONS = {**EXTENSIONS, "tests.support.hostile.watch.Watch": 100}
"""


@dataclass(frozen=True)
class Crawled:
    """A crawl that has ended."""

    ran: Ran
    found: Found
    longest_block_secs: float
    peak_mb: float


def crawl(seeds: Iterable[str], cwd: Path, timeout: float = 150, **settings: str) -> Crawled:
    """Crawl into ``cwd``/crawl, within 127.66.0.0/16 and the seeds' names."""
    (cwd / "watched_settings.py").write_text(_SETTINGS_MODULE)
    (cwd / "seeds").write_text("".join(f"{seed}\n" for seed in seeds))
    options = []
    for name, value in (SETTINGS | settings).items():
        options += ["-s" if name.isupper() else "-a", f"{name}={value}"]
    ran = scrapy(
        "crawl", "intranet", "-a", "start=@seeds", *options,
        cwd=cwd, timeout=timeout, settings_module="watched_settings",
    )  # fmt: skip
    assert ran.status == 0, ran.err[-3000:]
    assert "Traceback" not in ran.err, ran.err[ran.err.index("Traceback") - 500 :][:3000]
    watched = json.loads((cwd / "crawl" / "watch.json").read_text())
    print(f"{watched['peak_mb']:.0f} MB, longest block {watched['longest_block_secs']:.3f} s")
    return Crawled(ran, read(cwd / "crawl"), **watched)


def differences(server: HostileServer, found: Found) -> str:
    """Lines of ``case: in what its outcome differs from the one it promises``; "" if none does."""
    wrong: dict[str, str] = {}
    for name, host in server.hosts.items():
        case = host.case
        outcomes = {server.url(name): case.outcome} if case.path is not None else {}
        outcomes |= {server.url(name, path): outcome for path, outcome in case.also.items()}
        for url, outcome in outcomes.items():
            if difference := found.differs(url, outcome):
                wrong[f"{name}{'' if url == server.url(name) else ' ' + url}"] = difference
        if case.most is not None and len(host.asked) > case.most:
            wrong[name] = f"asked {len(host.asked)} times instead of {case.most} at most"
    return "\n".join(f"{name}: {difference}" for name, difference in wrong.items())


# Outcomes of a URL: promised by a case, and found in a crawl's logs.


@dataclass(frozen=True)
class Outcome:
    """``result`` is the HTTP status of a page or the kind of a failure, as in fetch.log.

    None is not compared. ``body`` are a page's bytes, ``size`` their number. ``links`` is the
    number of its links in links.log. ``says`` is a part of fetch.log's message.
    """

    result: str
    body: bytes | None = None
    size: int | None = None
    links: int | None = None
    says: str = ""


def page(
    status: int = 200,
    body: bytes | None = None,
    *,
    size: int | None = None,
    links: int | None = None,
    says: str = "",
) -> Outcome:
    """A page was stored."""
    return Outcome(str(status), body, len(body) if body is not None else size, links, says)


def fails(kind: str, says: str = "") -> Outcome:
    """The fetch failed, in one of the ways of larmspider/fetch/errors.py."""
    return Outcome(kind, says=says)


@dataclass(frozen=True)
class Found:
    """All that the logs of a crawl say about its URLs, by URL."""

    results: dict[str, str]
    messages: dict[str, str]
    bodies: dict[str, bytes]
    links: dict[str, list[str]]

    def differs(self, url: str, wanted: Outcome) -> str:
        """In what the crawl differs from ``wanted``, "" if in nothing."""
        result = self.results.get(url, "no line in fetch.log")
        message = self.messages.get(url, "")
        if result != wanted.result:
            return f"{result} ({message}) instead of {wanted.result}"
        if wanted.says not in message:
            return f"says {message!r} and not {wanted.says!r}"
        body = self.bodies.get(url, b"")
        if wanted.size is not None and len(body) != wanted.size:
            return f"{len(body)} bytes instead of {wanted.size}"
        if wanted.body is not None and body != wanted.body:
            return f"body {body[:100]!r} instead of {wanted.body[:100]!r}"
        links = len(self.links.get(url, ()))
        if wanted.links is not None and links != wanted.links:
            return f"{links} links instead of {wanted.links}"
        return ""


def read(crawl: Path) -> Found:
    """The logs of the crawl directory ``crawl``. A URL with two lines in fetch.log is an error."""
    fetched = records(crawl / "fetch.log")
    results = {line["url"]: line["result"] for line in fetched}
    assert len(results) == len(fetched), "a URL was fetched twice"
    stored = records(crawl / "store.log")
    links: dict[str, list[str]] = defaultdict(list)
    for line in records(crawl / "links.log"):
        links[line["from-page"]].append(line["to-page"])
    return Found(
        results,
        {line["url"]: line["message"] for line in fetched},
        {line["url"]: body_of(crawl, line) for line in stored},
        links,
    )
