"""All pages speak German, English and French."""

from __future__ import annotations

import ast
import re
import string
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import cast

import pytest
from selectolax.lexbor import LexborHTMLParser

import larmspider
from larmspider.errors import QueryError
from larmspider.index.schema import KINDS
from larmspider.search.query import DAYS
from larmspider.server.api.api import Server
from larmspider.server.pages import pages_of
from larmspider.web import people
from larmspider.web.look import Look
from larmspider.web.views import PAGES
from larmspider.web.views.search import FILTERS, PERIODS, TITLES
from larmspider.web.words import LANGUAGES, Words, table
from tests.support.web.serving import Served, request

PACKAGE = Path(larmspider.__file__).parent
SPOKEN = re.compile(r"""say\(\s*(?:"([^"]*)"|'([^']*)')""")
COUNTED = re.compile(r"""counted\(\s*["']([^"']*)["'](?:,\s*["']([^"']*)["'])?""")
MODULES = (
    "search/query.py", "search/ranking.py",
    *(f"web/{name}.py" for name in ("app", "request", "tries", "words")),
    *(f"web/views/{name}.py" for name in ("overview", "search")),
)  # fmt: skip


TEMPLATES = [
    path
    for path in (*(PACKAGE / "web").rglob("*.html"), *(PACKAGE / "plugins").rglob("*.html"))
    if path.name != "report.html"  # a file of the command line, in English
]


def spoken() -> Iterator[str]:
    """The texts of templates and views, and the errors that users of the search see."""
    for path in TEMPLATES:
        text = path.read_text("utf-8")
        for found in SPOKEN.finditer(text):
            yield found[1] or found[2]
        for what, many in COUNTED.findall(text):
            yield f"{{n}} {what}|{{n}} {many or what + 's'}"
    yield from (page.nav for page in (*PAGES, *pages_of(cast(Server, None))) if page.nav)
    for name in MODULES:
        for call in ast.walk(ast.parse((PACKAGE / name).read_text("utf-8"))):
            if not isinstance(call, ast.Call) or not call.args:
                continue
            named = ast.unparse(call.func).rpartition(".")[2]
            if named in ("QueryError", "HttpError", "say", "self"):
                first = call.args[0]
                if isinstance(first, ast.Constant):
                    yield str(first.value)
                else:
                    assert not isinstance(first, ast.JoinedStr), f"{name}: {ast.unparse(first)}"
    yield from (*TITLES.values(), *PERIODS.values())
    yield from (people.PROVIDER_AWAY, people.PROVIDER_REFUSED, people.DIRECTORY_AWAY)


def test_nothing_is_missing_and_nothing_too_much() -> None:
    assert set(spoken()) == set(table()["words"])
    assert set(table()["kinds"]) == set(KINDS)
    assert set(TITLES) == set(FILTERS)
    assert set(PERIODS) == set(DAYS)
    for names in (*table()["kinds"].values(), *table()["languages"].values()):
        assert len(names) == len(LANGUAGES)
        assert all(names)


def test_each_language_fills_in_the_same_values() -> None:
    """Plural forms included."""

    def values(text: str) -> list[set[str | None]]:
        return [{name for _, name, *_ in string.Formatter().parse(form)} - {None}
                for form in text.split("|")]  # fmt: skip

    for english, others in table()["words"].items():
        assert len(others) == len(LANGUAGES) - 1, english
        if not english.startswith("{name} {value"):
            assert [values(other) for other in others] == [values(english)] * len(others)


def test_sentences_keep_their_values() -> None:
    """And each is found by its English text, in a language of its own."""
    for english, others in table()["sentences"].items():
        names = re.findall(r"\{(\w+)\}", english)
        filled = {name: f"http://h{n}/" for n, name in enumerate(names)}
        for number, other in enumerate(others):
            assert sorted(re.findall(r"\{(\w+)\}", other)) == sorted(names), english
            said = Words(LANGUAGES[number + 1]).told(english.format(**filled))
            assert all(value in said for value in filled.values()), said
    for names in table()["states"].values():
        assert len(names) == len(LANGUAGES)


