from __future__ import annotations

from datetime import UTC, datetime
from email.utils import format_datetime

import pytest
from tantivy import Query

from larmspider.errors import QueryError
from larmspider.index.access import Hidden, Limited
from larmspider.index.schema import FILES, KINDS, kind_of, last_modified, tongue_of
from larmspider.search.facets import MAX_VALUES, Facets, count_facets, merge
from larmspider.search.query import DAYS, Filters, since_time, until_time
from larmspider.search.request import SearchRequest
from larmspider.search.searcher import Searcher

NOW = datetime(2026, 3, 31, 12, tzinfo=UTC).timestamp()
DAY = 86_400.0


def http_date(days_ago: float) -> str:
    return format_datetime(datetime.fromtimestamp(NOW - days_ago * DAY, UTC), usegmt=True)


@pytest.fixture
def searcher(writer, make_page) -> Searcher:
    """Six pages with the word "word", on two hosts."""
    for name, fields in {
        "new": {"last_modified": http_date(0.5), "language": "en-US"},
        "week": {"last_modified": http_date(3), "language": "de"},
        "pdf": {"last_modified": http_date(20), "language": "de", "mime": "application/pdf"},
        "old": {"last_modified": http_date(1000), "language": "en"},
        "http://docs.example/fetched": {"fetched": NOW - 5 * DAY},
        "http://docs.example/odd": {"mime": "x/y", "language": "<b>", "fetched": NOW - 500 * DAY},
    }.items():
        writer.add(make_page(name, "word", **({"fetched": NOW} | fields)))
    writer.commit()
    return Searcher.open(writer.directory, clock=lambda: NOW)


def test_languages_are_counted_for_each_host(searcher: Searcher) -> None:
    assert searcher.languages(2) == {"wiki.example": {"de": 2, "en": 2}}
    assert list(searcher.languages(1)) == ["wiki.example"]


def test_files_have_a_row_of_languages_too(writer, make_page) -> None:
    """As in the facet of hosts."""
    writer.add(make_page("file:///srv/a.txt", "word", language="de"))
    writer.commit()
    assert Searcher.open(writer.directory).languages(1) == {FILES: {"de": 1}}


def names(searcher: Searcher, **filters: object) -> set[str]:
    found = searcher.search(SearchRequest("word", filters=Filters.of(**filters)))  # type: ignore[arg-type]
    assert found.total == len(found.hits)
    return {hit.url.rpartition("/")[2] for hit in found.hits}


@pytest.mark.parametrize(
    "filters, found",
    [
        ({"hosts": ["Docs.Example."]}, {"fetched", "odd"}),
        ({"hosts": ["example"]}, set()),
        ({"hosts": ["docs.example", "wiki.example"], "kinds": ["PDF"]}, {"pdf"}),
        ({"kinds": ["html"], "languages": ["de"]}, {"week"}),
        ({"kinds": ["pdf", "other"]}, {"pdf", "odd"}),
        ({"languages": ["en-GB"]}, {"new", "old"}),
        ({"since": NOW - 7 * DAY}, {"new", "week", "fetched"}),
        ({"until": NOW - 7 * DAY}, {"pdf", "old", "odd"}),
        ({"since": NOW - 30 * DAY, "until": NOW - 4 * DAY}, {"pdf", "fetched"}),
    ],
)
def test_filters_narrow_what_is_found(searcher, filters, found) -> None:
    """Hosts exactly, kinds, primary languages; dates of change or, without one, of the fetch."""
    assert names(searcher, **filters) == found


@pytest.mark.parametrize(
    "typed, host",
    [
        (" Wiki.example. ", "wiki.example"),
        ("Straße.example", "xn--strae-oqa.example"),
        ("[::1]", "::1"),
        ("\ud800ß", None),
        ("ß" * 256, None),
    ],
)
def test_a_host_is_looked_for_as_pages_have_it(typed: str, host: str | None) -> None:
    """Punycode as the URLs' own (WHATWG), an address without brackets; what is none is refused."""
    if host is None:
        with pytest.raises(QueryError, match="cannot be in the index"):
            Filters.of(hosts=[typed])
    else:
        assert Filters.of(hosts=[typed]).hosts == (host,)


