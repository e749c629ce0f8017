"""Sites without end, each a few lines: what a crawl must not follow for ever.

    with ScriptedServer({"*": answer("calendar by day")}) as server:
        crawl(server.url("/"), ...)

Each site has some pages of content, which lead into its trap; what the trap gives says nothing that
was not said before. GENERATORS has them by name, as functions of the target of a request.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, timedelta
from hashlib import blake2b
from urllib.parse import parse_qsl

from tests.support.servers.scripted import Reply, Request

Site = Callable[[str], Reply]

CONTENT = 20
"""Pages of content of each site: /doc/0 to /doc/19."""
_TEXT = (
    "archive backup camera delivery engine freight garden harbour invoice journal kitchen ladder"
    " machine notice office printer quarry rocket station tunnel uniform valley window yard zinc"
)
_WORDS = _TEXT.split()
_MENU = "Intranet of the works. Home, people, news, canteen and calendar are found in this menu."


def page(title: str, text: str, *links: str) -> Reply:
    """A page with a menu, as all have it."""
    anchors = " ".join(f'<a href="{link}">to {at}</a>' for at, link in enumerate(links))
    html = f"<title>{title}</title><p>{_MENU}</p><h1>{title}</h1><p>{text}</p>{anchors}"
    return Reply(headers={"Content-Type": "text/html; charset=utf-8"}, body=html.encode())


def document(number: int) -> str:
    """The text of the page of content ``number``, and of no other page."""
    seed = blake2b(b"%d" % number, digest_size=60).digest()
    words = [_WORDS[byte % len(_WORDS)] + _WORDS[byte // 11 % len(_WORDS)] for byte in seed]
    return f"About {_WORDS[number % len(_WORDS)]}s: {' '.join(words)}."


def _with_content(trap: Callable[[str], Reply], *entrances: str) -> Site:
    def site(target: str) -> Reply:
        if target == "/":
            documents = (f"/doc/{number}" for number in range(CONTENT))
            return page("Start", "What there is to read.", *documents, *entrances)
        if target.startswith("/doc/") and target[5:].isdigit() and int(target[5:]) < CONTENT:
            return page(f"Document {target[5:]}", document(int(target[5:])), "/", *entrances)
        return trap(target)

    return site


def _query(target: str) -> dict[str, str]:
    return dict(parse_qsl(target.partition("?")[2]))


def _by_day(target: str) -> Reply:
    day = date(*map(int, target.strip("/").split("/")[1:]))
    around = (day + timedelta(days) for days in (-7, -1, 1, 7))
    links = (f"/plan/{other.year}/{other.month}/{other.day}/" for other in around)
    days = f"Mo Tu We Th Fr Sa Su {' '.join(map(str, range(1, 32)))}"
    return page(f"Plan of {day:%A, %d %B %Y}", f"No appointments on this day. {days}", *links)


def _by_month(target: str) -> Reply:
    year, month = map(int, _query(target)["ym"].split("."))
    links = (f"/plan?ym={(at := 12 * year + month - 1 + n) // 12}.{at % 12 + 1}" for n in (-1, 1))
    return page(f"Plan of {month}/{year}", "No appointments in this month.", *links)


def _by_timestamp(target: str) -> Reply:
    then = int(_query(target)["t"])
    links = (f"/rooms?t={then + step}" for step in (-604_800, -86_400, 86_400, 604_800))
    return page("Rooms", f"All rooms are free at {then}.", *links)


def _by_week(target: str) -> Reply:
    asked = _query(target)
    at = 52 * int(asked["y"]) + int(asked["w"])
    links = (f"/rota?w={other % 52}&y={other // 52}" for other in (at - 1, at + 1))
    return page(f"Rota, week {at % 52}", "Nobody is on duty in this week.", *links)


def _token(text: str) -> str:
    return blake2b(text.encode(), digest_size=8).hexdigest()


def _sessions_in_queries(target: str) -> Reply:
    """A known name and an unknown one; each page hands out another session."""
    path, sid = target.partition("?")[0], _token(target)
    links = (f"/shop/{n}?{name}={sid}" for n in range(5) for name in ("PHPSESSID", "visit"))
    return page("Shop", f"Goods on shelf {path.rpartition('/')[2]}.", *links)


def _sessions_in_paths(target: str) -> Reply:
    sid, last = _token(target), target.rpartition("/")[2].partition(";")[0]
    links = (link for n in range(5) for link in (f"/s/{sid}/{n}", f"/desk/{n};jsessionid={sid}"))
    return page("Desk", f"Papers in tray {last}.", *links)


def _growing(target: str) -> Reply:
    return page("Part", "A part of the whole.", f"{target}/more", f"{target}/{_token(target)[:5]}")


def _maze(target: str) -> Reply:
    """Each path is "not found" with status 200, and the page names other paths."""
    token = _token(target)
    words = [_WORDS[int(token[at : at + 2], 16) % len(_WORDS)] for at in range(0, 16, 2)]
    parent = target.rsplit("/", max(1, target.count("/") - 3))[0]
    links = [f"{parent}/{one}-{other}" for one, other in zip(words[::2], words[1::2], strict=True)]
    return page("Not found", f"There is no {target} here. Perhaps one of these?", *links)


_FILTERS = {
    name: _WORDS[3 * at : 3 * at + 5]
    for at, name in enumerate(("colour", "size", "maker", "place", "year", "type"))
}


def _filters(target: str) -> Reply:
    """A list of goods, by any choice of six properties."""
    chosen = _query(target)
    links = []
    for name, values in _FILTERS.items():
        for value in values:
            more = chosen | {name: value}
            links.append("/list?" + "&".join(f"{one}={more[one]}" for one in sorted(more)))
    goods = sorted(_WORDS, key=lambda word: _token(word + target))[: 12 - len(chosen)]
    return page("List", "; ".join(f"one {word} of the works" for word in goods), *links)


def _pages(target: str) -> Reply:
    number = int(_query(target)["page"])
    shown = document(number % 3) if number < 3 else "No more results."
    return page(f"Results, page {number}", shown, *(f"/find?page={number + n}" for n in (1, 2, 10)))


def _redirects(target: str) -> Reply:
    return Reply(302, {"Location": f"/go/{int(target.rpartition('/')[2]) + 1}"})


def _refreshes(target: str) -> Reply:
    to = f"/wait?n={int(_query(target)['n']) + 1}"
    html = f'<meta http-equiv="refresh" content="0; url={to}"><title>Wait</title><p>One moment.</p>'
    return Reply(headers={"Content-Type": "text/html"}, body=html.encode())


GENERATORS: dict[str, Site] = {
    "calendar by day": _with_content(_by_day, "/plan/2026/11/23/"),
    "calendar by month": _with_content(_by_month, "/plan?ym=2026.11"),
    "calendar by timestamp": _with_content(_by_timestamp, "/rooms?t=1790000000"),
    "calendar by week and year": _with_content(_by_week, "/rota?w=47&y=2026"),
    "sessions in queries": _with_content(_sessions_in_queries, "/shop/0"),
    "sessions in paths": _with_content(_sessions_in_paths, "/s/0/0"),
    "growing path": _with_content(_growing, "/part"),
    "soft-404 maze": _with_content(_maze, "/old/lost"),
    "filters": _with_content(_filters, "/list"),
    "pages of results": _with_content(_pages, "/find?page=0"),
    "redirects": _with_content(_redirects, "/go/0"),
    "refreshes": _with_content(_refreshes, "/wait?n=0"),
    "mirrored hosts": _with_content(lambda target: page("Mirror", "The same as here.")),
}


def answer(name: str) -> Callable[[Request], Reply]:
    """The route of a ScriptedServer for all targets. Each of the mirrored hosts, which a server on
    0.0.0.0 is, names two more."""
    site = GENERATORS[name]

    def route(request: Request) -> Reply:
        if request.target == "/robots.txt":
            return Reply(404)
        reply = site(request.target)
        if name == "mirrored hosts":
            host, _, port = request.headers["host"].rpartition(":")
            last = int(host.rpartition(".")[2])
            others = (f"http://127.0.0.{2 * last % 250 + n}:{port}/" for n in (1, 2))
            reply.body += " ".join(f'<a href="{url}">mirror</a>' for url in others).encode()
        return reply

    return route
