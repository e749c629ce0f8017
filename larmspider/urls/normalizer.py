"""The forms that a crawl compares URLs by: urls/canonical.py, then urls/host_resolver.py.

>>> forms = forms_from_settings(settings)
>>> forms("http://WWW.Wiki.example:80/Start/index.html#top")
Forms('http://wiki.example/start/',  # with startsWith(www.)= in the HostResolver file
      'http://wiki.example/Start/index.html')
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Self, TypeVar, cast

from larmspider import options
from larmspider.errors import ConfigError
from larmspider.urls.canonical import Canonicalizer, Forms
from larmspider.urls.equivalence import ALWAYS, MODES, NEVER, SESSION_ID, EquivalenceRules
from larmspider.urls.host_resolver import HostResolver

if TYPE_CHECKING:
    from larmspider.options import Settings


T = TypeVar("T")

CACHE_SIZE = 16_384
"""URLs; about 7 MB if they are 100 characters long."""
LONGEST_CACHED = 1024
"""Characters; longer URLs are not remembered, so that they cannot fill the memory."""


class UrlMemo(dict[str, T]):
    """``memo[url]`` is ``compute(url)``, computed once: navigation stands on each page of a site.

    A full memo is cleared. An lru_cache keeps more and costs three times as much in a crawl: it
    moves each entry that it returns, in a list that no processor's cache holds.
    """

    def __init__(self, compute: Callable[[str], T], size: int = CACHE_SIZE) -> None:
        super().__init__()
        self._compute, self._size = compute, size

    def __missing__(self, url: str) -> T:
        value = self._compute(url)
        if len(url) <= LONGEST_CACHED:
            if len(self) >= self._size:
                self.clear()
            self[url] = value
        return value


def canonicalizer_from_settings(settings: Settings) -> Canonicalizer:
    """The canonicalizer without the host rules."""
    try:
        rules = EquivalenceRules.parse(options.raw(settings, "LARM_CANONICAL_RULES"))
    except ConfigError as error:
        value = options.raw(settings, "LARM_CANONICAL_RULES")
        raise ConfigError(f"LARM_CANONICAL_RULES={value}: {error}") from None
    if options.raw(settings, "LARM_LOWERCASE_PATH") is not None:
        mode = ALWAYS if options.boolean(settings, "LARM_LOWERCASE_PATH") else NEVER
        rules = [("*", {"path-case": mode}), *rules]
    if options.raw(settings, "LARM_BARE_PERCENT") is not None:
        mode = options.choice(settings, "LARM_BARE_PERCENT", MODES)
        rules = [("*", {"bare-percent": mode}), *rules]
    return Canonicalizer(
        lowercase_exceptions=options.strings(settings, "LARM_LOWERCASE_PATH_EXCEPTIONS"),
        session_ids=options.strings(settings, "LARM_SESSION_IDS"),
        rules=EquivalenceRules(rules),
    )


def host_resolver_from_settings(settings: Settings) -> HostResolver:
    """The host resolver; without rules if LARM_HOST_RESOLVER_FILE is empty."""
    path = options.text(settings, "LARM_HOST_RESOLVER_FILE")
    return HostResolver.from_file(Path(path).expanduser()) if path else HostResolver()


class UrlForms:
    """The forms of URLs by a crawl's settings, and the rules that two of them differ by."""

    _latest: ClassVar[tuple[weakref.ref[Settings], UrlForms] | None] = None

    def __init__(self, canonicalizer: Canonicalizer, resolver: HostResolver) -> None:
        self._canonicalizer, self._resolver = canonicalizer, resolver
        both = canonicalizer.forms

        def compute(url: str) -> Forms:
            normalized, exact = both(url)
            resolved = resolver.apply(normalized)
            return Forms(resolved, resolved if exact is normalized else resolver.apply(exact))

        self._memo = UrlMemo(compute if resolver.rules else both)

    @classmethod
    def from_settings(cls, settings: Settings) -> Self:
        """One for all parts of a crawl, whose settings are frozen: a new URL is looked at once."""
        if cls._latest is not None and cls._latest[0]() is settings:
            return cast("Self", cls._latest[1])
        forms = cls(canonicalizer_from_settings(settings), host_resolver_from_settings(settings))
        if getattr(settings, "frozen", False):
            cls._latest = weakref.ref(settings), forms
        return forms

    def __call__(self, url: str) -> Forms:
        """The forms of a URL. Raises InvalidURL if it has none."""
        return self._memo[url]

    def needed(self, one: str, other: str) -> int | None:
        """See Canonicalizer.needed(); both URLs are valid."""
        return self._canonicalizer.needed(self(one).exact, self(other).exact)

    def may_have_sessions(self, netloc: str) -> bool:
        """Whether the rule ``session-id`` may hold on a host, ``wiki`` or ``wiki:8080``."""
        canonicalizer = self._canonicalizer
        has_rule = bool(canonicalizer.rules.of(netloc).normalized & SESSION_ID)
        return has_rule and bool(canonicalizer.session_ids)

    @property
    def has_guesses(self) -> bool:
        """Whether some host has a rule that it has to prove."""
        rules = self._canonicalizer.rules
        masks = rules.of("*")
        return not rules.one_for_all or masks.normalized != masks.merged


def forms_from_settings(settings: Settings) -> Callable[[str], Forms]:
    """A function from URL to its forms, which raises InvalidURL where there are none."""
    return UrlForms.from_settings(settings)._memo.__getitem__


def normalizer_from_settings(settings: Settings) -> Callable[[str], str]:
    """A function from URL to canonical form; it raises InvalidURL for a URL without one."""
    forms = forms_from_settings(settings)
    return lambda url: forms(url).normalized


def exact_from_settings(settings: Settings) -> Callable[[str], str]:
    """A function from URL to exact form; it raises InvalidURL for a URL without one."""
    forms = forms_from_settings(settings)
    return lambda url: forms(url).exact
