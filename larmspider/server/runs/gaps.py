"""Finds the hosts that several crawls of a home reach, and writes them for the crawls.

    meetings({"wiki": crawl, "hr": other})    # {"wiki": {"intranet.example:80"}, "hr": {...}}
    Gaps(home).write(crawls)                  # HOME/gaps/NAME, read by frontier/shared_gaps.py

A crawl without `restrict` reaches the hosts of its seeds. An expression may reach further hosts:
it reaches a host that it names, or one whose first page it matches. Two expressions may meet
anywhere, so that these crawls share the gaps of all hosts.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import suppress
from functools import lru_cache
from itertools import combinations
from pathlib import Path
from urllib.parse import urlsplit

from larmspider.errors import ConfigError, InvalidURL
from larmspider.files import make_folder, replace_file
from larmspider.frontier.shared_gaps import EVERY_HOST, HOSTS
from larmspider.server.config.crawl_schema import Crawl
from larmspider.server.home import MAX_CRAWLS
from larmspider.urls.canonical import canonicalize
from larmspider.urls.patterns import Pattern, compile_pattern

FOLDER = "gaps"
KEPT_SECS = 86_400.0
"""A host's file is deleted after a day without a request to the host."""
_PORTS = {"http": 80, "https": 443}


def meetings(crawls: Mapping[str, Crawl]) -> dict[str, dict[str, set[str]]]:
    """The shared hosts (``wiki.example:80``, or EVERY_HOST) of each crawl, and the other crawls
    that reach each of these hosts."""
    found: dict[str, dict[str, set[str]]] = {name: {} for name in crawls}
    for one, other in combinations(crawls, 2):
        for host in shared_hosts(crawls[one], crawls[other]):
            found[one].setdefault(host, set()).add(other)
            found[other].setdefault(host, set()).add(one)
    return found


def shared_hosts(one: Crawl, other: Crawl) -> set[str]:
    """The hosts that both crawls reach."""
    if one.restrict and other.restrict:
        return {EVERY_HOST}
    ours, theirs = _hosts(tuple(one.seeds)), _hosts(tuple(other.seeds))
    found = set(ours & theirs)
    for restrict, hosts in ((one.restrict, theirs), (other.restrict, ours)):
        found |= {host for host in hosts if restrict and _reaches(restrict, host)}
    return found


@lru_cache(MAX_CRAWLS)
def _hosts(seeds: tuple[str, ...]) -> frozenset[str]:
    """The hosts of the seeds with their ports, and with the other scheme's port: a crawl follows
    links from http to https."""
    found = set[str]()
    for seed in seeds:
        with suppress(ValueError, InvalidURL):
            parts = urlsplit(canonicalize(seed))
            if parts.hostname and parts.scheme in _PORTS:
                ports = [parts.port] if parts.port else _PORTS.values()
                found |= {f"{parts.hostname}:{port}" for port in ports}
    return frozenset(found)


@lru_cache(MAX_CRAWLS)
def _pattern(restrict: str) -> Pattern | None:
    with suppress(ConfigError):
        return compile_pattern(restrict, name="restrict")
    return None


def _reaches(restrict: str, host: str) -> bool:
    """Whether an expression may match URLs of a host."""
    name = host.rpartition(":")[0]
    if name in restrict.replace("\\", ""):
        return True
    pattern = _pattern(restrict)
    if pattern is None:
        return True
    starts = {f"{scheme}://{one}/" for scheme in _PORTS for one in (host, name)}
    return any(pattern.fullmatch(url) for url in starts)


class Gaps:
    """The files of a home."""

    def __init__(self, home: Path) -> None:
        self._folder = home / FOLDER
        self._written: dict[str, bytes] = {}

    def write(self, crawls: Mapping[str, Crawl]) -> None:
        """Write the lists that have changed. Raises OSError."""
        make_folder(self._folder / HOSTS)
        for name, hosts in meetings(crawls).items():
            text = "".join(f"{host}\n" for host in sorted(hosts)).encode()
            if self._written.get(name) != text:
                replace_file(self._folder / name, text, private=True, synced=False)
                self._written[name] = text
        for name in self._written.keys() - crawls.keys():
            del self._written[name]
            (self._folder / name).unlink(missing_ok=True)

    def clean(self) -> None:
        """Remove the files of hosts that are idle."""
        for path in (self._folder / HOSTS).glob("*"):
            with suppress(OSError):
                if time.time() - path.stat().st_mtime > KEPT_SECS:
                    path.unlink()
