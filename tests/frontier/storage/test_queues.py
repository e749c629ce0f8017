"""The counters: of a host, of all, and which of them a commit writes."""

from larmspider.frontier.storage.queues import HostCounters
from larmspider.frontier.storage.records import Counts, unpack_counts

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
