"""What is read where batch, batch before it and database say different things."""

import threading

import pytest

from larmspider.frontier.storage.lmdb_env import LmdbFiles
from larmspider.frontier.storage.overlay import WriteOverlay
from larmspider.frontier.storage.queues import HostCounters
from larmspider.frontier.storage.records import Counts, unpack_counts

A, B, C, D = (bytes((n,)) * 16 for n in b"abcd")


@pytest.fixture
def layers(tmp_path):
    files = LmdbFiles(tmp_path)
    yield WriteOverlay(files)
    files.close()


def commit(layers):
    layers.seal()
    layers.write()
    layers.discard()


def place(number):
    return b"host-one\0" + bytes((number,))


def run(layers, after=b"host-one\0"):
    return list(layers.stored_run(b"host-one\0", after))


def test_the_newest_record_of_a_url_is_read(layers):
    layers.new.urls.update({A: b"1", B: b"1", C: b"1"})
    commit(layers)
    layers.new.urls.update({A: b"2", B: b"2"})
    layers.seal()
    layers.new.urls[A] = b"3"
    assert layers.urls([D, A, C, B]) == [None, b"3", b"1", b"2"]
    assert [layers.url(key) for key in (A, B, C, D)] == [b"3", b"2", b"1", None]
    assert dict(layers.all_urls()) == {A: b"3", B: b"2", C: b"1"}


def test_an_entry_that_never_was_on_disk_leaves_nothing_behind(layers):
    layers.put_entry(place(1), b"one", new_place=True)
    layers.delete_entry(place(1))
    assert len(layers) == 0
    assert layers.entry(place(1)) is None


@pytest.mark.parametrize("again", [False, True])
def test_an_entry_that_is_on_disk_or_on_its_way_is_deleted_there(layers, again):
    layers.put_entry(place(1), b"one", new_place=True)
    layers.seal()
    if again:  # the place is given again while the batch that has it is being written
        layers.put_entry(place(1), b"two", new_place=True)
    layers.delete_entry(place(1))
    assert layers.entry(place(1)) is None
    layers.write()
    layers.discard()
    commit(layers)
    assert run(layers) == []


def test_two_batches_cut_before_a_commit_become_one(layers):
    layers.put_entry(place(1), b"one", new_place=True)
    layers.new.urls[A] = b"1"
    layers.seal()
    layers.delete_entry(place(1))
    layers.new.urls[A] = b"2"
    commit(layers)
    assert len(layers) == 0
    assert (run(layers), layers.url(A)) == ([], b"2")


def test_a_run_shows_what_is_on_disk_as_it_is_now(layers):
    for number in range(5):
        layers.put_entry(place(number), b"old", new_place=True)
    layers.put_entry(b"host-two\0" + b"x", b"of another host", new_place=True)
    commit(layers)
    layers.put_entry(place(2), b"new", new_place=False)
    layers.delete_entry(place(3))
    layers.put_entry(place(9), b"not on disk", new_place=True)
    assert run(layers, place(1)) == [(place(2), b"new"), (place(3), None), (place(4), b"old")]
    assert len(run(layers)) == 5


def test_a_run_that_is_left_early_holds_no_transaction(layers):
    """Else the map could not grow, and the file would grow without end."""
    layers.put_entry(place(1), b"one", new_place=True)
    commit(layers)
    with layers.files.read():
        pass
    entries = layers.stored_run(b"host-one\0", b"host-one\0")
    next(entries)
    entries.close()
    closing = threading.Thread(target=layers.files.close, daemon=True)  # waits for transactions
    closing.start()
    closing.join(60)
    assert not closing.is_alive()


def test_hosts_and_meta_are_read_through_the_batches(layers):
    layers.new.hosts.update({b"ha": b"1", b"hb": b"1", b"ca": b"counts of a"})
    layers.new.meta[b"nrules"] = b"1"
    commit(layers)
    layers.new.hosts[b"ha"] = b"2"
    layers.new.meta[b"nother"] = b"2"
    layers.seal()
    layers.new.hosts[b"hc"] = b"3"
    assert layers.hosts() == {"a": b"2", "b": b"1", "c": b"3"}
    assert list(layers.stored_counts()) == [("a", b"counts of a")]
    assert [layers.meta(b"n" + name) for name in (b"rules", b"other", b"none")] == [
        b"1",
        b"2",
        None,
    ]


# The counters: of a host, of all, and which of them a commit writes.


EACH = dict.fromkeys(Counts.__slots__, 1)


def test_every_number_counts_for_its_host_and_for_all():
    tally = HostCounters()
    tally.count("a:80", **EACH)
    tally.count("b:80", **EACH)
    assert tally.by_host == {"a:80": Counts(**EACH), "b:80": Counts(**EACH)}
    assert tally.total == Counts(**dict.fromkeys(EACH, 2))


def test_only_hosts_that_changed_are_written():
    tally = HostCounters()
    tally.count("a:80", discovered=1, queued=1)
    assert [name for name, _ in tally.changes()] == ["a:80"]
    tally.count("b:80", discovered=1, refused=1)
    ((name, packed),) = tally.changes()
    assert (name, unpack_counts(packed)) == ("b:80", Counts(discovered=1, refused=1))
    assert list(tally.changes()) == []


def test_what_was_written_is_there_after_a_restart():
    before, after = HostCounters(), HostCounters()
    before.count("a:80", **EACH)
    before.count("b:80", discovered=2, queued=2)
    after.load(before.changes())
    assert (after.by_host, after.total) == (before.by_host, before.total)
    assert list(after.changes()) == []