def test_facets_count_all_that_was_found(searcher) -> None:
    """Beyond the page of hits too; longer periods hold the shorter ones."""
    found = searcher.search(SearchRequest("word", 1, facets=True))
    assert (len(found.hits), found.total) == (1, 6)
    assert found.facets == Facets(
        hosts={"wiki.example": 4, "docs.example": 2},
        kinds={"html": 4, "pdf": 1, "other": 1},
        languages={"en": 2, "de": 2},
        dates={"day": 1, "week": 3, "month": 4, "year": 4},
    )


AGES = {"new": 0.5, "week": 3, "fetched": 5, "pdf": 20, "odd": 500, "old": 1000}
"""Days, of the pages."""


@pytest.mark.parametrize(
    "filters, found",
    [
        ({}, AGES),
        ({"hosts": ["docs.example"]}, ["fetched", "odd"]),
        ({"kinds": ["html"]}, ["new", "week", "fetched", "old"]),
        ({"since": 1.0}, AGES),
        ({"kinds": ["pdf"], "since": 1.0}, ["pdf"]),
    ],
)
@pytest.mark.usefixtures("searcher")
def test_periods_whenever_they_end(writer, filters, found) -> None:
    """Where all pages are older, or younger, than the start of a period as well."""
    for later in (-2000, -400, -3.5, 0, 5, 15, 200, 363, 366, 2000):
        now = NOW + later * DAY
        searcher = Searcher.open(writer.directory, clock=lambda now=now: now)
        results = searcher.search(SearchRequest("word", filters=Filters.of(**filters), facets=True))
        assert results.facets.dates == {
            name: sum(AGES[page] + later <= days for page in found) for name, days in DAYS.items()
        }, later
        assert results.total == len(found)


@pytest.mark.parametrize("later, asked", [(-2000, False), (0, True), (363, True), (366, False)])
def test_dates_that_are_of_one_period_are_not_read(searcher, monkeypatch, later, asked) -> None:
    """To look at the date of each match takes a third of the time for all counts."""
    aggregated = list[dict[str, object]]()

    def aggregate(self: Limited, query: Query, wanted: dict[str, object]) -> dict[str, object]:
        aggregated.append(wanted)
        return self.all.aggregate(query, wanted)

    monkeypatch.setattr(Limited, "aggregate", aggregate)
    (shard,) = searcher.shards
    with shard.reading() as reader:
        recorded = Limited(reader, shard.schema, Hidden(Query.empty_query(), Query.empty_query()))
        now, dates = NOW + later * DAY, shard.dates()
        count_facets(recorded, Query.all_query(), {}, now, (), dates)
    assert [("date" in wanted) for wanted in aggregated] == [asked]


def test_a_facet_is_counted_without_its_own_filter(searcher) -> None:
    """Who has chosen one host still sees what the others have; the other facets are narrowed."""
    chosen = Filters.of(hosts=["docs.example"], kinds=["html"])
    facets = searcher.search(SearchRequest("word", filters=chosen, facets=True)).facets
    assert facets.hosts == {"wiki.example": 3, "docs.example": 1}
    assert facets.kinds == {"html": 1, "other": 1}
    assert facets.dates == {"day": 0, "week": 1, "month": 1, "year": 1}


@pytest.mark.parametrize(
    "query", ["word", "word week pdf", '"word" -new', "wrod~ host:wiki.example"]
)
def test_counts_agree_with_what_was_found(searcher, query: str) -> None:
    """Counting takes a shorter query than ranking does."""
    found = searcher.search(SearchRequest(query, facets=True))
    assert sum(found.facets.kinds.values()) == found.total > 0


def test_without_asking_nothing_is_counted(searcher) -> None:
    """Facets cost a second pass."""
    assert searcher.search("word").facets is None


def test_facets_forget_pages_that_were_replaced(writer, searcher, make_page) -> None:
    """A page that was fetched again counts once."""
    writer.add(make_page("old", "word", mime="application/pdf"))
    writer.commit()
    facets = searcher.search(SearchRequest("word", facets=True)).facets
    assert (facets.kinds["pdf"], sum(facets.hosts.values())) == (2, 6)


def test_an_index_without_pages_counts_none(writer) -> None:
    """Like the index of a worker that has no host."""
    writer.commit()
    facets = Searcher.open(writer.directory).search(SearchRequest("word", facets=True)).facets
    assert facets is not None
    assert (facets.hosts, facets.kinds, facets.languages, facets.other_hosts) == ({}, {}, {}, 0)
    assert set(facets.dates.values()) == {0}


