"""The canonical form that a crawl compares by: urls/canonical.py, then urls/host_resolver.py.

>>> normalize = normalizer_from_settings(settings)
>>> normalize("http://WWW.Wiki.example:80/Start/index.html#top")
'http://wiki.example/start/'         # with startsWith(www.)= in the HostResolver file
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from larmspider import options
from larmspider.urls.canonical import Canonicalizer
from larmspider.urls.host_resolver import HostResolver
from larmspider.urls.url_memory import UrlMemory

if TYPE_CHECKING:
    from larmspider.options import Settings


def canonicalizer_from_settings(settings: Settings) -> Canonicalizer:
    """The canonical form as the settings want it, without host rules."""
    return Canonicalizer(
        lowercase_path=options.boolean(settings, "LARM_LOWERCASE_PATH"),
        lowercase_exceptions=options.strings(settings, "LARM_LOWERCASE_PATH_EXCEPTIONS"),
        session_ids=options.strings(settings, "LARM_SESSION_IDS"),
    )


def host_resolver_from_settings(settings: Settings) -> HostResolver:
    """The rules of LARM_HOST_RESOLVER_FILE; none where that setting is empty."""
    path = options.text(settings, "LARM_HOST_RESOLVER_FILE")
    return HostResolver.from_file(Path(path).expanduser()) if path else HostResolver()


def normalizer_from_settings(settings: Settings) -> Callable[[str], str]:
    """A function from URL to canonical form, which raises InvalidURL where there is none.

    It remembers what it was asked last: the navigation of a site stands on each of its pages.
    """
    canonicalize = canonicalizer_from_settings(settings)
    apply_rules = host_resolver_from_settings(settings).apply

    def compute(url: str) -> str:
        return apply_rules(canonicalize(url))

    return UrlMemory(compute).__getitem__
