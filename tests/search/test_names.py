"""Names and codes: written in parts, of an owner, or like words that say little."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from larmspider.index.writer import IndexWriter
from larmspider.items import Page, Section
from larmspider.search.query import parse_query
from larmspider.search.request import weighed
from larmspider.search.searcher import Searcher

Find = Callable[[str], list[str]]


@pytest.mark.parametrize(
    "query, first",
    [
        ("61784B4040B2", "hyphens"),
        ("6178.4B40.40B2", "hyphens"),
        ("6178 4B40 40B2", "hyphens"),
        ("6178-4B40-40B4", "plain"),
        ("6178 4B40 40B4", "plain"),
        ("61784B4040B5", "spaces"),
        ("histignoredups", "zsh"),
        ("localPartSuffix", "snake"),
        ("ignoreTheDups", "words"),
        ("entete", "entete"),
        ("autovectorization", "gcc"),
        ("DE89370400440532013000", "iban"),
        ("Vorteil", "german"),
    ],
)
def test_a_name_is_found_in_other_parts(
    writer: IndexWriter, make_page: Callable[..., Page], find: Find, query: str, first: str
) -> None:
    """With other separators, without, and with them where the page has none."""
    for page in (
        make_page("hyphens", "Part 6178-4B40-40B2 of it"),
        make_page("other", "Part 6178-4B40-40B3 of it"),
        make_page("plain", "Part 61784B4040B4 of it"),
        make_page("spaces", "Part 6178 4B40 40B5 of it"),
        make_page("zsh", "HIST_IGNORE_DUPS leaves lines out"),
        make_page("snake", "local_part_suffix is an option of routers"),
        make_page("words", "They ignore the dups there"),
        make_page("entete", "Une en-tête de page", language="fr"),
        make_page("gcc", "Auto-vectorization of loops"),
        make_page("iban", "Konto DE89 3704 0044 0532 0130 00 der Bank"),
        make_page("german", "Vor- und Nachteil", language="de"),
    ):
        writer.add(page)
    found = find(query)
    assert found[0] == first
    assert Searcher.open(writer.directory).search(query).not_typed == ()


@pytest.mark.parametrize(
    "query, section",
    [
        ("lists:map/2", "map-2"),
        ("lists:map", "map"),
        ("Lists::map", "map"),
        ("pkg.lists.map", "map"),
        ("lists#map", "map"),
    ],
)
def test_a_member_is_found_by_its_owner(
    writer: IndexWriter, make_page: Callable[..., Page], query: str, section: str
) -> None:
    """The page of the owner comes first, at the member's section."""
    text = "The module lists has functions for lists of any length. " * 30
    text += "map(Fun, List) applies Fun. It is a higher-order function. " * 10
    sections = [Section(0, "", "lists"), Section(1_680, section, "map(Fun, List)")]
    writer.add(make_page("short", "maps with lists: a map of lists, pkg", title="Other"))
    writer.add(make_page("lists", text, title="lists", sections=sections))
    writer.commit()
    hit = Searcher.open(writer.directory).search(query).hits[0]
    assert hit.url.endswith("/lists")
    assert hit.target.endswith(f"#{section}")


@pytest.mark.parametrize(
    "query, named",
    [
        ("songs by The", "The"),
        ("the IF statement", "IF"),
        ("IF statement in sh", "IF"),
        ("how do I do it with rsync", ""),
        ("How do you reset it", ""),
        ("The Who songs", ""),
        ("songs by the", ""),
    ],
)
def test_the_only_word_with_a_capital_is_a_name(query: str, named: str) -> None:
    """It counts in full, whatever it says elsewhere. The first word of a sentence does not."""
    counted = {clause.text for clause, counts in weighed(parse_query(query)) if counts}
    lower = {clause.text for clause, counts in weighed(parse_query(query.lower())) if counts}
    assert {text for text in counted if text.lower() not in lower} == ({named} if named else set())


def test_a_copy_with_the_word_in_its_title_is_a_hit(
    writer: IndexWriter, make_page: Callable[..., Page]
) -> None:
    """The shown page lacks it."""
    text = "Pools keep open connections for later use by other threads. " * 10
    for name, title in (("a", "Pools"), ("b", "Pools"), ("c", "Pools of threads")):
        page = make_page(name, text, title=title)
        page.body = text.encode()
        writer.add(page)
    writer.commit()
    search = Searcher.open(writer.directory).search
    assert len(search("connections").hits) == 1
    assert {hit.title for hit in search("pools threads").hits} >= {"Pools of threads"}


@pytest.mark.parametrize(
    "query, marked",
    [
        ("61784B4040B2", "Part *6178-4B40-40B2* of it"),
        ("6178.4B40.40B2", "Part *6178-4B40-40B2* of it"),
        ("histignoredups", "Set *HIST_IGNORE_DUPS* there"),
        ("4B40", "Part 6178-*4B40*-40B2 of it"),
    ],
)
def test_a_code_is_marked_as_the_page_has_it(
    writer: IndexWriter, make_page: Callable[..., Page], query: str, marked: str
) -> None:
    """With its separators."""
    writer.add(make_page("a", "Part 6178-4B40-40B2 of it"))
    writer.add(make_page("b", "Set HIST_IGNORE_DUPS there"))
    writer.commit()
    hit = Searcher.open(writer.directory).search(query).hits[0]
    assert hit.snippet.marked("*", "*") == marked
