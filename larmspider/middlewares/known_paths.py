"""Known paths: views and hosts without a document of their own, listed in a file.

Apache writes each directory index in eight orders (?C=N;O=D), wikis link their edit forms. The
packaged known_paths.txt names the common ones. LARM_KNOWN_PATHS_FILE names a file of your own in
the same format (start with a copy of the packaged file):

    # a comment
    url   [?&]c=[nmsd][;&]o=[ad]$     a regular expression, searched in the canonical URL
    url   [?&]id=  except /commit/    not where the second expression is found
    host  *.ads.example               a host pattern with * and ?

URLs that sign out, delete or edit are refused on all hosts, and on hosts with a login
(docs/sign-in.md) further URLs that act (urls/acting.py), independent of the file.

Each page may link to a login that comes back to it, as /login?next=/page/7 (urls/signing_in.py).
The first such link is followed without its return parameter; further links are rejected.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Self

from larmspider import options
from larmspider.errors import ConfigError
from larmspider.fetch.sites.lookup import Sites
from larmspider.items import REDIRECT, Link, Page
from larmspider.middlewares.url_filter import UrlFilter
from larmspider.urls.acting import acts, changes
from larmspider.urls.host_pattern import host_matcher
from larmspider.urls.patterns import PatternSet
from larmspider.urls.signing_in import form_of, sign_in

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

MAX_FORMS = 10_000
"""Login forms that are remembered; of further forms the frontier knows which were fetched."""
_HOST_GLOB = re.compile(r"[a-z0-9.*?:\[\]_-]+", re.IGNORECASE)
_EXCEPT = re.compile(r"(?:^|\s+)except\s+|\s+except$")
"""No URL has whitespace, so no expression needs it."""


class KnownPathsFilter(UrlFilter):
    """Rejects a URL in which one of ``patterns`` is found, or whose host fits one of ``hosts``.
    ``REGEX except REGEX`` is a pattern, too."""

    name = "known-paths"
    remembers = True

    def __init__(
        self, patterns: Iterable[str], hosts: Iterable[str] = (), sites: Sites | None = None
    ) -> None:
        self.sites = sites if sites is not None and sites.has_logins else None
        rules = list(patterns)
        plain = [rule for rule in rules if not _EXCEPT.search(rule)]
        self.patterns = PatternSet(plain, name="known path", mode="search")
        self._with_exceptions = [(rule, *_parts(rule)) for rule in rules if _EXCEPT.search(rule)]
        self._hosts = tuple(hosts)
        self._forms: dict[str, str] = {}
        """The URL of each login form that was followed in this run, by its name."""

    @classmethod
    def from_settings(cls, settings: BaseSettings) -> Self:
        path = options.text(settings, "LARM_KNOWN_PATHS_FILE")
        sites = Sites.from_settings(settings)
        if path:
            return cls.from_text(_read(Path(path).expanduser()), path, sites)
        return cls.from_text(packaged_rules(), "known_paths.txt", sites)

    @classmethod
    def from_text(cls, text: str, source: str, sites: Sites | None = None) -> Self:
        """The filter from a file's text. Raises ConfigError, naming source and line."""
        patterns, hosts = [], []
        for number, line in enumerate(text.splitlines(), 1):
            words = line.split(None, 1)
            if not words or words[0].startswith("#"):
                continue
            kind, value = words[0], words[1].strip() if len(words) > 1 else ""
            if kind == "url" and value:
                try:
                    _parts(value)
                except ConfigError as error:
                    raise ConfigError(f"{source}:{number}: {error}") from None
                patterns.append(value)
            elif kind == "host" and _HOST_GLOB.fullmatch(value):
                hosts.append(value)
            else:
                raise ConfigError(
                    f"{source}:{number}: {line.strip()!r} is not understood: expected"
                    " 'url REGEX', 'url REGEX except REGEX', 'host PATTERN' (letters, digits,"
                    " . - * ?) or '# comment'"
                )
        return cls(patterns, hosts, sites)

    def reject_links(self, links: Sequence[Link], page: Page) -> list[str | None]:
        reasons = super().reject_links(links, page)
        for at, link in enumerate(links):
            if reasons[at] is None and "?" in link.url:
                reasons[at] = self._repeats_login(link, page)
        return reasons

    def reject_link(self, link: Link, page: Page) -> str | None:
        """The verdict of reject_links() for one link, which stays unchanged."""
        assert link.normalized is not None
        if (reason := self.reject_reason(link.normalized)) is not None:
            return reason
        found = sign_in(link.normalized)
        if found is None or _leads_back(link, page):
            return None
        return _one_login(found.form) if found.form != link.normalized else None

    def _repeats_login(self, link: Link, page: Page) -> str | None:
        """Why a link to a login is not followed. The first link to a form loses its return
        parameter."""
        found = sign_in(link.normalized or link.url)
        if found is None or _leads_back(link, page):
            return None
        first = self._forms.get(found.name)
        if first is not None:
            return None if first == link.normalized else _one_login(first)
        if len(self._forms) < MAX_FORMS:
            self._forms[found.name] = found.form
        link.url = form_of(link.url) or link.url
        link.normalized = found.form
        link.exact = None if link.exact is None else form_of(link.exact) or link.exact
        return None

    def reject_reason(self, url: str) -> str | None:
        if self._hosts:
            host, is_known = url.split("/", 3)[2], host_matcher(*self._hosts)
            if is_known(host) or is_known(host.rsplit(":", 1)[0]):
                return f"known host {host}"
        pattern = self.patterns.match(url) or self._match_with_exceptions(url)
        if pattern is not None:
            return f"known path {pattern}"
        if word := changes(url):
            return f"signs out or changes something: {word}"
        return None if self.sites is None else acts_signed_in(url, self.sites)

    def _match_with_exceptions(self, url: str) -> str | None:
        for rule, pattern, exception in self._with_exceptions:
            if pattern.match(url) is not None and exception.match(url) is None:
                return rule
        return None


