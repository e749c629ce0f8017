"""robots.txt: what one host allows this crawler, which line decides, how long it asks us to wait.

    User-agent: *                    http://wiki/private/plan.html   line 2: refused
    Disallow: /private/              http://wiki/private/rota.html   line 3: the longer rule allows
    Allow: /private/rota.html        http://wiki/                    no line: allowed

RFC 9309. Protego matches the rules; this module chooses which rules it gets to see. Given a whole
file, Protego 0.7 (a) ends a group at any line it does not know, where RFC 9309 2.2.4 lets only
allow and disallow end the list of agents, (b) takes any part of our name that stands at a word's
start for our name, and does not take "larmspider crawler", where 2.2.1 compares product tokens,
(c) splits lines at form feeds and U+2028, where 2.2 knows only CR and LF, (d) reads escapes that
are not UTF-8 as one and the same character, so that /%FCbung would refuse /%E4bung, and (e) keeps
lines of any length. Therefore this module splits the file and gives Protego one group, in ASCII.
"""

from __future__ import annotations

import math
import re
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from protego import Protego

from larmspider.frontier.storage.backend import Backend

HELD_BYTES = 4 << 20
"""Bytes of robots.txt bodies whose rules stay in memory; the rules take up to 75 times that."""
_LEAST_BYTES = 1_000  # what a host counts with, however short its file


class RobotsCache:
    """The parsed rules of the hosts that fit into ``held_bytes``.

    The bodies are notes of the backend, so they survive a restart, and a host whose rules were
    dropped here is parsed again, without a fetch. ``parse`` makes rules of a body; the least
    recently used rules are dropped.
    """

    obeyed = True

    def __init__(
        self, backend: Backend, parse: Callable[[bytes], RobotsRules], held_bytes: int = HELD_BYTES
    ) -> None:
        self._backend, self._parse, self._room = backend, parse, held_bytes
        self._held: OrderedDict[str, tuple[RobotsRules, int]] = OrderedDict()

    def __len__(self) -> int:
        """Hosts whose rules are held."""
        return len(self._held)

    def of(self, host: str) -> RobotsRules:
        """The rules of a host whose robots.txt was put here in this or an earlier run."""
        held = self._held.get(host)
        if held is None:
            return self._hold(host, self._backend.note(f"robots {host}") or b"")
        self._held.move_to_end(host)
        return held[0]

    def put(self, host: str, body: bytes) -> RobotsRules:
        """A fresh robots.txt; b"" if everything is allowed."""
        self._backend.put_note(f"robots {host}", body)
        return self._hold(host, body)

    def forget(self, host: str) -> None:
        """Drop a host's rules: they may soon be older than what the backend has."""
        _, size = self._held.pop(host, (None, 0))
        self._room += size

    def _hold(self, host: str, body: bytes) -> RobotsRules:
        self.forget(host)
        rules, size = self._parse(body), max(_LEAST_BYTES, len(body))
        self._held[host] = rules, size
        self._room -= size
        while self._room < 0 and len(self._held) > 1:
            self.forget(next(iter(self._held)))
        return rules


class NotAsked:
    """Replaces the RobotsCache if robots.txt is not obeyed: every URL is allowed."""

    obeyed = False

    def of(self, host: str) -> RobotsRules:
        return _ALLOWS_ALL

    def put(self, host: str, body: bytes) -> RobotsRules:
        raise ValueError("robots.txt is not obeyed")

    def forget(self, host: str) -> None:
        """Nothing is kept."""


MAX_BYTES = 500 * 1024
"""How much of a robots.txt is read (RFC 9309 2.5 asks for at least this)."""
MAX_WILDCARDS = 5_000
"""In the rules for us, over all lines: 0.1 s for 16 URLs (dispatch.MAX_REFUSED), 25,000 lines with
two each would take 0.9 s. A Disallow after them is read up to its first ``*``, which refuses more
than it says, an Allow after them is passed over."""
MAX_LINE_BYTES = 2083 * 8 - 1
"""A longer line is cut here, where the oldest crawler cuts: eight times a browser's longest URL."""

_AGENT = {b"user-agent", b"useragent", b"user agent"}
_ALLOW = {b"allow"}
_DISALLOW = {b"disallow", b"dissallow", b"dissalow", b"disalow", b"diasllow", b"disallaw"}
_DELAY = {b"crawl-delay", b"crawl delay"}
_SITEMAP = {b"sitemap", b"sitemaps", b"site-map"}
_FIELDS = _AGENT | _ALLOW | _DISALLOW | _DELAY | _SITEMAP

