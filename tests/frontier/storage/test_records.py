"""Packed records come back as they were."""

import hypothesis.strategies as st
from hypothesis import given

from larmspider.frontier.storage import records as r

TEXT = st.text(st.characters(codec=None), max_size=30)
U16 = st.integers(0, 65535)
ENTRIES = st.builds(
    r.QueuedUrl, TEXT, TEXT.filter(bool), st.binary(min_size=16, max_size=16), TEXT, U16,
    st.integers(0, 255), U16, U16, TEXT, st.binary(), U16,
)  # fmt: skip
VISITS = st.builds(
    r.FetchRecord, st.sampled_from([r.UrlState.STORED, r.UrlState.FAILED, r.UrlState.REFUSED]),
    st.floats(0, 1e11), U16, TEXT, TEXT, st.binary(max_size=64), TEXT, TEXT, U16,
)  # fmt: skip
COUNTS = st.builds(r.Counts, *[st.integers(0, 2**40)] * 7)


@given(ENTRIES)
def test_entry(entry):
    packed = r.pack_entry(entry)
    assert r.unpack_entry(packed) == entry


@given(VISITS, st.integers(0, 2**32 - 1))
def test_visit(visit, inlinks):
    packed = r.pack_visit(visit, inlinks, visit.url, visit.depth)
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