def _parts(rule: str) -> tuple[PatternSet, PatternSet]:
    """The expression of a rule, and its exception: an empty set without an exception. Raises
    ConfigError."""
    expression, *exceptions = _EXCEPT.split(rule)
    if not expression or len(exceptions) > 1 or exceptions == [""]:
        raise ConfigError(f"{rule!r}: expected one expression before 'except' and one after it")
    pattern = PatternSet([expression], name="known path", mode="search")
    return pattern, PatternSet(exceptions, name="exception", mode="search")


def _leads_back(link: Link, page: Page) -> bool:
    """Whether a form redirects to itself: it is not shown without the way back."""
    here = page.normalized or page.url
    return link.type == REDIRECT and form_of(link.normalized or link.url) == here


def _one_login(form: str) -> str:
    return f"leads to a login form, which is fetched once, as {form}"


def acts_signed_in(url: str, sites: Sites) -> str | None:
    """Why a URL is not fetched while signed in; None on hosts without a login, or for a URL that
    only shows something. Only scheduler/login_fetch.py sends the form itself."""
    site = sites.for_url(url)
    if site is None or site.options.login is None or (word := acts(url)) is None:
        return None
    return f"acts on a host with a login: {word}"


def packaged_rules() -> str:
    """The text of known_paths.txt."""
    packaged = resources.files("larmspider.middlewares").joinpath("known_paths.txt")
    return packaged.read_text("utf-8")


def _read(path: Path) -> str:
    try:
        return path.read_text("utf-8-sig")
    except OSError as error:
        raise ConfigError(f"LARM_KNOWN_PATHS_FILE={path}: {error.strerror or error}") from None
    except UnicodeDecodeError as error:
        raise ConfigError(
            f"LARM_KNOWN_PATHS_FILE={path}: not UTF-8 at byte {error.start}"
        ) from None
