"""Finds the settings of a URL's host: LARM_SITES_FILE, looked up by origin.

>>> sites = Sites.from_settings(settings)
>>> sites.for_url("https://wiki.example/Main/Start")    # None if no rule applies to its origin
Site(origin=('https', 'wiki.example', 443), options=..., rules=('sites.toml [[site]] 1 (...)',))

Rules are bound to scheme, host and port: never to the text before an "@" or after the port.
The file is checked when it is read: names, types, and the abilities of libcurl. Secrets,
certificates and keys are checked only before fetching (Sites.for_fetching). A command that only
reads a crawl works without them, and knows the same hosts. A site that sends its server a secret is
for https, unless the file says otherwise.
"""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache, reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any

import can_ada

from larmspider import options
from larmspider.errors import ConfigError
from larmspider.fetch.sites.fields import (
    SiteTable,
    read_ca_file,
    read_client_certificate,
    read_cookies,
    read_credentials,
    read_headers,
    read_login,
    read_proxy,
    read_render_origins,
    read_tls_min,
)
from larmspider.fetch.sites.model import Site, SiteOptions, SiteRule
from larmspider.files import read_plain
from larmspider.urls.host_pattern import HostPattern
from larmspider.urls.schemes import DEFAULT_PORTS, WEB_PORTS, has_tls
from larmspider.urls.syntax import LONGEST_HOST

if TYPE_CHECKING:
    from larmspider.options import Settings


Origin = tuple[str, str, int]
"""Scheme, host as can_ada writes it without a dot at its end, port."""

CACHE_SIZE = 16_384
"""Origins that are remembered."""
_LONGEST_REMEMBERED = 300


class Sites:
    """All rules, in the order of their file; ``warnings`` are for the log of a crawl's start."""

    def __init__(self, rules: Sequence[SiteRule] = (), warnings: Sequence[str] = ()) -> None:
        self.rules = tuple(rules)
        self.warnings = tuple(warnings)
        self._of_origin = lru_cache(CACHE_SIZE)(self._combine)
        self._of_prefix = lru_cache(CACHE_SIZE)(self._find)
        self._without_secrets = lru_cache(CACHE_SIZE)(Site.without_secrets)

    @classmethod
    def from_settings(cls, settings: Settings) -> Sites:
        """The sites for reading a crawl: missing secrets and files are `problems`. Raises
        ConfigError, naming file, table and key."""
        name = options.text(settings, "LARM_SITES_FILE")
        return _read(Path(name).expanduser()) if name else cls()

    @classmethod
    def for_fetching(cls, settings: Settings) -> Sites:
        """The sites for a process that fetches. Raises ConfigError for missing secrets and files,
        too."""
        return cls.from_settings(settings).complete()

    def complete(self) -> Sites:
        """Returns itself. Raises ConfigError for the first problem."""
        for problem in self.problems:
            raise ConfigError(problem)
        return self

    @property
    def problems(self) -> tuple[str, ...]:
        """Secrets and files that a fetch lacks, each as the text of an error."""
        return tuple(problem for rule in self.rules for problem in rule.problems)

    def problems_of(self, url: str) -> tuple[str, ...]:
        """The problems of the rules that apply to ``url``."""
        site = self.for_url(url)
        rules = (rule for rule in self.rules if site is not None and rule.where in site.rules)
        return tuple(problem for rule in rules for problem in rule.problems)

    @property
    def hosts(self) -> list[str]:
        """The patterns of all rules, each once."""
        return sorted({str(pattern) for rule in self.rules for pattern in rule.patterns})

    @property
    def protected(self) -> list[str]:
        """The patterns of hosts that get credentials, cookies, headers or a client certificate, or
        whose pages may send theirs to other hosts (``render_origins``). The fetched pages may then
        not be for everybody."""
        opening = (rule.patterns for rule in self.rules if rule.options.opens_doors)
        return sorted({str(pattern) for patterns in opening for pattern in patterns})

    @property
    def has_logins(self) -> bool:
        return any(rule.options.login for rule in self.rules)

    @property
    def renders(self) -> bool:
        """Whether the pages of any host go through Chromium."""
        return any(rule.options.render for rule in self.rules)

    def for_url(self, url: str, *, secrets: bool = True) -> Site | None:
        """The settings for ``url``, one object for all URLs of an origin; None: no rule matches.
        Without ``secrets`` credentials, cookies, headers, login, client certificate are left out.

        0.4 us for a known origin, whatever the number of rules; 0.05 us without rules.
        """
        if not self.rules:
            return None
        end = url.find("/", 8)  # after http:// and https://, so after the authority
        prefix = url if end < 0 else url[:end]
        site = (self._of_prefix if len(prefix) <= _LONGEST_REMEMBERED else self._find)(prefix)
        return site if secrets or site is None else self._without_secrets(site)

    def _find(self, prefix: str) -> Site | None:
        origin = origin_of(prefix)
        return None if origin is None else self._of_origin(*origin)

    def _combine(self, scheme: str, host: str, port: int) -> Site | None:
        meant = [rule for rule in self.rules if rule.matches(scheme, host, port)]
        if not meant:
            return None
        of_all = reduce(SiteOptions.or_else, (rule.options for rule in meant))
        if of_all.login and origin_of(of_all.login.url) not in (None, (scheme, host, port)):
            of_all = replace(of_all, login=None)  # another host of the table has this login
        return Site((scheme, host, port), of_all, tuple(rule.where for rule in meant))


