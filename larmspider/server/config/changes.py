"""Compares an edit of a crawl with the crawl: keys, seeds, URLs that would leave the scope.

found = changes(before, after, crawl_dir)        # ChangeAnswer; fetches nothing
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any

import msgspec

from larmspider.crawl.reader import CrawlDir, stored_page
from larmspider.errors import LarmspiderError
from larmspider.middlewares.scope import ScopeFilter
from larmspider.server.api.api_types import ChangeAnswer, ChangedKey, LeavingUrls
from larmspider.server.config.crawl_file import as_settings
from larmspider.server.config.crawl_schema import Crawl

SECONDS = 2.0
"""Time to look at the queued URLs, and again at the stored pages."""
MAX_EXAMPLES = 10
_MAX_SHOWN = 200
_SCOPE = ("seeds", "restrict", "exclude", "settings")


def changes(before: Crawl, after: Crawl, directory: CrawlDir | None) -> ChangeAnswer:
    """``directory``: None if the crawl has not begun. Raises ConfigError for a scope that cannot
    be."""
    keys = _keys(before, after)
    queued = pages = None
    same = all(getattr(before, key) == getattr(after, key) for key in _SCOPE)
    if directory is not None and not same:
        scope = ScopeFilter.from_settings(as_settings(after))
        old = ScopeFilter.from_settings(as_settings(before))
        queued, pages = _queued(directory, old, scope), _pages(directory, old, scope)
    return ChangeAnswer(
        keys=keys,
        seeds_added=[seed for seed in after.seeds if seed not in before.seeds],
        seeds_removed=[seed for seed in before.seeds if seed not in after.seeds],
        queued=queued,
        pages=pages,
    )


def _keys(before: Crawl, after: Crawl) -> list[ChangedKey]:
    old, new = _flat(before), _flat(after)
    return [
        ChangedKey(key=key, before=_shown(old.get(key)), after=_shown(new.get(key)))
        for key in sorted({*old, *new})
        if old.get(key) != new.get(key) and key != "seeds"
    ]


def _flat(crawl: Crawl) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in msgspec.to_builtins(crawl).items():
        if isinstance(value, dict):
            found |= {f"{key}.{name}": one for name, one in value.items()}
        elif key == "hosts":
            found |= {f"hosts {one['host']}": one for one in value}
        else:
            found[key] = value
    return found


def _shown(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    text = "" if value is None else text
    return text if len(text) <= _MAX_SHOWN else text[: _MAX_SHOWN - 3] + "..."


def _queued(crawl: CrawlDir, old: ScopeFilter, scope: ScopeFilter) -> LeavingUrls | None:
    with suppress(LarmspiderError, OSError), crawl.frontier() as frontier:
        if frontier is None:
            return None
        counts = frontier.counts()

        def urls() -> Iterator[str]:
            after: bytes | None = b""
            while after is not None:
                entries, after = frontier.waiting(after)
                yield from (entry.normalized for entry in entries)

        return _leaving(urls(), counts.queued + counts.leased, old, scope)
    return None


def _pages(crawl: CrawlDir, old: ScopeFilter, scope: ScopeFilter) -> LeavingUrls | None:
    total = 0
    with suppress(LarmspiderError, OSError):
        with crawl.frontier() as frontier:
            total = frontier.counts().stored if frontier is not None else 0
        urls = (
            page.normalized
            for part in crawl.parts
            for _, fields in part.logs.search("store.log", None, 0)
            if 0 < (page := stored_page(fields)).status < 400
        )
        return _leaving(urls, total, old, scope)
    return None


def _leaving(urls: Iterable[str], total: int, old: ScopeFilter, scope: ScopeFilter) -> LeavingUrls:
    """The URLs that are in the old scope and outside of the new one; each counts once."""
    end, whole = time.monotonic() + SECONDS, True
    seen, out = set[int](), list[str]()
    for url in urls:
        if (number := hash(url)) in seen:
            continue
        seen.add(number)
        if scope.reject_reason(url) is not None and old.reject_reason(url) is None:
            out.append(url)
        if time.monotonic() > end:
            whole = False
            break
    known = len(seen) if whole else max(total, len(seen))
    leave = len(out) if whole else round(known * len(out) / max(1, len(seen)))
    return LeavingUrls(known=known, leave=leave, estimated=not whole, examples=out[:MAX_EXAMPLES])
