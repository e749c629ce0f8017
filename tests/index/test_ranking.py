""""""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

from larmspider.index.ranking import salient_words
from larmspider.index.search import Document, Results, Searcher

VPN = "The tunnel needs a certificate. Renew the certificate before the tunnel closes."
FOOD = "The canteen serves soup on Monday and dumplings on Friday."


@pytest.fixture
def searcher(writer, make_page) -> Searcher:
    for n in range(4):
        writer.add(make_page(f"vpn{n}", f"{VPN} Step {n}", title=f"Tunnel {n}"))
        writer.add(make_page(f"food{n}", f"{FOOD} Week {n}", title=f"Menu {n}"))
        writer.add(make_page(f"copy{n}", f"{VPN} Step 0"))
    writer.commit()
    return Searcher.open(writer.directory)


def document(searcher: Searcher, name: str) -> Document:
    found = searcher.get(f"http://wiki.example/{name}")
    assert found is not None
    return found


def names_of(found: Results) -> list[str]:
    return [hit.url.rpartition("/")[2] for hit in found.hits]


def test_similar_pages_share_the_salient_words(searcher) -> None:
    """Without the page itself and its copies; words that all pages have say nothing."""
    found = searcher.similar(document(searcher, "vpn0"))
    names = names_of(found)
    assert set(names[:3]) == {"vpn1", "vpn2", "vpn3"}
    assert not {"vpn0", "copy0"} & set(names)
    assert found.total == len(names)


def test_the_number_is_bounded(searcher) -> None:
    """As many as asked for."""
    assert len(searcher.similar(document(searcher, "food1"), 2).hits) == 2


@pytest.mark.parametrize("text", ["", "1 2 3 ! ?", "unheard-of wording"])
def test_a_page_that_says_nothing_is_like_nothing(searcher, text: str) -> None:
    """And it is no error."""
    page = Document("u", "u", "h", "", text, "", "", "", 0, 0, "", 0.0)
    assert searcher.similar(page).hits == []


def test_pages_that_were_indexed_again_are_no_harm(searcher, writer, make_page) -> None:
    """Words are then counted more often than there are pages."""
    for _ in range(3):
        for n in range(4):
            writer.add(make_page(f"vpn{n}", f"{VPN} Step {n}", title=f"Tunnel {n}"))
        writer.commit()
    assert set(names_of(searcher.similar(document(searcher, "vpn0")))) >= {"vpn1", "vpn2", "vpn3"}


@pytest.mark.parametrize(
    "words, salient",
    [
        ("the the the the tunnel tunnel soup", ["tunnel", "soup"]),
        ("tunnel soup soup soup", ["soup", "tunnel"]),
        ("apple zebra", ["zebra", "apple"]),
        ("alone 2026 ab", []),
    ],
)
def test_salient_words(words: str, salient: list[str]) -> None:
    """Often here and seldom elsewhere; neither what all pages have nor what no other has."""
    having = {
        "the": 100,
        "tunnel": 5,
        "soup": 5,
        "alone": 1,
        "2026": 5,
        "ab": 5,
        "apple": 40,
        "zebra": 5,
    }
    assert salient_words(words.split(), having.__getitem__, 100) == salient


# findability


BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "findability.py"


@pytest.fixture(scope="module")
def findability() -> ModuleType:
    spec = importlib.util.spec_from_file_location("findability", BENCHMARK)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # its dataclasses look themselves up there
    spec.loader.exec_module(module)
    return module


def test_python_documentation_is_found(findability: ModuleType, tmp_path: Path) -> None:
    """100 entries of its own index: found 1.000 / 0.902; plain BM25 0.980 / 0.827."""
    docs = findability.DOCS
    if not (docs / "genindex-all.html").exists():
        pytest.skip(f"package python3.11-doc is not installed: no {docs}")
    pages = list(findability.pages(docs))
    entries = findability.entries(docs, (page.url for page in pages))
    chosen = findability.sample(entries, 100)
    typed = findability.cases(chosen, "full", entries)
    product = findability.product(findability.build(tmp_path, pages))
    scores = findability.measure(typed, product)
    plain = findability.measure(typed, findability.baseline(pages))
    assert scores.success >= 0.97
    assert scores.mrr >= 0.87
    assert scores.mrr > plain.mrr


def test_figures_are_what_they_say(findability: ModuleType) -> None:
    """success@10 counts right pages, MRR@10 their ranks."""
    right = frozenset({"r"})
    found = {"first": ["r", "x"], "fourth": ["x", "x", "x", "r"], "never": ["x"], "empty": []}
    scores = findability.measure([(query, right) for query in found], found.__getitem__)
    assert (scores.success, scores.mrr) == (0.5, (1 + 0.25) / 4)


@pytest.mark.parametrize(
    "text, full, name",
    [
        ("join() (asyncio.Queue method)", "join() asyncio.Queue method", "join()"),
        ("abstract base class", "abstract base class", "abstract base class"),
        ("abc (module)", "abc module", "abc"),
    ],
)
def test_an_entry_is_typed_as_people_would(
    findability: ModuleType, text: str, full: str, name: str
) -> None:
    """The name, and the words of the qualifier without its parentheses."""
    entry = findability.QueuedUrl(text, frozenset())
    assert (entry.full, entry.name) == (full, name)
