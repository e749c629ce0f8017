"""Pages that a reader may see, and pages of a host that the reader may not see.

    write(folder / "index", hidden=True)
    for query in queries(): ...

The visible pages are the same with and without the hidden pages, whose words and numbers a reader
wants to find out. All pages have about the same number of words in each field, because the average
length of all pages also orders hits (docs/rights.md).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from ipaddress import ip_network
from itertools import combinations, islice
from pathlib import Path

from larmspider.access.lists import AccessList
from larmspider.access.rights import Rights
from larmspider.index.access import Access
from larmspider.index.schema import FILES
from larmspider.index.writer import IndexWriter
from larmspider.items import Page
from larmspider.search.curated import Curated
from larmspider.web.auth import Guard
from larmspider.web.query_log import QueryLog
from larmspider.web.readers import Readers
from tests.support.web.serving import TOKEN, Served, request

PUBLIC, TEAM, HIDDEN = "wiki.example", "team.example", "paye.example"
"""Hosts: every reader sees the first, staff sees the second, no group sees the third."""
BY_LISTS, STAFF_BY_LISTS = (
    Access((FILES,), (), frozenset({"everyone", "authenticated", f"group:{group}"}))
    for group in ("guests", "staff")
)
NOBODY, STAFF = Access((HIDDEN, TEAM, FILES)), Access((HIDDEN, TEAM, FILES), (TEAM,))
WORDS = (
    "aldomar", "brevint", "calduren", "dormuth", "elvaron", "farneth", "golmide", "harvolt",
    "irmande", "jolbrek", "kelvunt", "lormand", "melgrave", "nurvald", "ostrene", "pelmoor",
    "quarlin", "rundeth", "solvane", "turmalk", "velgorn",
)  # fmt: skip
SEEN = 18
"""Words that are on public pages; the other three are on hidden pages alone."""
PAGES, HIDDEN_PAGES = 40, 80
PAGE = f"http://{PUBLIC}/{WORDS[5]}/p001"
_TEXT_WORDS = 30
_TIMES = re.compile(r'\b\d+ ms\b|"seconds": [\d.]+|"took": \d+')
_FILLING = ("paper", "table", "window", "garden", "bridge", "market", "silver", "winter", "summer")
_PUBLIC_TEXTS = (
    "walking home", "time stamp", "timestamp", "-Wall flag", "--prefix flag", "read_csv call",
    "e-mail", "RFC 1034", "haus und der druckertreiber", "die katze der nachbarin",
    "holiday request", "reset the password", "licence server", "printer driver", "paper tray",
)  # fmt: skip
_HIDDEN_TEXTS = (
    "walked walks walk walker", "timestamps times stamps", "stampede timing", "-Wextra -Wall",
    "--prefixes --prefix", "read_json read_csv", "email", "RFC1034", "hausverwaltung laptoptreiber",
    "treiberpaket treiber drucker", "holidays requested", "resets passwords change", "license",
    "licences lisence server", "printers drivers", "calduron calduren kaldurens", "paper trail",
)  # fmt: skip


def word_pages() -> dict[str, int]:
    """On how many hidden pages each word is."""
    return {word: 1 + (number * 11) % 37 for number, word in enumerate(WORDS)}


def write(directory: Path, *, hidden: bool, by_lists: bool = False) -> None:
    """An index of the public pages, among which the hidden ones come if they come. ``by_lists``:
    access lists hide them in place of their hosts."""
    with IndexWriter(directory) as index:
        others = iter(_hidden() if hidden else ())
        for number, page in enumerate(_public()):
            for one in (page, *islice(others, HIDDEN_PAGES // PAGES)):
                host = one.url.split("/")[2]
                if by_lists and host != PUBLIC:
                    group = {TEAM: "group:staff", HIDDEN: "group:pay"}[host]
                    index.access.give(one.name, Rights(AccessList.simple([group])))
                linking = f"http://{host}/links/{one.url[-4:]}"
                index.add_anchors(linking, {(one.url, _link_text(one, number))})
                index.add(one)


def queries() -> Iterator[str]:
    """Queries of a reader who wants to know of the hidden pages."""
    yield from WORDS
    yield from (f"{one} {other}" for one, other in combinations(WORDS[::2], 2))
    for number, word in enumerate(WORDS):
        other, third = WORDS[(number * 5 + 3) % 21], WORDS[(number * 7 + 1) % 21]
        yield f"{word} {other} {third}"
        yield f"how do I use {word} and {third}"
        yield f'"{word} {other}"'
        yield f"paper -{word}"
        yield f"{word[:3]}{word[4:]}"
        yield f"{word[:4]}x{word[5:-1]}q"
        yield f"{word}~"
        yield f"title:{word} {other}"
        yield f"url:{word}"
        yield f"{word}{other}"
        yield f"paper_{word[:-1]}"
    yield from (
        "walk", "walked", "walks home", "time stamp", "timestamp", "timestamps", "stamp", "-Wall",
        "-Wextra flag", "gcc -Wall", "--prefix", "--prefixes", "read_csv", "read_json", "email",
        "e-mail", "RFC1034", "RFC 1034", "haus", "treiber", "druckertreiber", "hausverwaltung",
        "Katzen", "katt", "holidays", "how to change the password", "password resets", "lisence",
        "license server", "printer drivers", "handbook", "handbook paper", "vpn", "lunch",
        "host:wiki.example paper", "host:paye.example", "lang:de haus", "lang:sv", "mime:pdf",
        "room:4", "grade:a", "grade:a paper", "author:hilda", "paper trail", "papertray", "paper",
        "paper table", "table paper window garden", "kaldurens",
    )  # fmt: skip


def _public() -> Iterator[Page]:
    for number in range(PAGES):
        words = [WORDS[number % SEEN], *[WORDS[(number * 5 + 3) % SEEN]] * 2]
        words += _PUBLIC_TEXTS[number % len(_PUBLIC_TEXTS)].split()
        host = TEAM if number % 3 == 0 else PUBLIC
        yield _page(host, number, words, "de" if number % 4 == 0 else "en")


def _hidden() -> Iterator[Page]:
    numbers = word_pages()
    for number in range(HIDDEN_PAGES):
        words = [word for word in WORDS if (number * 3) % HIDDEN_PAGES < numbers[word]][:12]
        words = [*words, *_HIDDEN_TEXTS[number % len(_HIDDEN_TEXTS)].split()]
        tongue = ("sv" if number % 8 else "de") if number % 4 == 0 else "en"
        page = _page(HIDDEN, number, words, tongue)
        if number % 5 == 0:  # a copy of a public one
            page.body = b"%d" % (number % PAGES)
        yield page


def _page(host: str, number: int, words: list[str], language: str) -> Page:
    filled = [*words, *(_FILLING[(number + n * (1 + number % 4)) % 9] for n in range(_TEXT_WORDS))]
    word = WORDS[number * 5 % (len(WORDS) if host == HIDDEN else SEEN)]
    url = f"http://{host}/{word}/p{number:03}"
    kinds = ("text/html", "text/html", "application/pdf")
    title = f"Handbook {_FILLING[number % 9]} {word}"
    page = Page(
        url,
        normalized=url,
        title=title,
        text=_of_length(filled),
        mime=kinds[number % 3],
        body=b"%d" % (number + (1_000 if host == HIDDEN else 0)),
        language=language,
        fetched=1_700_000_000.0 + (-90_000 * number if host == HIDDEN else number),
    )
    page.fields = {"grade": ["a"], "room": ["9"]} if host == HIDDEN else {"room": [str(number % 5)]}
    return page


def _of_length(words: list[str]) -> str:
    """The first words, of which the index makes `_TEXT_WORDS` words."""
    found, left = list[str](), _TEXT_WORDS
    for word in words:
        parts = word.strip("-").replace("_", "-").count("-") + 1
        if parts <= left:
            found.append(word)
            left -= parts
    return " ".join(found)


def _link_text(page: Page, number: int) -> str:
    word = page.text.split()[1].strip("-").partition("_")[0]
    return f"{word} {_FILLING[number % 3]}"


def served(folder: Path, *, hidden: bool, by_lists: bool = False) -> Served:
    """The server of a crawl that asked two hosts with credentials, or of one with access lists."""
    folder.mkdir(exist_ok=True)
    write(folder / "index", hidden=hidden, by_lists=by_lists)
    manifest = {
        "format": 2, "began": "2026", "seeds": [f"http://{PUBLIC}/"],
        "credentials": [] if by_lists else [f"http://{HIDDEN}", f"http://{TEAM}"], "settings": {},
    }  # fmt: skip
    (folder / "crawl.json").write_text(json.dumps(manifest))
    bets, synonyms = folder / "best_bets.txt", folder / "synonyms.txt"
    bets.write_text(f"vpn => http://{HIDDEN}/aldomar/p000\nvpn => {PAGE}\n")
    synonyms.write_text("lunch, turmalk, paper\n")
    log = QueryLog(folder / "queries.sqlite", clock=lambda: 0.0)
    for day in range(5):
        log._clock = lambda day=day: day * 86_400.0  # type: ignore[misc]
        for word in ("paper table", "paper turmalk", WORDS[1]):
            log.note(word, 3)
    readers = Readers({"staff": (TEAM,)}, "X-Groups", (ip_network("127.0.0.1"),))
    guard = Guard(TOKEN, closed=True, open_paths=("/search", "/copy", "/view", "/diff"))
    return Served(folder, guard, readers=readers, curated=Curated(synonyms, bets), query_log=log)


def answer(site: Served, target: str, headers: Mapping[str, str]) -> tuple[int, str]:
    """Status and body, without the times that it took."""
    got = request(site.url + target, headers=headers, timeout=120)
    return got.status, _TIMES.sub("", got.text.replace(site.url, ""))