@pytest.mark.parametrize("english, german, french", [
    ("Running since 2026-01-31T12:00:00Z.", "Läuft seit 31.01.2026 12:00:00.",
     "En cours depuis le 31/01/2026 12:00:00."),
    ("Paused. Running since 2026-01-31T12:00:00Z.",
     "Angehalten. Läuft seit 31.01.2026 12:00:00.",
     "En pause. En cours depuis le 31/01/2026 12:00:00."),
    ("Running since 2026-01-31T12:00:00Z. It is waiting 3 s for wiki:80.",
     "Läuft seit 31.01.2026 12:00:00. Zurzeit: wartet 3 s auf wiki:80.",
     "En cours depuis le 31/01/2026 12:00:00. En ce moment\u00a0: attente de 3 s pour wiki:80."),
    ('"siren" in the URL', '"siren" in der URL', '"siren" dans l’URL'),
    ("Next request in 1 d 02 h.",
     "Nächste Anfrage in 1 T 02 h.", "Prochaine requête dans 1 j 02 h."),
    ("1,234 URLs of 2 hosts are not fetched in this run.",
     "1.234 URLs von 2 Servern werden in diesem Lauf nicht abgerufen.",
     "1\u202f234 URL de 2 serveurs ne sont pas récupérées dans cette session."),
    ("hit 9 of 1,010", "Treffer 9 von 1.010", "résultat 9 sur 1\u202f010"),
    ('hit 8 scores 0.50 more for: "siren" in the description',
     'Treffer 8 hat 0,50 Punkte mehr für: "siren" in der Beschreibung',
     'score du résultat 8 supérieur de 0,50 pour\u00a0: "siren" dans la description'),
    ("it lacks: login", "ihr fehlt: login", "il lui manque\u00a0: login"),
    ("given up: 5 failures in a row: connection refused while asking for robots.txt",
     "aufgegeben: 5 Fehler hintereinander: Verbindung abgelehnt beim Abruf von robots.txt",
     "abandonné\u00a0: 5 échecs de suite\u00a0: connexion refusée en demandant robots.txt"),
    ("some words from a log", "some words from a log", "some words from a log"),
    ("", "", ""), ("{x", "{x", "{x"), ("x" * 5_000, "x" * 5_000, "x" * 5_000),
])  # fmt: skip
def test_sentences_of_the_crawl(english: str, german: str, french: str) -> None:
    assert Words().told(english).replace(" 12:00:00", "T12:00:00Z") == english
    assert (Words("de").told(english), Words("fr").told(english)) == (german, french)


def test_a_hostile_text_is_told_in_no_time() -> None:
    began = time.monotonic()
    for text in ("; " * 400, "a: " * 330, "Not reached (" * 70, ". A" * 330, "1," * 500):
        assert Words("de").told(text)
    assert time.monotonic() - began < 2


@pytest.mark.parametrize("header, language", [
    ("", "en"), ("de-AT,de;q=0.9,en;q=0.8", "de"), ("it, fr;q=0.5, en;q=0.4", "fr"),
    ("en;q=0.5,de;q=0.7", "de"), ("de;q=0, fr", "fr"), ("DE", "de"), ("x;q=y,;,de;q=nan", "en"),
    ("," * 100_000 + "de", "en"), ("es", "en"),
])  # fmt: skip
def test_the_language_that_a_browser_asks_for(header: str, language: str) -> None:
    assert Words.asked_for(header).language == language


def test_numbers_dates_and_forms() -> None:
    english, german, french = map(Words, LANGUAGES)
    found = "{n} page found in {ms} ms|{n} pages found in {ms} ms"
    assert english(found, n=1, ms=2) == "1 page found in 2 ms"
    assert german(found, n=1234, ms=2) == "1.234 Seiten gefunden in 2 ms"
    assert french(found, n=1234, ms=2) == "1\u202f234 pages trouvées en 2 ms"
    assert french(found, n=0, ms=2) == "0 page trouvée en 2 ms"
    assert [say.size(1_234_567) for say in (english, german, french)] == [
        "1.2 MB", "1,2 MB", "1,2 Mo",
    ]  # fmt: skip
    assert [say.date(1_769_904_000) for say in (english, german, french)] == [
        "1 Feb 2026", "01.02.2026", "1er févr. 2026",
    ]  # fmt: skip
    assert (german.kind("spreadsheet"), german.tongue("fr")) == ("Tabelle", "Französisch")
    assert german.tongue("xx") == "xx"


