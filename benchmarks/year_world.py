"""The servers of a simulated year: their hosts, and what becomes of them day by day.

    with World(seed=1, events=read_events(path)) as world:
        world.go_to(day=12, now=1_770_000_000.0)      # events up to that day have happened
        world.truth("http://127.61.0.3:8080/b/p7")    # Truth(token="qxjvkbwa...", gone_on=0)
        world.requests                                # so far

Each host is an address of its own; the hosts speak HTTP on one port. A host with the event ``tls``
speaks HTTPS at the address of another host.
A text has a token, a word of letters that changes with each edit, so a copy in the index shows
which version it is. A start page names the sections, and a section names its pages: a page that is
removed is named nowhere any more.
"""

from __future__ import annotations

import random
import socket
import time
from base64 import b64decode
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from email.utils import formatdate
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple, Self
from urllib.parse import urlsplit

from tests.support.servers.scripted import Raw, Reply, Request, Resolution, ScriptedServer

HTML = "text/html; charset=utf-8"
DAY = 86_400.0
SECTION = 12
OUTSIDE = "127.62.0.1:9"
"""Address without a server. Some pages redirect there when they leave."""
USER, PASSWORD = "crawler", "open sesame"
"""Basic credentials of hosts with the state ``credentials``."""
_LETTERS = "bcdfghjklmnpqrstvwxz"
_WORDS = [
    a + b + c
    for a in ("ka", "lo", "mi", "ru", "te")
    for b in "bdlmnrst"
    for c in ("a", "en", "or", "is")
]


class Event(NamedTuple):
    """A change on a host at the beginning of ``day``. ``argument``: number of pages, "on" or "off",
    a host or a path. On day 0 ``pages`` is the number of pages of a host at first; ``edits`` and
    ``adds`` are edited and new pages a day beside the events."""

    day: int
    host: str
    what: str
    argument: str


class Truth(NamedTuple):
    """The token of the text at a URL, "" without a text, and the day on which the text left."""

    token: str
    gone_on: int


def read_events(path: Path) -> list[Event]:
    """The rows of a table of events. Raises ValueError for a row of another form."""
    events = []
    for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
        if line and not line.startswith("#"):
            fields = line.split("\t")
            if len(fields) != 4 or not fields[0].isdigit():
                raise ValueError(f"{path}:{number}: expected day, host, event and argument")
            events.append(Event(int(fields[0]), *fields[1:]))
    return sorted(events, key=lambda event: event.day)


def token(*parts: object) -> str:
    """A word of 14 letters that no other text has."""
    digest = blake2b(repr(parts).encode(), digest_size=12).digest()
    return "qx" + "".join(_LETTERS[byte % len(_LETTERS)] for byte in digest)


@dataclass(slots=True)
class Doc:
    """A page. ``name``: the host and path under which it began. ``gone`` is the status that its URL
    has since it was removed, on ``gone_on``."""

    name: str
    path: str
    section: str
    version: int = 0
    changed: float = 0.0
    gone: int = 0
    gone_on: int = 0
    successor: str = ""
    listed: bool = True
    noindex: bool = False


@dataclass(slots=True)
class Host:
    """``states`` are those that hold the whole host, each with its argument. ``family``: the name
    of the host on which its pages began; ``root``: the path of its start page."""

    name: str
    address: str
    family: str
    root: str = "/"
    port: int = 0
    tls: bool = False
    docs: dict[str, Doc] = field(default_factory=dict)
    states: dict[str, str] = field(default_factory=dict)
    moved_to: str = ""
    moved_on: int = 0
    layout: int = 0
    hits: int = 0

    @property
    def base(self) -> str:
        return f"http{'s' if self.tls else ''}://{self.address}:{self.port}"