_LINE_END = re.compile(rb"\r\n|\r|\n")
_TOKEN = re.compile(r"[A-Za-z0-9_-]+")
_BROWSER_LIKE = re.compile(r"Mozilla/[0-9.]+ \(compatible; *([A-Za-z0-9_-]+)")
_NOT_PRINTABLE = re.compile(rb"[^\x20-\x7e]")
_HIGH_ESCAPE = re.compile(r"%([89A-Fa-f])([0-9A-Fa-f])")
_PATH = re.compile(r"(?:[A-Za-z][A-Za-z0-9+.-]*://[^/?#]*)?([^#]*)")


def product_token(user_agent: str) -> str:
    """The name in lower case that a robots.txt calls us by, "" if there is none.

    "larmspider/0.1 (+https://x.example/)" and "Mozilla/5.0 (compatible; larmspider/0.1)" give
    "larmspider". "larm spider" gives "": it is two products, and naming no one is safer than
    naming the wrong one. Digits pass, which RFC 9309 2.2.1 does not foresee, because names such
    as "spider2" are in use and must not be taken for "spider".
    """
    browser_like = _BROWSER_LIKE.match(user_agent)
    name = browser_like[1] if browser_like else re.split(r"/| *\(", user_agent, maxsplit=1)[0]
    return name.lower() if _TOKEN.fullmatch(name) else ""


class _Rule(NamedTuple):
    """One Allow or Disallow line of our group; ``pattern`` as Protego gets it, never empty."""

    number: int
    text: str
    allow: bool
    pattern: str

    def record(self) -> str:
        return f"{'Allow' if self.allow else 'Disallow'}: {self.pattern}\n"

    def matches(self, url: str) -> bool:
        # An Allow shows only against a Disallow of everything, the shortest rule there is.
        backdrop = "Disallow: *\n" if self.allow else ""
        return _matcher(backdrop + self.record()).can_fetch(url, "*") is self.allow


@dataclass(slots=True)
class _Group:
    """The rules for one agent, from all its groups together (RFC 9309 2.2.1)."""

    rules: list[_Rule] = field(default_factory=list)
    delay: float | None = None
    named: bool = False
    """Whether some line names the agent; a group without rules allows everything."""
    lines: list[int] = field(default_factory=list)
    """Numbers of the lines that name the agent, or speak to it."""
    current: bool = False
    """Whether the line being read belongs to the agent."""


class RobotsRules:
    """The rules of one robots.txt for one agent. Made by ``parse``; immutable.

    ``crawl_delay`` is in seconds, 0 or more and not capped; the longest of several, None
    without one. ``sitemaps`` are the URLs of all Sitemap lines in their order, as written.
    ``lines`` are the numbers, from 1, of the lines that are for this agent.
    """

    def __init__(
        self,
        rules: list[_Rule],
        crawl_delay: float | None,
        sitemaps: list[str],
        lines: list[int] | None = None,
    ) -> None:
        self.crawl_delay = crawl_delay
        self.sitemaps = sitemaps
        self.lines = frozenset(lines or ())
        self._rules = list(_bounded(rules))
        self._matcher = _matcher("".join(dict.fromkeys(rule.record() for rule in self._rules)))

    def __repr__(self) -> str:
        return (
            f"<RobotsRules {len(self._rules)} rules, crawl delay {self.crawl_delay},"
            f" {len(self.sitemaps)} sitemaps>"
        )

    @classmethod
    def parse(cls, body: bytes, user_agent: str) -> RobotsRules:
        """Read the body of a robots.txt. Never raises: lines that are not rules are skipped.

        ``user_agent`` is the User-Agent header or only its product token.
        """
        ours, everyone = _Group(), _Group()
        our_token = product_token(user_agent)
        sitemaps: dict[str, None] = {}
        in_agents = False
        for number, line in enumerate(_lines(body), 1):
            if not line:
                continue  # 500,000 of them fit in a file: 0.2 s if each were split
            name, value = _split(line)
            if name in _AGENT:
                if not in_agents:
                    ours.current = everyone.current = False
                in_agents = True
                if value.split(None, 1)[:1] == [b"*"]:
                    everyone.current = True
                    everyone.lines.append(number)
                elif our_token and _token_of(value) == our_token:
                    ours.current = ours.named = True
                    ours.lines.append(number)
            elif name in _ALLOW or name in _DISALLOW:
                in_agents = False
                if value:
                    rule = _Rule(number, _text(line), name in _ALLOW, _escape(value))
                    for group in (ours, everyone):
                        if group.current:
                            group.rules.append(rule)
                            group.lines.append(number)
            elif name in _DELAY:
                delay = _seconds(value)
                for group in (ours, everyone):
                    if group.current and delay is not None:
                        group.delay = max(delay, group.delay or 0.0)
                        group.lines.append(number)
            elif name in _SITEMAP and value:
                sitemaps[_text(value)] = None
        group = ours if ours.named else everyone
        return cls(group.rules, group.delay, list(sitemaps), group.lines)

    def allowed(self, url: str) -> bool:
        """Whether we may fetch ``url``, an absolute URL of this host (RFC 9309 2.2.2)."""
        return not self._rules or self._matcher.can_fetch(_comparable(url), "*")

    def deciding_line(self, url: str) -> tuple[int, str] | None:
        """The number (from 1) and text of the line that allows or refuses ``url``; None when no
        line matches, which allows it. For people who ask why: some 10 us for each rule.
        """
        verdict, comparable = self.allowed(url), _comparable(url)
        deciding = max(
            (rule for rule in self._rules if rule.allow is verdict and rule.matches(comparable)),
            key=lambda rule: len(rule.pattern),
            default=None,
        )
        return None if deciding is None else (deciding.number, deciding.text)


