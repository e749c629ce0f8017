"""Pages of a public host, and of a host that a reader may not see.

    write(folder / "index", hidden=True)
    for query in queries(): ...

The public pages are the same with and without the hidden ones, whose words and numbers a reader
would like to know. All pages have as many words in each field: the average length of pages is the
one number over all pages by which Tantivy orders hits, and docs/search.md names it.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, islice
from pathlib import Path

from larmspider.index.writer import IndexWriter
from larmspider.items import Page

PUBLIC, HIDDEN = "wiki.example", "paye.example"
WORDS = (
    "aldomar", "brevint", "calduren", "dormuth", "elvaron", "farneth", "golmide", "harvolt",
    "irmande", "jolbrek", "kelvunt", "lormand", "melgrave", "nurvald", "ostrene", "pelmoor",
    "quarlin", "rundeth", "solvane", "turmalk", "velgorn",
)  # fmt: skip
"""Of which the last three are on hidden pages alone."""
PAGES, HIDDEN_PAGES = 40, 80
_TEXT_WORDS = 30
_FILLING = ("paper", "table", "window", "garden", "bridge", "market", "silver", "winter", "summer")
# of each text so many words are in every page; hidden pages have others that are like them
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


def write(directory: Path, *, hidden: bool) -> None:
    """An index of the public pages, among which the hidden ones come if they come."""
    with IndexWriter(directory) as index:
        others = iter(_hidden() if hidden else ())
        for number, page in enumerate(_public()):
            for one in (page, *islice(others, HIDDEN_PAGES // PAGES)):
                host = one.url.split("/")[2]
                linking = f"http://{host}/links/{one.url[-4:]}"
                index.add_anchors(linking, {(one.url, _link_text(one, number))})
                index.add(one)


def queries() -> Iterator[str]:
    """What somebody types who wants to know of the hidden pages."""
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
        words = [WORDS[number % 18], *[WORDS[(number * 5 + 3) % 18]] * 2]
        words += _PUBLIC_TEXTS[number % len(_PUBLIC_TEXTS)].split()
        yield _page(PUBLIC, number, words, "de" if number % 4 == 0 else "en")


def _hidden() -> Iterator[Page]:
    numbers = word_pages()
    for number in range(HIDDEN_PAGES):
        words = [word for word in WORDS if (number * 3) % HIDDEN_PAGES < numbers[word]][:12]
        words = [*words, *_HIDDEN_TEXTS[number % len(_HIDDEN_TEXTS)].split()]
        tongue = ("sv" if number % 8 else "de") if number % 4 == 0 else "en"
        page = _page(HIDDEN, number, words, tongue)
        if number % 5 == 0:  # a copy of a public one
            page.body = _page(PUBLIC, number % PAGES, [], "en").body
        yield page


def _page(host: str, number: int, words: list[str], language: str) -> Page:
    filled = [*words, *(_FILLING[(number + n * (1 + number % 4)) % 9] for n in range(_TEXT_WORDS))]
    url = f"http://{host}/{filled[0].lower()}/p{number:03}"
    kinds = ("text/html", "text/html", "application/pdf")
    title = f"Handbook {_FILLING[number % 9]} {WORDS[number * 5 % (21 if host == HIDDEN else 18)]}"
    page = Page(
        url,
        normalized=url,
        title=title,
        text=_of_length(filled),
        mime=kinds[number % 3],
        body=f"{PUBLIC} {number}".encode() if host == PUBLIC else f"{host} {number}".encode(),
        language=language,
        fetched=1_700_000_000.0 + (number if host == PUBLIC else -90_000 * number),
    )
    page.fields = {"room": [str(number % 5)]} if host == PUBLIC else {"grade": ["a"], "room": ["9"]}
    return page


def _of_length(words: list[str]) -> str:
    """The first words, so many that the index makes `_TEXT_WORDS` of them."""
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