def origin_of(url: str) -> Origin | None:
    """None where ``url`` is fetched from no server; parsed as the URL Standard says."""
    try:
        parsed = can_ada.parse(url)
    except (ValueError, TypeError):  # TypeError: lone surrogates
        return None
    scheme = parsed.protocol.removesuffix(":")
    host = parsed.hostname.removesuffix(".").lower()
    if scheme not in DEFAULT_PORTS or len(host) > LONGEST_HOST:
        return None
    port = int(parsed.port) if parsed.port else DEFAULT_PORTS[scheme]
    return scheme, host, port


def read_sites_file(path: Path) -> Sites:
    """The sites with all secrets. Raises ConfigError, naming file, table and key."""
    return _read(path).complete()


def _read(path: Path) -> Sites:
    rules: list[SiteRule] = []
    warnings: dict[str, None] = {}
    for number, values in enumerate(_site_tables(path), 1):
        table = SiteTable(values, _where(path, number, values), path.absolute().parent)
        try:
            rules.append(_rule(table))
        except ConfigError as error:  # the first problem counts
            raise ConfigError(next(iter(table.problems), str(error))) from None
        warnings |= dict.fromkeys(_warnings(rules[-1], table, path))
    return Sites(rules, tuple(warnings))


def protected_in(path: Path) -> list[str]:
    """`Sites.protected` of a file whose secrets, certificates and keys may be missing. Raises
    ConfigError."""
    return _read(path).protected


