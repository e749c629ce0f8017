"""Two URLs, one document: HTTP://Wiki.example:80/Main/./index.html#top is http://wiki.example/main/.

Both forms made here are for comparison only; the fetched URL is always the original. The exact form
is the key of frontier and index. It is the same for URLs that RFC 3986 6.2 and the URL Standard
call equal:

- scheme and host in lower case, host in punycode, no default port, no dot after the host, no user
  and password, no fragment;
- ``/./`` and ``/../`` are resolved; an empty query is dropped;
- one spelling for each escape (syntax.py), space is ``%20``.

The canonical form is LARM's (its overview, "URLNormalizationFilter"), for scope, filters and the
logs. It also applies guesses, each a rule of equivalence.py:

- path-case: path in lower case, because the file systems of many servers do not tell case apart;
- double-slash: ``//`` is ``/``;
- folder-file: ``index.*`` or ``default.*`` is its folder, if it is a page (``index.html``);
- session-id: no session ids (session_ids.py);
- bare-percent: a percent sign that starts no escape is ``%25``, as lenient servers read it.

Not changed on purpose: the case of the query (it is data), the order of its parameters, and ``+``
and ``%20`` in it. Only HTML form decoding reads ``+`` as a space; a server without it (WHATWG URL
4.3 gives ``+`` no meaning) answers ``?q=c++`` and ``?q=c%20%20`` with different documents. Two
forms of one page cost a fetch; one form for two pages loses a page.

Parsing is WHATWG's (can_ada): ``\\`` is ``/``, white space at the ends is stripped, 0x7f.1 is
127.0.0.1.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

import can_ada
from w3lib.html import replace_escape_chars

from larmspider.errors import InvalidURL
from larmspider.urls.equivalence import (
    BARE_PERCENT,
    DOUBLE_SLASH,
    FOLDER_FILE,
    NEVER,
    PATH_CASE,
    RULES,
    SESSION_ID,
    EquivalenceRules,
)
from larmspider.urls.file_urls import FILES, FROM, SCHEME
from larmspider.urls.schemes import CONNECTED, PORTS, scheme_of
from larmspider.urls.session_ids import DEFAULT_SESSION_IDS, SessionIds
from larmspider.urls.syntax import (
    C0_OR_SPACE,
    LONGEST_HOST,
    escape_percents,
    host_too_long,
    lowercase,
    normalize_escapes,
    resolve_dots,
    without_userinfo,
)

# The fast path: URLs that are canonical except for the case of their path. They have no escapes, no
# empty or dot segment, no index or default file, no path parameters, and no punycode. Their host is
# an IPv4 address in its usual spelling, or cannot be an address (its last label starts with a
# letter). Other URLs take the complete way.
_BYTE = r"(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"
_ORDINARY = re.compile(
    rf"""
    (https?://(?:(?:(?!xn--)[a-z0-9_-]++\.)*+(?!xn--)[a-z][a-z0-9_-]*+|(?:{_BYTE}\.){{3}}{_BYTE})
    (?::(?!80/|443/)(?:[1-5][0-9]{{4}}|[1-9][0-9]{{1,3}}))?)
    (?=/)
    ((?:/(?!(?i:index|default)\.)[A-Za-z0-9_~!$&'()*+,=:@-][A-Za-z0-9_~!$&'()*+,=:@.-]*+)*+/?)
    (?:\?([A-Za-z0-9_~!$&()*+,=:@./?;-]++))?
    """,
    re.VERBOSE,
).fullmatch
LONGEST_URL = 65_536
"""Characters; servers take 8,000 to 32,000 in a request line."""
_LONGEST_ORDINARY = LONGEST_HOST  # its host cannot be longer either

_FOLDER_FILE = re.compile(
    r"/(?:index|default)\.(?:html?|xhtml|shtml|php|aspx?|jsp|cgi|cfm)\Z", re.IGNORECASE | re.ASCII
)
_SLASHES = re.compile("//+")
_PORT_OF_FTP = re.compile(r"[/\\]*+[^/\\?#]*:0*21(?=[/\\?#]|\Z)")
_OF_THE_WEB = ("http:", "https:")
_STAND_IN = "odd-punycode.invalid"
# Scheme, host with punycode in ASCII, and the rest.
_URL = re.compile(
    r"(https?):[/\\]*+(?:[^/\\?#]*@)?(?=(?:[a-z0-9_-]*\.)*xn--)([a-z0-9._-]++)((?:[:/\\?#].*)?)\Z",
    re.IGNORECASE | re.DOTALL | re.ASCII,
)


class Forms(NamedTuple):
    """``exact`` is the same object as ``normalized`` where they are equal."""

    normalized: str
    exact: str


class Canonicalizer:
    """Makes canonical forms: an instance is called with a URL; forms() gives the exact one as well.

    ``rules``: the guesses that make a host's canonical form, and the guesses among these that its
    exact form has, too. ``lowercase_path=False`` switches the guess path-case off for all hosts;
    ``lowercase_exceptions`` are patterns of hosts for which it is off. ``session_ids`` are the
    names of the parameters to drop, see session_ids.py. Raises ConfigError for patterns or names
    that could never match.
    """

    def __init__(
        self,
        lowercase_path: bool = True,
        lowercase_exceptions: Sequence[str] = (),
        session_ids: Sequence[str] = DEFAULT_SESSION_IDS,
        rules: EquivalenceRules | None = None,
    ) -> None:
        patterns = (*lowercase_exceptions, *(() if lowercase_path else ("*",)))
        modes = [(pattern, {"path-case": NEVER}) for pattern in patterns]
        self.rules = EquivalenceRules([*modes, *(rules.modes if rules else ())])
        self._masks = self.rules.of("*") if self.rules.one_for_all else None
        self._session_ids = SessionIds(session_ids)
        self.session_ids = self._session_ids.names

    def __call__(self, url: str) -> str:
        """The canonical form of ``url``, an absolute URL: printable ASCII.

        Idempotent. Raises InvalidURL, and nothing else, for any string that is no http, https or
        file URL, and no URL of a connector (schemes.py). 0.7 us for
        http://docs.example/library/os.path.html, 2 to 6 us for URLs with escapes, index files or
        session ids (python -m benchmarks.canonical).
        """
        return self.forms(url).normalized

    def exact(self, url: str) -> str:
        """The exact form, which is idempotent. Raises as a call does."""
        return self.forms(url).exact

    def forms(self, url: str) -> Forms:
        """Both, by one parse. Raises as a call does."""
        if len(url) <= _LONGEST_ORDINARY and (ordinary := _ORDINARY(url)):
            origin, path, query = ordinary.groups()
            if query is None or not self._session_ids.in_query(query):
                wanted, merged = self._masks or self.rules.of(_netloc_of(origin))
                if not wanted & PATH_CASE or (lowered := path.lower()) == path:
                    return Forms(url, url)
                normalized = f"{origin}{lowered}?{query}" if query else origin + lowered
                return Forms(normalized, normalized if merged & PATH_CASE else url)
        return self.complete(url)

    def complete(self, url: str) -> Forms:
        """Both forms without the fast path; tests compare the two ways."""
        parsed = _parse(url)
        if parsed.protocol not in _OF_THE_WEB:
            form = _source_form(parsed, url)
            return Forms(form, form)
        origin = _origin_of(parsed, url)
        wanted, merged = self._masks or self.rules.of(_netloc_of(origin))
        path, query = _exact_parts(parsed)
        normalized = self._form(origin, path, query, wanted)
        exact = self._form(origin, path, query, merged)
        return Forms(normalized, normalized if exact == normalized else exact)

    def form(self, url: str, rules: int) -> str:
        """The exact form with these rules, a mask of equivalence.py. Raises as a call does."""
        parsed = _parse(url)
        if parsed.protocol not in _OF_THE_WEB:
            return _source_form(parsed, url)
        return self._form(_origin_of(parsed, url), *_exact_parts(parsed), rules)

    def needed(self, one: str, other: str) -> int | None:
        """The rules, as a mask, without which two URLs differ; None if they differ with all the
        rules of the host, 0 if they have one exact form. Raises as a call does."""
        mask = self._masks or self.rules.of(_netloc_of(self.exact(one)))
        proven = mask.normalized & ~mask.merged
        if self(one) != self(other):
            return None
        return sum(
            bit
            for bit in RULES.values()
            if bit & proven
            and self.form(one, mask.normalized & ~bit) != self.form(other, mask.normalized & ~bit)
        )

    def _form(self, origin: str, path: str, query: str, rules: int) -> str:
        if rules:
            if rules & BARE_PERCENT:
                path, query = escape_percents(path), escape_percents(query)
            if rules & PATH_CASE:
                path = lowercase(path)
            if rules & SESSION_ID:
                if ";" in path:
                    path = self._session_ids.drop_from_path(path)
                    if "/." in path:
                        path = resolve_dots(path)
                if query:
                    query = self._session_ids.drop_from_query(query)
            if rules & DOUBLE_SLASH and "//" in path:
                path = _SLASHES.sub("/", path)
            if rules & FOLDER_FILE:
                path = _FOLDER_FILE.sub("/", path)
        return f"{origin}{path}?{query}" if query else origin + path


_default = Canonicalizer()


def canonicalize(url: str) -> str:
    """The canonical form with the default options."""
    return _default(url)


class _Parts(NamedTuple):
    """The parts of a can_ada.URL that are used."""

    protocol: str
    hostname: str
    port: str
    pathname: str
    search: str


def _parse(url: str) -> can_ada.URL | _Parts:
    if (scheme := scheme_of(url.lstrip(C0_OR_SPACE))) is not None:
        return _parse_connected(url, scheme.name)
    parsed = _parse_any(url)
    if parsed.protocol == SCHEME:
        if parsed.hostname:
            raise InvalidURL(f"file of another host: {without_userinfo(url)!a:.200}")
    elif parsed.protocol not in _OF_THE_WEB:
        raise InvalidURL(f"scheme is not http or https: {without_userinfo(url)!a:.200}")
    return parsed


def _parse_any(url: str) -> can_ada.URL | _Parts:
    if len(url) > LONGEST_URL:
        raise InvalidURL(f"longer than {LONGEST_URL:,} characters: {without_userinfo(url)!a:.100}")
    if host_too_long(url):
        raise InvalidURL(
            f"host is longer than {LONGEST_HOST} characters: {without_userinfo(url)!a:.100}"
        )
    try:
        parsed = can_ada.parse(url)
    except TypeError as error:  # can_ada takes no string that has no UTF-8
        raise InvalidURL(f"holds a lone surrogate: {without_userinfo(url)!a:.200}") from error
    except ValueError as error:
        if (odd := disguised(url)) is not None:
            parts = _parse(odd.url)
            return _Parts(parts.protocol, odd.host, parts.port, parts.pathname, parts.search)
        raise InvalidURL(f"not an absolute URL: {without_userinfo(url)!a:.200}") from error
    return parsed


def _parse_connected(url: str, scheme: str) -> _Parts:
    """The URL of a connector, read as a URL of the web: WHATWG gives no meaning to the hosts, ports
    and backslashes of other schemes."""
    rest = url.lstrip(C0_OR_SPACE)[len(scheme) + 3 :]
    stand_in = "ws" if _PORT_OF_FTP.match(rest) else "ftp"  # ftp: drops the port 21, ws: 80
    try:
        parsed = _parse_any(f"{stand_in}://{rest}")
    except InvalidURL as error:
        raise InvalidURL(str(error).replace(f"{stand_in}://", f"{scheme}://", 1)) from None
    port = "" if parsed.port == PORTS[f"{scheme}:"][1:] else parsed.port
    return _Parts(f"{scheme}:", parsed.hostname, port, parsed.pathname, parsed.search)


def _source_form(parsed: can_ada.URL | _Parts, url: str) -> str:
    """No rule is a guess here. A query means a part of a folder."""
    path, query = map(escape_percents, _exact_parts(parsed))
    path = _SLASHES.sub("/", path)
    if parsed.protocol == SCHEME:
        origin = FILES
    else:
        origin = _origin_of(parsed, url)
        if CONNECTED[parsed.protocol[:-1]].folds_case:
            path, query = lowercase(path), lowercase(query)
    in_parts = path.endswith("/") and query.startswith(FROM)
    return f"{origin}{path}?{query}" if in_parts else origin + path


def _netloc_of(url: str) -> str:
    return url.partition("://")[2].partition("/")[0]


def _origin_of(parsed: can_ada.URL | _Parts, url: str) -> str:
    host = parsed.hostname
    if host[-1] == "." and host[-2:] not in (".", ".."):
        host = host[:-1]
    if len(host) > LONGEST_HOST:
        raise InvalidURL(
            f"host is longer than {LONGEST_HOST} characters: {without_userinfo(url)!a:.100}"
        )
    port = parsed.port
    return f"{parsed.protocol}//{host}:{port}" if port else f"{parsed.protocol}//{host}"


def _exact_parts(parsed: can_ada.URL | _Parts) -> tuple[str, str]:
    """Path, and query without its question mark."""
    path, query = normalize_escapes(parsed.pathname), parsed.search
    if "/." in path:
        path = resolve_dots(path)
    return path, normalize_escapes(query[1:]) if query else ""


class Disguised(NamedTuple):
    """``url`` with another host in place of ``host``, which is in lower case.

    For hosts such as ``xn--pokxncvks``: punycode that decodes to nothing, yet a DNS name. WHATWG's
    test cases accept them, can_ada does not. Letters, digits and hyphens need no IDNA, so can_ada
    is given another host, and theirs is put back.
    """

    url: str
    host: str

    def restore(self, url: str) -> str:
        """``url``, made from ``self.url``, with ``host`` again if its host did not change."""
        scheme, slashes, rest = url.partition("//")
        if not rest.startswith(_STAND_IN) or rest[len(_STAND_IN) :][:1] not in ("", "/", ":", "?"):
            return url
        return scheme + slashes + self.host + rest.removeprefix(_STAND_IN)


def disguised(url: str) -> Disguised | None:
    """``url`` with another host, if can_ada refused it only for such a host; else None."""
    found = _URL.match(replace_escape_chars(url.strip(C0_OR_SPACE)))
    if found is None:
        return None
    scheme, host, rest = found.groups()
    host = host.lower()
    last = host.removesuffix(".").rpartition(".")[2]
    if last.isdigit() or last.startswith("0x"):
        return None  # WHATWG: it ends in a number, so it is an IPv4 address, an invalid one
    return Disguised(f"{scheme}://{_STAND_IN}{rest}", host)