def test_an_error_keeps_its_english_text() -> None:
    """For JSON and the command line; what a value says is never filled in itself."""
    error = QueryError("{field} needs a value right after the colon", field="{x}:")
    assert str(error) == "{x}: needs a value right after the colon"
    assert Words("de").error(error) == "{x}: braucht einen Wert gleich hinter dem Doppelpunkt"
    assert Words("de").error(QueryError("no {such} text")) == "no {such} text"


TARGETS = {
    "/search": ("Suche", 200), "/search?q=siren": ("Seiten gefunden", 200),
    "/search?q=siren&type=pdf&since=2001-01-01": ("ab 01.01.2001", 200),
    "/search?q=siren&sort=date": ("Sortiert nach", 200),
    "/search?q=zzyzzx": ("Es wurde keine Seite gefunden", 200),
    "/search?q=expences": ("Gezeigt werden Ergebnisse für expenses", 200),
    "/search?q=title:": ("title: braucht einen Wert", 400),
    "/search?q=siren&type=exe": ("ist unbekannt", 400),
    "/search?q=" + "x" * 1_001: ("höchstens 1.000 Zeichen", 400),
    "/search?similar=http://nowhere/": ("steht nicht im Index", 404),
    "/search/nowhere": ("Diese Seite gibt es nicht", 404),
    "/login?next=/": ("Administratoren melden sich", 200),
    "/login?next=/search%3Fq%3Dsiren": ("Anmelden", 200),
}  # fmt: skip


def test_pages_and_errors_are_german(served: Callable[..., Served], demo_crawl: Path) -> None:
    """The page says so itself; no English is left over."""
    site, english = served(demo_crawl), re.compile(r"\b(the|found|page|search|with)\b")
    for target, (words, status) in TARGETS.items():
        got = site.get(target, Accept_Language="de")
        page = LexborHTMLParser(got.text)
        assert got.status == status
        assert words in page.body.text(), target
        assert page.css_first("html").attributes["lang"] == "de"
        for own in page.css(".hits a, .hits p, .brand, input, code, .facet a, .url, .note strong"):
            own.decompose()
        text = page.body.text() + " ".join(
            str(one.attributes["aria-label"]) for one in page.css("[aria-label]")
        )
        assert english.findall(text) == [], target


def test_a_wrong_token_is_told_in_the_language_of_the_search(
    served: Callable[..., Served], demo_crawl: Path
) -> None:
    """And asked for again, with the way back."""
    site, body = served(demo_crawl), {"token": "x" * 32, "next": "/search?q=siren"}
    got = request(f"{site.url}/login", "POST", {"Accept-Language": "de"}, body)
    assert got.status == 403
    assert '<html lang="de">' in got.text
    assert "Das ist nicht das Token." in got.text
    assert 'value="/search?q=siren"' in got.text


def test_a_fixed_language(served: Callable[..., Served], demo_crawl: Path) -> None:
    site = served(demo_crawl, look=Look(language="fr"))
    got = site.get("/search?q=siren", Accept_Language="de")
    assert '<html lang="fr">' in got.text
    assert "pages trouvées" in got.text


def test_a_language_has_the_name_of_its_primary_tag() -> None:
    """Or its tag."""
    assert Words().tongue("en-us") == Words().tongue("en") == "English"
    assert Words("de").tongue("de-AT") == "Deutsch"
    assert Words().tongue("xx-yy") == "xx-yy"


def test_no_french_line_begins_with_a_sign() -> None:
    """A no-break space stands before each sign that French sets apart."""
    groups = [table()["words"], table()["sentences"]]
    for english, others in ((key, names) for group in groups for key, names in group.items()):
        assert not re.search(r" [:;?!»%]|« ", others[1]), english