def lines_of(body: bytes) -> list[str]:
    """The lines of a robots.txt as they are numbered here, as text."""
    return [_text(line) for line in _lines(body)]


def _bounded(rules: list[_Rule]) -> Iterator[_Rule]:
    """The rules that are matched: MAX_WILDCARDS, and no rule that refuses less than it says."""
    room = MAX_WILDCARDS
    for rule in rules:
        wildcards = rule.pattern.count("*")
        room -= wildcards
        if room >= 0 or not wildcards:
            yield rule
        elif not rule.allow:
            yield rule._replace(pattern=rule.pattern.partition("*")[0] or "/")


def _matcher(records: str) -> Protego:
    return Protego.parse("User-agent: *\n" + records)


def _lines(body: bytes) -> list[bytes]:
    """The lines of a file in UTF-8 (or UTF-16, by its mark) without marks, NULs and excess."""
    if len(body) > MAX_BYTES:
        # Half a line would be another rule: "Disallow: /a" for "Disallow: /archive/2001/".
        end = max(body.rfind(b"\n", 0, MAX_BYTES), body.rfind(b"\r", 0, MAX_BYTES))
        body = body[: max(end, 0)]
    if body.startswith((b"\xff\xfe", b"\xfe\xff")):
        body = body.decode("utf-16", "replace").encode()
    body = body.removeprefix(b"\xef\xbb\xbf").replace(b"\0", b"")
    return [line[:MAX_LINE_BYTES] for line in _LINE_END.split(body)]


def _split(line: bytes) -> tuple[bytes, bytes]:
    """Field in lower case and value of a line; a blank may stand for the colon."""
    line = line.partition(b"#")[0].strip(b" \t")
    name, _, value = line.partition(b":")
    name = name.rstrip(b" \t").lower()
    if name not in _FIELDS:
        name, value = (*line.split(None, 1), b"", b"")[:2]
        name = name.lower()
    return name, value.strip(b" \t")


def _token_of(value: bytes) -> str:
    """The product token a User-agent line names: "larmspider" in "LarmSpider/2.1"."""
    token = _TOKEN.match(value.decode("ascii", "replace"))
    return token[0].lower() if token else ""


def _seconds(value: bytes) -> float | None:
    try:
        seconds = float(value)
    except ValueError:
        return None
    return seconds if math.isfinite(seconds) and seconds >= 0 else None


def _text(raw: bytes) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return raw.decode("latin-1")


def _escape(raw: bytes) -> str:
    """``raw`` in ASCII, each byte from 80 on in one spelling, "%C3" or raw C3 as "%W3".

    The first digit becomes a letter from S to Z because Protego decodes valid escapes, and turns
    all that are not UTF-8 into U+FFFD. It does not change invalid escapes. The length, by which
    the longest rule wins, stays the length of the escape.
    """
    text = _NOT_PRINTABLE.sub(lambda byte: b"%%%02X" % byte[0][0], raw).decode("ascii")
    return _HIGH_ESCAPE.sub(lambda m: f"%{chr(ord('S') + int(m[1], 16) - 8)}{m[2].upper()}", text)


def _comparable(url: str) -> str:
    """Path and query of ``url`` as the rules are spelled, below a host that is never compared."""
    found = _PATH.match(url)
    path = found[1] if found else ""
    path = _escape(path.encode("utf-8", "surrogatepass"))
    return f"http://h{path if path.startswith('/') else '/' + path}"


_ALLOWS_ALL = RobotsRules([], None, [])
