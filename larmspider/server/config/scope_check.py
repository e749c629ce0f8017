"""Checks the scope of a crawl file before it is saved: does it accept the seeds, is it finite?"""

from __future__ import annotations

from contextlib import suppress

from larmspider.errors import InvalidURL
from larmspider.formatting import counted
from larmspider.middlewares.scope import ScopeFilter
from larmspider.server.config.crawl_file import Problem, as_settings
from larmspider.server.config.crawl_schema import Crawl
from larmspider.urls.canonical import canonicalize

_ELSEWHERE = ("http://a.invalid/", "https://b.invalid/x/y?z=1")
"""URLs that a finite scope does not accept."""


def scope_problems(crawl: Crawl) -> list[Problem]:
    """A problem if the scope accepts no seed, because the crawl would fetch nothing."""
    if not crawl.seeds:  # documents are pushed
        return []
    refused = _refused_seeds(crawl)
    if len(refused) < len(crawl.seeds):
        return []
    seed, why = refused[0]
    key = "exclude" if why.startswith("matches exclude") else "restrict"
    seeds = counted(len(refused), "seed")
    return [Problem(key, f"accepts none of {seeds}: {seed} {why}; nothing would be fetched")]


def scope_warnings(crawl: Crawl) -> list[str]:
    """Sentences about seeds that the scope refuses, and about a scope without an end."""
    found = list[str]()
    if not crawl.seeds:
        return found
    if refused := _refused_seeds(crawl):
        seed, why = refused[0]
        of = f"{len(refused):,} of {counted(len(crawl.seeds), 'seed')}"
        found.append(f"The scope refuses {of}, such as {seed} ({why})")
    scope = ScopeFilter.from_settings(as_settings(crawl))
    if all(scope.reject_reason(url) is None for url in _ELSEWHERE):
        found.append("The scope takes every URL of every host: the crawl may never end")
    return found


def _refused_seeds(crawl: Crawl) -> list[tuple[str, str]]:
    scope, found = ScopeFilter.from_settings(as_settings(crawl)), list[tuple[str, str]]()
    for seed in crawl.seeds:
        with suppress(InvalidURL, ValueError):
            if not seed.startswith("file:") and (why := scope.reject_reason(canonicalize(seed))):
                found.append((seed, why))
    return found