def test_counts_of_several_indexes_add_up() -> None:
    """Hosts beyond the most frequent are counted together."""
    one = Facets({f"h{n}": 100 - n for n in range(MAX_VALUES)}, {"html": 2}, {}, {"day": 1}, 7)
    two = Facets({"h0": 5, "z": 3}, {"html": 1, "pdf": 4}, {"de": 1}, {"day": 2, "week": 5})
    both = merge([one, two])
    assert (both.hosts["h0"], "z" in both.hosts, both.other_hosts) == (105, False, 7 + 3)
    assert (both.kinds, both.languages) == ({"pdf": 4, "html": 3}, {"de": 1})
    assert both.dates == {"day": 3, "week": 5, "month": 0, "year": 0}


@pytest.mark.parametrize(
    "filters, message",
    [
        ({"kinds": ["exe"]}, "type 'exe' is unknown; expected one of html, text"),
        ({"languages": ["e"]}, "language 'e' is not a language"),
        ({"hosts": ["a\x00b"]}, "host .* cannot be in the index"),
        ({"hosts": ["h" * 256]}, "cannot be in the index"),
        ({"hosts": [f"h{n}" for n in range(33)]}, "33 values of host, at most 32 are allowed"),
        ({"since": 2.0, "until": 1.0}, "wrong way round"),
    ],
)
def test_a_filter_that_cannot_match_is_a_query_error(filters, message: str) -> None:
    """One line that says what it expects."""
    with pytest.raises(QueryError, match=message) as caught:
        Filters.of(**filters)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "text, seconds",
    [
        ("day", NOW - DAY),
        (" Week", NOW - 7 * DAY),
        ("1970-01-02", DAY),
        ("2026-03-31", NOW - DAY / 2),
    ],
)
def test_periods_and_days(text: str, seconds: float) -> None:
    """A day begins at midnight, UTC."""
    assert since_time(text, NOW) == seconds


@pytest.mark.parametrize(
    "text",
    [
        "",
        "yesterday",
        "2026-02-30",
        "2026-1-31",
        "20260131",
        "0001-01-01",
        "9999-12-31",
        "²026-01-31",
    ],
)
def test_other_dates_are_query_errors(text: str) -> None:
    """The message names the accepted forms."""
    with pytest.raises(QueryError, match="expected day, week"):
        since_time(text, NOW)


def test_until_is_the_end_of_a_day() -> None:
    """Who says until the 31st means that day too; a period has no other end than now."""
    assert until_time("1970-01-01") == DAY
    for text in ("week", "yesterday", "0001-01-01", "9999-12-31"):
        with pytest.raises(QueryError, match="unknown; expected a day as in 2026-01-31"):
            until_time(text)


@pytest.mark.parametrize(
    "header, days_ago",
    [
        (http_date(1), 1.0),
        (http_date(-0.5), -0.5),
        ("Mon, 30 Mar 2026 12:00:00 -0000", 1.0),
        ("", None),
        ("0", None),
        ("yesterday", None),
        (http_date(-2), None),
        ("Thu, 01 Jan 1970 00:00:00 GMT", None),
        ("Thu, 99 Jan 9999 99:00:00 GMT", None),
        ("Fri, 31 Dec 9999 23:59:59 -2359", None),
    ],
)
def test_last_modified_is_believed_where_it_can_be(header: str, days_ago: float | None) -> None:
    """Not before the web and not after the fetch, but for a clock that is off."""
    expected = None if days_ago is None else datetime.fromtimestamp(NOW - days_ago * DAY, UTC)
    assert last_modified(header, NOW) == expected


@pytest.mark.parametrize(
    "header",
    [
        "Fri, 31 Feb 2020 00:00:00 GMT",
        "Fri, 01 Feb 2020 24:00:00 GMT",
        "Sun, 06 Nov 1994 08:49:37 GMT" + " " * 100,
    ],
)
def test_a_day_that_is_none_has_no_date(header: str) -> None:
    """Nor has a header of more than 100 characters, of which 1,024 are remembered."""
    assert last_modified(header, NOW) is None


