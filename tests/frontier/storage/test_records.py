"""Packed records come back as they were."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from larmspider.frontier.storage import records as k
from larmspider.frontier.storage import records as r

TEXT = st.text(st.characters(codec=None), max_size=30)
U16 = st.integers(0, 65535)
F32 = st.floats(0, 1e6, width=32)
SIGNATURE = st.just(b"") | st.binary(min_size=8, max_size=8).filter(any)
ENTRIES = st.builds(
    r.QueuedUrl, TEXT, TEXT.filter(bool), st.binary(min_size=16, max_size=16), TEXT, U16,
    st.integers(0, 255), U16, U16, TEXT, st.binary(), U16,
)  # fmt: skip
VISITS = st.builds(
    r.FetchRecord, st.sampled_from([r.UrlState.STORED, r.UrlState.FAILED, r.UrlState.REFUSED]),
    st.floats(0, 1e11), U16, TEXT, TEXT, st.binary(max_size=64), TEXT, TEXT, U16,
    TEXT, st.integers(0, 255), SIGNATURE, SIGNATURE, F32, F32, st.floats(0, 1e10),
    st.floats(0, 1e10), U16, TEXT,
)  # fmt: skip
COUNTS = st.builds(r.Counts, *[st.integers(0, 2**40)] * 7)


@given(ENTRIES)
def test_entry(entry):
    packed = r.pack_entry(entry)
    assert r.unpack_entry(packed) == entry


@given(VISITS, st.integers(0, 2**32 - 1))
def test_visit(visit, inlinks):
    packed = r.pack_visit(visit, inlinks)
    assert r.unpack_visit(packed) == visit
    assert r.inlinks_of(packed) == inlinks
    assert packed[0] == visit.state


@given(
    st.sampled_from([r.UrlState.QUEUED, r.UrlState.LEASED]), st.integers(0, 2**32 - 1), st.binary()
)
def test_waiting(state, inlinks, place):
    packed = r.pack_waiting(state, inlinks, place)
    assert r.unpack_waiting(packed) == (state, inlinks, place)
    assert r.inlinks_of(packed) == inlinks


@given(COUNTS)
def test_counts(counts):
    assert r.unpack_counts(r.pack_counts(counts)) == counts


@given(st.dictionaries(TEXT, st.binary()))
def test_positions(positions):
    assert r.unpack_positions(r.pack_positions(positions)) == positions


def test_counts_that_add_up():
    assert r.Counts(15, 1, 2, 3, 4, 5, 1).balanced()
    assert not r.Counts(15, 1, 2, 3, 4, 6).balanced()


def test_numbers_out_of_range_are_cut_and_never_raise():
    entry = r.QueuedUrl("u", "u", bytes(16), "h", 99_999, 0, 99_999, 99_999, "", b"", 99_999)
    back = r.unpack_entry(r.pack_entry(entry))
    assert (back.depth, back.redirects, back.priority, back.attempts) == (65535,) * 4


# Names of URLs, hosts and places in the queue.


@pytest.mark.parametrize(
    "url, host",
    [
        ("http://wiki/a", "wiki:80"),
        ("http://wiki", "wiki:80"),
        ("https://wiki/", "wiki:443"),
        ("HTTPS://Wiki:8443/", "wiki:8443"),
        ("http://wiki:/", "wiki:80"),
        ("http://user:pa@ss@wiki/", "wiki:80"),
        ("http://wiki?q=http://x/", "wiki:80"),
        ("http://wiki#x", "wiki:80"),
        ("http://[::1]/", "[::1]:80"),
        ("http://[::1]:81/", "[::1]:81"),
    ],
)
def test_host_of_a_url(url, host):
    assert k.host_of(url) == host


def test_urls_of_a_host_are_neighbours():
    one, two, other = map(k.url_key, ("http://a/1", "http://a/2", "http://b/1"))
    assert len(one) == 16
    assert one != two
    assert one[:4] == two[:4] == k.url_key("http://a?x")[:4]
    assert one[:4] != other[:4]


def test_the_key_of_a_url_never_changes():
    """It is on disk: another value is another format version."""
    assert k.url_key("http://wiki/a").hex() == "59ae1da50d1fd1435d935781a44c4bb9"


@given(
    st.integers(0, 65535),
    st.integers(0, 2**48 - 1),
    st.integers(0, 65535),
    st.integers(0, 2**48 - 1),
)
def test_ready_places_sort_by_priority_then_serial(p1, s1, p2, s2):
    one, two = k.ready_key("a:80", p1, s1), k.ready_key("a:80", p2, s2)
    assert (one < two) == ((p1, s1) < (p2, s2))
    assert (k.run_of(one), k.serial_of(one)) == (k.READY, s1)


@given(st.floats(0.001, 2.5e11), st.integers(0, 2**48 - 1))
def test_a_delayed_place_keeps_its_time_to_the_millisecond_and_never_earlier(earliest, serial):
    place = k.delayed_key("a:80", earliest, serial)
    assert earliest - 1e-4 <= k.earliest_of(place) <= earliest + 0.0011
    assert (k.run_of(place), k.serial_of(place)) == (k.DELAYED, serial)


@pytest.mark.parametrize("priority, kept", [(-1, 0), (70_000, 65_535)])
def test_priorities_out_of_range_are_cut(priority, kept):
    assert k.ready_key("a:80", priority, 1) == k.ready_key("a:80", kept, 1)


def test_where_a_page_was_found_is_kept_beside_its_own_origin():
    visit = r.FetchRecord(r.UrlState.STORED, url="http://wiki/a", from_page="http://wiki/ä/list")
    packed = r.pack_visit(visit, 1)
    assert packed.count(b"http://wiki/") == 1
    assert r.unpack_visit(packed) == visit