def _site_tables(path: Path) -> list[dict[str, Any]]:
    try:
        values = tomllib.loads(read_plain(path).decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: not UTF-8 at byte {error.start}") from None
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path, or no TOML
        reason = getattr(error, "strerror", None) or error
        raise ConfigError(f"{path}: {reason}; expected a readable TOML file") from None
    sites = values.pop("site", [])
    if values or not isinstance(sites, list) or not all(isinstance(site, dict) for site in sites):
        name = next(iter(values), "site")
        raise ConfigError(f"{path}: {name!r}: expected tables that begin with [[site]]")
    return sites


def _where(path: Path, number: int, values: dict[str, Any]) -> str:
    hosts = values.get("hosts")
    first = hosts[0] if isinstance(hosts, list) and hosts else hosts
    shown = f" ({first})" if isinstance(first, str) and "@" not in first else ""
    return f"{path} [[site]] {number}{shown}"


def _warnings(rule: SiteRule, table: SiteTable, path: Path) -> Iterator[str]:
    if rule.options.verify is False:
        told = ", and learns the secrets for them" if rule.options.has_secrets else ""
        yield (
            f"{rule.where}: verify = false: a machine in between can read and change what these"
            f" hosts send{told}"
        )
    for file in (*table.secret_files, *([path] if table.has_inline_secret else [])):
        if file.stat().st_mode & 0o077:
            yield f"{file} holds secrets and others may read it: chmod 600 {file}"


def _rule(table: SiteTable) -> SiteRule:
    patterns, schemes = _hosts(table), table.texts("scheme")
    options = SiteOptions(
        credentials=read_credentials(table, for_web=_reaches_web(patterns, schemes)),
        cookies=read_cookies(table),
        headers=read_headers(table),
        login=read_login(table),
        client_certificate=read_client_certificate(table),
        ca_file=read_ca_file(table),
        tls_min=read_tls_min(table),
        verify=table.boolean("verify"),
        proxy=read_proxy(table),
        render=table.boolean("render"),
        render_origins=read_render_origins(table),
    )
    table.check_names()
    if options == SiteOptions():
        raise table.refuse("hosts", "is the only key: expected more (docs/sites.md)")
    if options.is_trusted:
        _check_bounds(table, patterns)
    meant = _schemes(table, schemes, patterns, options)
    rule = SiteRule(table.where, patterns, meant, options, tuple(table.problems))
    login = options.login
    if login is not None and (at := origin_of(login.url)) and not rule.matches(*at):
        raise table.refuse(
            "login",
            f"= {login.url!r} is on none of its hosts: a login stays on one origin, and is"
            ' for https alone unless the table says scheme = "http"',
        )
    return rule


def _reaches_web(patterns: Iterable[HostPattern], schemes: Collection[str] | None) -> bool:
    meant = schemes or ("https",)
    named = [(pattern.scheme,) if pattern.scheme else meant for pattern in patterns]
    return any(not WEB_PORTS.keys().isdisjoint(some) for some in named)


def _hosts(table: SiteTable) -> tuple[HostPattern, ...]:
    texts = table.texts("hosts")
    if not texts:
        raise table.refuse("hosts", "is missing: a list of patterns such as wiki.example is needed")
    try:
        return tuple(HostPattern.parse(text) for text in texts)
    except ConfigError as error:
        raise table.refuse("hosts:", str(error)) from None


def _check_bounds(table: SiteTable, patterns: Iterable[HostPattern]) -> None:
    for pattern in patterns:
        if not pattern.is_bounded:
            raise table.refuse(
                "hosts:",
                f"{str(pattern)!r} cannot be used with auth, cookies, headers, login or"
                " render_origins: its last part has a wildcard, so hosts of strangers match;"
                " expected a pattern such as wiki.example, *.intra.example or 10.1.*",
            )


def _schemes(
    table: SiteTable,
    given: Collection[str] | None,
    patterns: Iterable[HostPattern],
    options: SiteOptions,
) -> frozenset[str]:
    """The schemes for patterns that do not name a scheme."""
    if given is not None and (not given or not set(given) <= set(DEFAULT_PORTS)):
        raise table.expected("scheme", f"some of {', '.join(DEFAULT_PORTS)}", given)
    meant = frozenset(given or (("https",) if options.is_trusted else DEFAULT_PORTS))
    reached: set[str] = set()
    for pattern in patterns:
        reached |= {pattern.scheme} if pattern.scheme else meant
        if given and pattern.scheme and pattern.scheme not in given:
            raise table.refuse("hosts:", f"{str(pattern)!r} contradicts scheme = {given}")
    if options.needs_tls and not any(map(has_tls, reached)):
        raise table.refuse(
            "scheme", "is http only: client_cert, ca_file, tls_min and verify are for https"
        )
    return meant