@pytest.mark.parametrize(
    "mime, kind",
    [
        ("text/html", "html"),
        ("application/vnd.oasis.opendocument.text", "document"),
        ("image/webp", "image"),
        ("image/svg+xml", "image"),
        ("application/atom+xml", "data"),
        ("", "other"),
        ("application/x-unheard-of", "other"),
    ],
)
def test_kinds(mime: str, kind: str) -> None:
    """Every media type is of one of the kinds that can be asked for."""
    assert kind_of(mime) == kind
    assert kind in KINDS


@pytest.mark.parametrize(
    "language, tongue",
    [("en-US", "en"), ("de_AT", "de"), ("DE", "de"), ("", ""), ("x", ""), ("ä", ""), ("<b>", "")],
)
def test_tongues(language: str, tongue: str) -> None:
    """The primary subtag; what is no tag counts as no language."""
    assert tongue_of(language) == tongue


ROOMS = {"shelf": ["4.12", "Größe"], "box": ["4.12"], "lamp": ["5.1"], "void": []}
"""Names of pages and the rooms that they name; all but the last name a date, too."""


@pytest.fixture
def rooms(writer, make_page) -> Searcher:
    for name, values in ROOMS.items():
        fields = {"room": values, "day": ["2026-01-01T00:00:00Z"]} if values else {}
        writer.add(make_page(name, f"word {name} room:4.12", title=name, fields=fields))
    writer.commit()
    return Searcher.open(writer.directory, ["room", "rack"])


def test_own_fields_are_found_and_counted(rooms: Searcher) -> None:
    """Values in any case, several of one field as alternatives; a date is a text like others."""
    box, lamp, shelf = ROOMS["box"][0], ROOMS["lamp"][0], "grösse"
    assert names(rooms, fields=[("room", box)]) == {"shelf", "box"}
    assert names(rooms, fields=[("room", box), ("room", lamp)]) == {"shelf", "box", "lamp"}
    assert names(rooms, fields=[("room", box), ("room", "GRÖßE")]) == {"shelf", "box"}
    assert names(rooms, fields=[("room", shelf)]) == set()
    assert names(rooms, fields=[("day", "2026-01-01t00:00:00z"), ("room", lamp)]) == {"lamp"}
    found = rooms.search(
        SearchRequest("word", filters=Filters.of(fields=[("room", box)]), facets=True)
    )
    assert found.facets is not None
    assert found.facets.fields == {"room": {"4.12": 2, "5.1": 1, "Größe": 1}, "rack": {}}
    assert sum(found.facets.hosts.values()) == 2
    assert {tuple(hit.fields["room"]) for hit in found.hits} == {("4.12", "Größe"), ("4.12",)}
    document = rooms.get("http://wiki.example/void")
    assert document is not None
    assert document.fields == {}
    with pytest.raises(QueryError, match="no page of the index has a field 'rom'"):
        rooms.search(SearchRequest("word", filters=Filters.of(fields=[("rom", "4.12")])))


@pytest.mark.parametrize(
    "query, found",
    [
        ("room:4.12", {"shelf", "box"}),
        ("Room:4.12 room:5.1", {"shelf", "box", "lamp"}),
        ("box room:4.12", {"box"}),
        ("box room:5.1", set()),
        ('word room:"GRÖßE"', {"shelf"}),
        ('word -room:4.12 room:"GRÖßE"', set()),
        ("word -room:4.12", {"lamp", "void"}),
        ("rack:4.12", {"shelf", "box", "lamp", "void"}),  # no page has it: words
    ],
)
def test_own_fields_in_queries(rooms: Searcher, query: str, found: set[str]) -> None:
    assert {hit.title for hit in rooms.search(query).hits} == found


def test_an_own_field_needs_a_value(rooms: Searcher) -> None:
    with pytest.raises(QueryError, match="room: needs a value"):
        rooms.search("word room:")


def test_own_fields_outlast_new_link_texts(writer, make_page) -> None:
    """The page is indexed again from what the index has stored."""
    writer.add(make_page("box", "word", fields={"room": ["4.12"]}))
    writer.commit()
    writer.add_anchors("http://h/", {("http://wiki.example/box", "the box")})
    assert writer.refresh_all_anchors() == 1
    (hit,) = Searcher.open(writer.directory).search("room:4.12").hits
    assert hit.fields == {"room": ["4.12"]}