class World:
    """Runs the servers of all hosts. ``go_to`` sets their clock, which then goes on."""

    def __init__(self, seed: int, events: Iterable[Event]) -> None:
        self.random = random.Random(seed)
        self.events = list(events)
        self.day, self.requests = -1, 0
        self._now, self._at = 0.0, time.monotonic()
        self._servers: list[ScriptedServer] = []
        begin = [event for event in self.events if event.what in _BEGIN]
        self.events = [event for event in self.events if event.what not in _BEGIN]
        named = [event.host for event in begin]
        named += [event.argument for event in self.events if event.what in _TO_HOST]
        tls = {event.host: event.argument for event in begin if event.what == "tls"}
        names = list(dict.fromkeys(named))
        addresses = {name: f"127.61.0.{number}" for number, name in enumerate(names, 1)}
        self.hosts = {
            name: Host(name, addresses[tls.get(name, name)], name, tls=name in tls)
            for name in names
        }
        self._rates = [
            (event.what, self.hosts[event.host], float(event.argument))
            for event in begin
            if event.what in ("edits", "adds")
        ]
        self._first = [event.host for event in begin if event.what == "pages"]
        for event in begin:
            if event.what == "credentials":
                self.hosts[event.host].states[event.what] = event.argument
            for _ in range(int(event.argument) if event.what == "pages" else 0):
                self._add(self.hosts[event.host])

    def __enter__(self) -> Self:
        with socket.create_server(("127.61.0.1", 0)) as free:
            port = free.getsockname()[1]
        for host in self.hosts.values():
            server = ScriptedServer(
                {"*": self._answers(host)},
                host.address,
                0 if host.tls else port,
                tls=host.tls,
            )
            server.__enter__()
            host.port = server.port
            self._servers.append(server)
        return self

    def __exit__(self, *error: object) -> None:
        for server in self._servers:
            server.__exit__(None, None, None)

    @property
    def now(self) -> float:
        """Seconds since the epoch, on the servers."""
        return self._now + time.monotonic() - self._at

    def go_to(self, day: int, now: float) -> list[Event]:
        """All that happens up to that day; the events, without the edits of every day."""
        happened = []
        self._now, self._at = now, time.monotonic()
        while self.day < day:
            self.day += 1
            for event in self.events:
                if event.day == self.day:
                    self._happen(event)
                    happened.append(event)
            if self.day:
                self._every_day()
        return happened

    def seeds(self) -> list[str]:
        """The start pages of the hosts that have pages at the beginning."""
        return [f"{self.hosts[name].base}/" for name in self._first]

    def host_of(self, url: str) -> Host | None:
        parts = urlsplit(url)
        for host in self.hosts.values():
            if (parts.hostname, parts.port) == (host.address, host.port):
                return host
        return None

    def truth(self, url: str) -> Truth:
        """The text that the search should show for a URL. Server errors and logins do not count."""
        host, path = self.host_of(url), urlsplit(url).path.partition(";")[0]
        if host is None:
            return Truth("", 0)
        if host.moved_to:
            return Truth("", host.moved_on)
        if "disallow" in host.states:
            return Truth("", int(host.states["disallow"]))
        if (closed := host.states.get("disallow-below", " ")) and path.startswith(closed):
            return Truth("", int(host.states["disallow-below since"]))
        if (narrow := host.states.get("scope")) and path.startswith(narrow):
            return Truth("", int(host.states["scope since"]))
        if (doc := host.docs.get(path)) is not None:
            hidden = doc.gone or doc.noindex
            return Truth("" if hidden else self._token(doc), doc.gone_on)
        return Truth(self._listing_token(host, path), 0)

    def is_named_no_more(self, url: str) -> bool:
        """Whether the page alone was taken out, and its section does not name it any more."""
        host = self.host_of(url)
        doc = host.docs.get(urlsplit(url).path.partition(";")[0]) if host is not None else None
        return host is not None and not host.moved_to and doc is not None and doc.gone > 0

    def restrict(self) -> str:
        """The crawl's scope: the hosts of this world, without sections that left it."""
        outside = [
            f"{host.base}{host.states['scope']}".replace(".", r"\.")
            for host in self.hosts.values()
            if "scope" in host.states
        ]
        without = f"(?!{'|'.join(outside)})" if outside else ""
        return rf"{without}https?://127\.61\.0\.\d+:\d+/.*"

    def urls(self) -> list[str]:
        """The pages that exist, that a section lists, and that may be indexed."""
        return [
            host.base + doc.path
            for host in self.hosts.values()
            if not host.moved_to and "disallow" not in host.states
            for doc in host.docs.values()
            if not doc.gone
            and not doc.noindex
            and doc.listed
            and not doc.path.startswith(host.states.get("scope", " "))
            and not doc.path.startswith(host.states.get("disallow-below", " "))
        ]

    def there(self) -> set[str]:
        """All pages that exist and may be indexed, listed or not."""
        pages = [one.base + path for one in self.hosts.values() for path in one.docs]
        return {url for url in pages if self.truth(url).token}

    # --- what happens -------------------------------------------------------------------------

    def _happen(self, event: Event) -> None:
        host, argument = self.hosts[event.host], event.argument
        if argument in ("on", "off"):
            if argument == "on":
                host.states[event.what] = str(self.day)
            else:
                host.states.pop(event.what, None)
            return
        if event.what in ("move-host", "move-below"):
            self._move(host, self.hosts[argument], "/wiki" if event.what == "move-below" else "")
            return
        if event.what == "split":
            for doc in list(host.docs.values())[::2]:
                if not doc.gone:
                    self._take(self.hosts[argument], doc, "")
                    doc.gone, doc.gone_on = 301, self.day
                    doc.successor = self.hosts[argument].base + doc.path
            return
        if event.what == "relayout":
            host.layout += 1
            return
        if event.what in ("broken", "scope", "disallow-below"):
            host.states[event.what] = argument
            host.states[f"{event.what} since"] = str(self.day)
            return
        if event.what in OF_CRAWL:
            return
        chosen = self._some(host, int(argument), gone=event.what == "restore")
        for doc in chosen:
            self._change(host, doc, event.what)

    def _move(self, host: Host, target: Host, below: str) -> None:
        host.moved_to, host.moved_on = target.name, self.day
        target.moved_to, target.family, target.layout = "", host.family, host.layout
        target.root, target.docs = f"{below}{host.root}", dict(host.docs)
        if below:
            target.docs = {}
            for doc in host.docs.values():
                self._take(target, doc, below)
        for name in ("last-modified", "counter", "sitemap"):
            if name in host.states:
                target.states[name] = host.states[name]

    @staticmethod
    def _take(target: Host, doc: Doc, below: str) -> None:
        """The page has a URL on another host, too."""
        path, section = f"{below}{doc.path}", f"{below}{doc.section}"
        target.docs[path] = replace(doc, path=path, section=section)

    def _change(self, host: Host, doc: Doc, what: str) -> None:
        if what == "edit":
            doc.version, doc.changed = doc.version + 1, self._now
        elif what == "backdate":
            doc.version, doc.changed = doc.version + 1, doc.changed - 400 * DAY
        elif what in _GONE:
            doc.gone, doc.gone_on = _GONE[what], self.day
        elif what == "rename":
            new = self._add(host)
            new.version = doc.version
            doc.gone, doc.gone_on, doc.successor = 301, self.day, new.path
        elif what == "slash":
            doc.gone, doc.gone_on, doc.successor = 301, self.day, f"{doc.path}/"
            host.docs[doc.successor] = replace(doc, path=doc.successor, gone=0, successor="")
        elif what == "restore":
            doc.gone = doc.gone_on = 0
            doc.changed = self._now
        elif what == "noindex":
            doc.noindex, doc.gone_on = True, self.day
        elif what == "unlink":
            doc.listed = False
        else:
            raise ValueError(f"{what}: no such event")

    def _some(self, host: Host, number: int, *, gone: bool) -> list[Doc]:
        fit = [
            doc
            for doc in host.docs.values()
            if (doc.gone == 404 if gone else not doc.gone and not doc.noindex and doc.listed)
        ]
        return self.random.sample(fit, min(number, len(fit)))

    def _every_day(self) -> None:
        for what, first, rate in self._rates:
            host = first
            while host.moved_to:
                host = self.hosts[host.moved_to]
            for _ in range(int(rate + self.random.random())):
                if what == "adds":
                    self._add(host)
                else:
                    for doc in self._some(host, 1, gone=False):
                        self._change(host, doc, "edit")

    def _add(self, host: Host) -> Doc:
        number = len(host.docs)
        section = f"{host.root}{chr(97 + number // SECTION % 26)}/"
        path = f"{section}p{number}"
        doc = Doc(f"{host.family}{path}", path, section, changed=self._now)
        host.docs[doc.path] = doc
        return doc

    # --- answers ---------------------------------------------------------------------

    def _answers(self, host: Host) -> Callable[[Request], Resolution]:
        def answer(request: Request) -> Resolution:
            self.requests += 1
            host.hits += 1
            return self._answer(host, request)

        return answer

    def _answer(self, host: Host, request: Request) -> Resolution:
        states, path = host.states, request.path.partition(";")[0]
        if "refuse" in states:
            return Raw(b"")
        if "wall" in states:
            return self._reply(200, f"{_LOGIN}Sign in to read {request.target}")
        if not host.docs:
            return self._reply(404, "Nothing here yet")
        if path == "/robots.txt" and "robots-errors" in states:
            return self._reply(503, "Down for maintenance")
        if path == "/robots.txt" and not ("robots-move" in states and host.moved_to):
            rules = f"Disallow: {states.get('disallow-below', '')}"
            rules = "Disallow: /" if "disallow" in states else rules
            return self._reply(200, f"User-agent: *\n{rules}\n", {"Content-Type": "text/plain"})
        if host.moved_to:
            to = self.hosts[host.moved_to]
            where = to.base + to.root.removesuffix(host.root) + request.target
            return self._reply(301, "", {"Location": where})
        if "ring" in states:
            ring = [one for one in self.hosts.values() if "ring" in one.states]
            other = ring[(ring.index(host) + 1) % len(ring)]
            return self._reply(301, "", {"Location": other.base + request.target})
        if "sso" in states:
            where = f"http://{OUTSIDE}/sso?next={host.base}{path}"
            return self._reply(302, "", {"Location": where})
        if "self-redirect" in states:
            return self._reply(302, "", {"Location": host.base + request.target})
        if "consent" in states:
            if path != "/consent":
                return self._reply(302, "", {"Location": f"/consent?back={path}"})
            return self._reply(200, "<h1>Cookies</h1><p>Do you agree to all of our cookies?</p>")
        if "credentials" in states and not self._may_see(request):
            return self._reply(401, "", {"WWW-Authenticate": 'Basic realm="closed"'})
        if "busy" in states:
            return self._reply(429, "Too many requests")
        if "errors" in states:
            return self._reply(503, "Down for maintenance")
        if "login" in states and path != "/login":
            return self._reply(302, "", {"Location": f"/login?next={path}"})
        if path == "/login" or "login-form" in states:
            return self._reply(200, f"{_LOGIN}Sign in")
        if "forbidden" in states:
            return self._reply(403, "Forbidden")
        if "empty" in states:
            return self._reply(200, "")
        if "ok" in states:
            return self._reply(200, "<h1>Welcome</h1><p>The site is being set up again.</p>")
        if "ok-words" in states:
            return self._reply(200, f"<h1>Welcome</h1><p>{self._babble(host)}</p>")
        if "redirect-root" in states and path != "/":
            return self._reply(302, "", {"Location": "/"})
        if path == "/sitemap.xml":
            return self._sitemap(host)
        if path == "/feed.xml" and "feed" in states:
            return self._feed(host)
        return self._page(host, request)

    @staticmethod
    def _may_see(request: Request) -> bool:
        sent = request.headers.get("authorization", "").removeprefix("Basic ")
        return b64decode(sent) == f"{USER}:{PASSWORD}".encode()

    def _page(self, host: Host, request: Request) -> Resolution:
        states, path = host.states, request.path.partition(";")[0]
        doc = host.docs.get(path)
        if path == "/not-there" and "soft-redirect" in states:
            return self._reply(200, "<h1>Sorry</h1><p>The page that you look for is away.</p>")
        if doc is None and self._listing_token(host, path):
            return self._reply(200, self._listing(host, path))
        if "fault-words" in states and doc is not None:
            fault = f"The database is away. {self._babble(host)}"
            return self._reply(200, f"<h1>Oops</h1><p>{fault}</p>")
        if doc is None or doc.gone in (404, 410):
            status = 404 if doc is None else doc.gone
            if "soft-redirect" in states:
                return self._reply(302, "", {"Location": "/not-there"})
            if "wobble" in states:
                status = (404, 410)[host.hits % 2]
            if "soft-404-words" in states:
                return self._reply(200, f"<h1>Sorry</h1><p>Nothing here. {self._babble(host)}</p>")
            if "soft-404" in states:
                return self._reply(200, f"<h1>Sorry</h1><p>There is no page {path} here.</p>")
            return self._reply(status, "<h1>Not found</h1>")
        if doc.gone == 403:
            return self._reply(403, "<h1>Forbidden</h1>")
        if doc.gone in (301, 302):
            where = doc.successor or f"http://{OUTSIDE}/{path}"
            return self._reply(doc.gone, "", {"Location": where})
        number = list(host.docs).index(path)
        if number < int(states.get("broken", 0)):
            return self._reply(500, "<h1>Internal error</h1>")
        if "flicker" in states and (number + self.day) % 2:
            return self._reply(404, "<h1>Not found</h1>")
        headers = {}
        if "last-modified" in states:
            shift = 400 * DAY if "ahead" in states else 0.0
            headers["Last-Modified"] = formatdate(doc.changed + shift, usegmt=True)
        if "slow" in states:
            time.sleep(0.05)
        return self._reply(200, self._text(host, doc, request), headers)

    def _reply(self, status: int, text: str, headers: dict[str, str] | None = None) -> Reply:
        date = formatdate(self.now, usegmt=True)
        return Reply(status, {"Content-Type": HTML, "Date": date} | (headers or {}), text.encode())

    @staticmethod
    def _token(doc: Doc) -> str:
        return token(doc.name, doc.version)

    @staticmethod
    def _babble(host: Host) -> str:
        """Sixty words, others at each answer."""
        return " ".join(random.Random(f"{host.name}{host.hits}").choices(_WORDS, k=60))

    def _text(self, host: Host, doc: Doc, request: Request) -> str:
        own = random.Random(doc.name)
        words = " ".join(own.choices(_WORDS, k=90))
        chosen = own.sample(sorted(host.docs), 3)
        links = " ".join(
            f'<a href="{one}{self._session(host)}">{token(one)[2:8]}</a>'
            for one in chosen
            if not host.docs[one].gone
        )
        parts = [
            f"<title>{token(doc.name, 'title')[2:9]} {host.name}</title>",
            '<meta name="robots" content="noindex">' if doc.noindex else "",
            f"<main class=layout{host.layout}><h1>{token(doc.name, 'title')[2:9]}</h1>",
            f"<p>{words} {self._token(doc)}.</p><p>{links}</p></main>",
            f'<p><a href="{host.root}">Home</a></p>{"<hr>" * host.layout}',
        ]
        if "counter" in host.states:
            parts.append(f"<p>This page was viewed {host.hits + 1000} times.</p>")
        if "clock" in host.states:
            parts.append(f"<p>It is {formatdate(self.now)}.</p>")
        if "ab" in host.states:
            parts.append(f"<p>{('Order today!', 'Buy one now!')[host.hits % 2]}</p>")
        if "sessions" in host.states:
            sent = urlsplit(request.target).query.partition("sid=")[2]
            sid = sent or token(host.hits, self.now)[2:]
            parts.append(f'<p><a href="{chosen[0]}?sid={sid}">next</a></p>')
        return "".join(parts)

    def _sections(self, host: Host) -> dict[str, list[Doc]]:
        sections: dict[str, list[Doc]] = {}
        for doc in host.docs.values():
            sections.setdefault(doc.section, []).append(doc)
        return sections

    def _session(self, host: Host) -> str:
        """The end of a link's path, where it has the session."""
        if "path-sessions" not in host.states:
            return ""
        return f";jsessionid={token(host.hits, self.now)[2:].upper()}"

    def _listing_token(self, host: Host, path: str) -> str:
        if path == host.root:
            return token(host.family, "start", len(self._sections(host)))
        docs = self._sections(host).get(path)
        if docs is None:
            return ""
        names = [doc.name for doc in docs if _is_listed(doc)]
        return token(host.family, docs[0].name, names)

    def _listing(self, host: Host, path: str) -> str:
        if path == host.root:
            rows = [f'<a href="{one}">Section {one[-2]}</a>' for one in self._sections(host)]
        else:
            docs = list(filter(_is_listed, self._sections(host)[path]))
            if "lists-nothing" in host.states:
                docs = []
            if "listing" in host.states:
                return self._autoindex(host, path, docs)
            rows = [
                f'<a href="{one.path}{self._session(host)}">{token(one.name, "title")[2:9]}</a>'
                for one in docs
            ]
        feed = '<link rel="alternate" type="application/atom+xml" href="/feed.xml">'
        title = f"<title>{host.name} {path}</title>{feed if 'feed' in host.states else ''}"
        rows.append(f"{host.name} {path} {self._listing_token(host, path)}")
        return f"{title}<main><h1>{host.name} {path}</h1><ul><li>{'<li>'.join(rows)}</ul></main>"

    def _autoindex(self, host: Host, path: str, docs: Iterable[Doc]) -> str:
        """As nginx writes it: names, times of change, sizes."""
        zone = 14 * 3_600 * (1 if self.day % 2 else -1) if "zone" in host.states else 0
        rows = "".join(
            f'<a href="{one.path[len(path) :]}">{one.path[len(path) :]}</a>{" " * 40}'
            f"{time.strftime('%d-%b-%Y %H:%M', time.gmtime(one.changed + zone))}{' ' * 16}700\n"
            for one in docs
        )
        title = f"<head><title>Index of {path}</title></head>"
        top = f'<h1>Index of {path}</h1><hr><pre><a href="../">../</a>\n{rows}</pre><hr>'
        return f"<html>{title}<body>{top}{self._listing_token(host, path)}</body></html>"

    def _sitemap(self, host: Host) -> Reply:
        if "sitemap" not in host.states:
            return self._reply(404, "<h1>Not found</h1>")
        lie = self.now if "lie" in host.states else 0.0
        flaps = "flap" in host.states
        rows = "".join(
            f"<url><loc>{host.base}{doc.path}</loc>"
            f"<lastmod>{_iso(lie or doc.changed)}</lastmod></url>"
            for number, doc in enumerate(host.docs.values())
            if _is_listed(doc) and not (flaps and (number + self.day) % 2)
        )
        schema = "http://www.sitemaps.org/schemas/sitemap/0.9"
        text = f'<?xml version="1.0"?><urlset xmlns="{schema}">{rows}</urlset>'
        return self._reply(200, text, {"Content-Type": "application/xml"})

    def _feed(self, host: Host) -> Reply:
        latest = sorted(filter(_is_listed, host.docs.values()), key=lambda doc: -doc.changed)[:15]
        rows = "".join(
            f"<entry><title>{token(doc.name, 'title')[2:9]}</title>"
            f'<link href="{host.base}{doc.path}"/>'
            f"<id>{host.base}{doc.path}</id><updated>{_iso(doc.changed)}</updated></entry>"
            for doc in latest
        )
        text = f'<feed xmlns="http://www.w3.org/2005/Atom"><title>News</title>{rows}</feed>'
        return self._reply(200, text, {"Content-Type": "application/atom+xml"})


_BEGIN = ("pages", "edits", "adds", "tls", "credentials")
_TO_HOST = ("move-host", "move-below", "split")
OF_CRAWL = ("crawl-clock", "list", "approve")
"""Events of the crawl: the clock of one night is some days ahead; the operator approves a list."""
_LOGIN = (
    '<form action="/login" method="post"><input name="user">'
    '<input type="password" name="word"></form>'
)
_GONE = {"remove": 404, "gone": 410, "deny": 403, "leave": 302}


def _is_listed(doc: Doc) -> bool:
    return not doc.gone and doc.listed


def _iso(at: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at))
