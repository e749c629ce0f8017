"""Hosts that have the same pages: proposals for LARM_HOST_RESOLVER_FILE.

    for mirror in mirrors_in(crawl):
        print(mirror.line, mirror.equal, mirror.common)   # synonym(b.example)=a.example 212 212
    accept(mirror, resolver_file(settings, crawl))

A mirror is a host that shares at least `LEAST_COMMON` paths with another host, and `EQUAL_SHARE` of
these pages are equal: the same bytes, or the same text. The comparison covers a sample of each
host, the paths with the smallest hashes. It is a guess, so an operator has to accept it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from hashlib import blake2b
from heapq import heappush, heappushpop
from pathlib import Path
from typing import TYPE_CHECKING

from larmspider import options
from larmspider.errors import ConfigError, CrawlDirError
from larmspider.frontier.storage.records import FetchRecord, host_of
from larmspider.urls.host_resolver import (
    SYNONYM,
    HostResolver,
    add_rule,
    canonical_host,
    property_line,
)

if TYPE_CHECKING:
    from larmspider.crawl.reader import CrawlDir
    from larmspider.options import Settings

LEAST_COMMON = 20
"""Paths that two hosts have in common."""
EQUAL_SHARE = 0.95
SAMPLE = 500
"""Paths of a host that are compared; 0.1 MB."""
_FILE = "LARM_HOST_RESOLVER_FILE"
_BODY = 20  # bytes of FetchRecord.digest that are the body's; the rest is of the text


@dataclass(frozen=True, slots=True)
class Mirror:
    """``host`` has the pages of ``stands``: ``equal`` of ``common`` paths in the sample are
    equal."""

    host: str
    stands: str
    common: int
    equal: int

    @property
    def line(self) -> str:
        """The line for the file of the host resolver."""
        return property_line(SYNONYM, self.host, self.stands)

    def is_known(self, resolver: HostResolver) -> bool:
        """Whether the rules say already that both are one host."""
        return resolver.resolve(self.host) == resolver.resolve(self.stands)


def mirrors_in(crawl: CrawlDir) -> list[Mirror]:
    """The mirrors of a crawl, known ones too; 5 s for a million pages. Raises CrawlDirError."""
    with crawl.frontier() as frontier:
        if frontier is None:
            raise CrawlDirError(f"the crawl in {crawl.path} has no frontier")
        return mirrors(frontier.visits())


def resolver_file(settings: Settings, crawl: CrawlDir) -> Path | None:
    """The operator's LARM_HOST_RESOLVER_FILE (a crawl reads a copy of it), or None."""
    name = options.text(settings, _FILE)
    if name and Path(name) == crawl.rules.get(_FILE):
        name = str(crawl.settings[_FILE])
    return Path(name).expanduser() if name else None


def rules_in(file: Path | None) -> HostResolver:
    """The rules of the file; none if it is missing. Raises ConfigError."""
    return HostResolver.from_file(file) if file and file.exists() else HostResolver()


def accept(mirror: Mirror, file: Path | None) -> Path:
    """Add a mirror to the host resolver file. Raises ConfigError."""
    if file is None:
        raise ConfigError(
            f"{mirror.host}: {_FILE} is empty: expected the name of a file for the line"
            f" {mirror.line}, in the settings of the project or by -s"
        )
    if not mirror.is_known(rules_in(file)):
        add_rule(file, mirror.line)
    return file


@dataclass(slots=True)
class _Host:
    name: str
    port: str
    pages: int = 0
    sample: list[tuple[int, bytes]] = field(default_factory=list)
    """A heap of the smallest hashes, negative, and digests."""

    def add(self, visit: FetchRecord) -> None:
        self.pages += 1
        path = visit.url.partition("://")[2].partition("/")[2]
        number = int.from_bytes(blake2b(path.encode("utf-8", "replace"), digest_size=7).digest())
        (heappush if len(self.sample) < SAMPLE else heappushpop)(
            self.sample, (-number, visit.digest)
        )


def mirrors(visits: Iterable[tuple[bytes, FetchRecord]]) -> list[Mirror]:
    """The mirrors. The host with most pages is the original."""
    hosts: dict[str, _Host] = {}
    for _, visit in visits:
        if visit.stands and visit.digest:
            name = host_of(visit.url)
            if name not in hosts:
                host, _, port = name.rpartition(":")
                hosts[name] = _Host(canonical_host(host) or host, port)
            hosts[name].add(visit)
    ranked = sorted(hosts.values(), key=lambda host: (-host.pages, len(host.name), host.name))
    return list(_pairs(ranked))


def _pairs(hosts: list[_Host]) -> Iterator[Mirror]:
    """Compare each host with the hosts before it that are not mirrors."""
    pages: dict[int, list[tuple[int, bytes]]] = defaultdict(list)
    for number, host in enumerate(hosts):
        common, equal = Counter[int](), Counter[int]()
        for path, digest in host.sample:
            for other, its in pages[path]:
                common[other] += 1
                equal[other] += _are_equal(digest, its)
        at = next(
            (
                at
                for at, paths in common.most_common()
                if paths >= LEAST_COMMON
                and equal[at] >= EQUAL_SHARE * paths
                and hosts[at].port == host.port
            ),
            None,
        )
        if at is None:
            for path, digest in host.sample:
                pages[path].append((number, digest))
        else:
            yield Mirror(host.name, hosts[at].name, common[at], equal[at])


def _are_equal(one: bytes, other: bytes) -> bool:
    return one[:_BODY] == other[:_BODY] or one[_BODY:] == other[_BODY:] != b""
