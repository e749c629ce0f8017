"""The contract of frontier/backend.py as tests; every backend must pass them as they stand.

A backend's test module subclasses ``BackendConformance`` and gives a fixture ``store`` with two
methods: ``open()`` a backend on the same place and ``crash(backend)``, which ends it as a kill
would.
"""

from __future__ import annotations

from typing import Protocol

import pytest
from msgspec.structs import replace

from larmspider.frontier.storage.backend import Backend
from larmspider.frontier.storage.records import (
    Counts,
    FetchRecord,
    MergedUrl,
    QueuedUrl,
    UrlState,
    host_of,
    url_key,
)

U, Q, L, S, F, R, M = UrlState
OK = FetchRecord(
    S, time=1_800_000_000.5, status=200, etag='"v1"', last_modified="Tue", digest=b"\1\2"
)


class Store(Protocol):
    def open(self) -> Backend: ...

    def crash(self, backend: Backend) -> None: ...


def entry(url: str, **fields: object) -> QueuedUrl:
    return QueuedUrl(url, url, url_key(url), host_of(url), **fields)  # type: ignore[arg-type]


def entries(*paths: str, host: str = "a") -> list[QueuedUrl]:
    return [entry(f"http://{host}/{path}") for path in paths]


def urls(found: list[QueuedUrl]) -> list[str]:
    return [one.url for one in found]


class BackendConformance:
    @pytest.fixture
    def backend(self, store: Store):
        backend = store.open()
        backend.recover()
        yield backend
        backend.close()

    @staticmethod
    def restart(store: Store, backend: Backend) -> Backend:
        store.crash(backend)
        again = store.open()
        again.recover()
        return again

    def test_a_new_url_is_added_once(self, backend):
        one, two = entries("1", "2")
        assert backend.add([one, two, one]) == [True, True, False]
        assert backend.add([two]) == [False]
        assert backend.check([one.key, two.key, url_key("http://a/3")]) == [Q, Q, U]
        assert backend.counts() == Counts(discovered=2, queued=2)

    def test_all_fields_of_an_entry_come_back(self, backend):
        given = QueuedUrl(
            url="http://a/%7Ex?q=ä\ud800",
            normalized="http://a/~x?q=ä",
            key=url_key("http://a/~x?q=ä"),
            host="a:80",
            depth=3,
            link_type=2,
            redirects=4,
            priority=7,
            from_page="http://a/",
            payload=b"\x00\xffbytes",
            attempts=1,
        )
        backend.add([given])
        assert backend.entry(given.key) == given
        assert backend.pop("a:80", 0.0) == [given]
        assert backend.leases() == [given]

    def test_hands_out_by_priority_then_age(self, backend):
        late, soon = entry("http://a/1", priority=9), entry("http://a/2", priority=2)
        also = entry("http://a/3", priority=2)
        backend.add([late, soon, also])
        assert urls(backend.pop("a:80", 0.0, 2)) == ["http://a/2", "http://a/3"]
        assert urls(backend.pop("a:80", 0.0, 2)) == ["http://a/1"]
        assert backend.pop("a:80", 0.0) == []

    def test_an_urgent_url_overtakes_what_is_on_disk_already(self, backend):
        backend.add([entry(f"http://a/{n}", priority=5) for n in range(100)])
        backend.checkpoint({})
        assert urls(backend.pop("a:80", 0.0)) == ["http://a/0"]
        backend.add([entry("http://a/urgent", priority=1), entry("http://a/last", priority=6)])
        assert urls(backend.pop("a:80", 0.0)) == ["http://a/urgent"]
        rest = urls(backend.pop("a:80", 0.0, 200))
        assert rest == [f"http://a/{n}" for n in range(1, 100)] + ["http://a/last"]

    def test_what_is_leased_or_done_is_not_read_from_disk_again(self, backend):
        backend.add([entry(f"http://a/{n}", priority=5) for n in range(10)])
        backend.checkpoint({})
        one, _two = backend.pop("a:80", 0.0, 2)
        backend.acknowledge([(one.key, OK)])
        backend.add([entry(f"http://a/urgent{n}", priority=1) for n in range(9)])
        backend.seal()
        backend.commit({})
        three = backend.pop("a:80", 0.0, 10)[-1]  # nine urgent ones and http://a/2
        backend.add([entry(f"http://a/late{n}", priority=1) for n in range(9)])
        backend.discard()
        backend.checkpoint({})
        backend.acknowledge([(three.key, OK)])
        rest = urls(backend.pop("a:80", 0.0, 99))
        late = [f"http://a/late{n}" for n in range(9)]
        assert rest == late + [f"http://a/{n}" for n in range(3, 10)]

    def test_the_same_time_twice_leaves_no_ghost(self, backend, store):
        backend.add(entries("1"))
        (one,) = backend.pop("a:80", 0.0)
        backend.release([(one.key, 50.0, 1)])
        backend.checkpoint({})
        for earliest in (0.0, 50.0):
            backend.pop("a:80", 60.0)
            backend.release([(one.key, earliest, 1)])
        backend.pop("a:80", 60.0)
        backend.acknowledge([(one.key, OK)])
        backend.checkpoint({})
        again = self.restart(store, backend)
        again.add(entries("2"))
        (two,) = again.pop("a:80", 60.0, 9)
        again.release([(two.key, 50.0, 1)])
        again.checkpoint({})
        again = self.restart(store, again)
        assert urls(again.pop("a:80", 60.0, 9)) == ["http://a/2"]
        again.close()

    def test_long_queues_come_out_in_order_and_once(self, backend):
        got: list[str] = []
        wanted: list[str] = []
        for round_number in range(12):
            batch = entries(*(f"{round_number}-{n}" for n in range(150)))
            wanted += urls(batch)
            backend.add(batch)
            popped = backend.pop("a:80", 0.0, 70)
            backend.acknowledge([(one.key, OK) for one in popped])
            got += urls(popped)
            if round_number % 3:
                backend.checkpoint({})
        got += urls(backend.pop("a:80", 0.0, 10_000))
        assert got == wanted

    def test_hosts_have_queues_of_their_own(self, backend):
        backend.add(entries("1", "2") + entries("1", host="b"))
        assert urls(backend.pop("b:80", 0.0, 5)) == ["http://b/1"]
        assert backend.counts("a:80") == Counts(discovered=2, queued=2)
        assert backend.counts("b:80") == Counts(discovered=1, leased=1)
        assert sorted(backend.host_names()) == ["a:80", "b:80"]
        assert backend.pop("c:80", 0.0) == []

    @pytest.mark.parametrize("state", [S, F, R])
    def test_a_final_state_keeps_what_a_later_visit_needs(self, backend, store, state):
        (one,) = entries("1")
        one.depth = 2
        backend.add([one])
        backend.pop("a:80", 0.0)
        visit = FetchRecord(state, 1_800_000_000.5, 404, '"e"', "Mon", b"\0digest", "why", "x", 9)
        backend.acknowledge([(one.key, visit)])
        backend.checkpoint({})
        again = self.restart(store, backend)
        kept = again.visit(one.key)
        assert kept == FetchRecord(
            state, 1_800_000_000.5, 404, '"e"', "Mon", b"\0digest", "why", one.url, 2
        )
        assert again.check([one.key]) == [state]
        assert again.entry(one.key) is None
        assert again.add([one]) == [False]
        assert again.pop("a:80", 0.0) == []
        assert again.counts() == again.audit()
        again.close()

    def test_only_a_lease_can_be_answered(self, backend):
        (one,) = entries("1")
        backend.add([one])
        with pytest.raises(KeyError):
            backend.acknowledge([(one.key, OK)])
        with pytest.raises(KeyError):
            backend.release([(one.key, 0.0, 1)])
        assert backend.check([one.key]) == [Q]

    def test_given_back_without_a_time_it_has_its_old_place(self, backend):
        backend.add(entries("1", "2"))
        (one,) = backend.pop("a:80", 0.0)
        backend.release([(one.key, 0.0, 1)])
        again = backend.pop("a:80", 0.0, 2)
        assert urls(again) == ["http://a/1", "http://a/2"]
        assert [got.attempts for got in again] == [1, 0]

    def test_given_back_with_a_time_it_waits_and_lets_others_pass(self, backend):
        backend.add(entries("1", "2"))
        (one,) = backend.pop("a:80", 0.0)
        backend.release([(one.key, 50.0, 1)])
        assert backend.next_time("a:80") == 0.0
        assert urls(backend.pop("a:80", 49.9, 5)) == ["http://a/2"]
        assert backend.next_time("a:80") == 50.0
        assert backend.pop("a:80", 49.9) == []
        assert urls(backend.pop("a:80", 50.0)) == ["http://a/1"]
        assert backend.next_time("a:80") is None

    def test_a_due_url_goes_before_new_ones(self, backend):
        backend.add(entries("1", "2", "3"))
        first = backend.pop("a:80", 0.0, 2)
        backend.release([(first[0].key, 60.0, 1), (first[1].key, 50.0, 1)])
        assert urls(backend.pop("a:80", 99.0, 3)) == ["http://a/2", "http://a/1", "http://a/3"]

    def test_times_and_attempts_survive(self, backend, store):
        backend.add(entries("1"))
        (one,) = backend.pop("a:80", 0.0)
        backend.release([(one.key, 1_800_000_050.125, 3)])
        backend.checkpoint({})
        again = self.restart(store, backend)
        assert again.next_time("a:80") == 1_800_000_050.125
        assert again.counts() == again.audit() == Counts(discovered=1, queued=1, delayed=1)
        assert again.pop("a:80", 1_800_000_051.0)[0].attempts == 3
        again.close()

    def test_a_given_back_url_that_is_stored_leaves_no_ghost(self, backend, store):
        backend.add(entries("1"))
        backend.checkpoint({})
        for _ in range(2):
            (one,) = backend.pop("a:80", 0.0)
            backend.release([(one.key, 0.0, 1)])
        backend.pop("a:80", 0.0)
        backend.acknowledge([(one.key, OK)])
        backend.checkpoint({})
        again = self.restart(store, backend)
        again.add(entries("2"))
        assert urls(again.pop("a:80", 0.0, 9)) == ["http://a/2"]
        again.close()

    def test_refuses_unknown_and_queued_urls_only(self, backend):
        new, queued, leased, stored = entries("new", "queued", "leased", "stored")
        backend.add([stored, leased, queued])
        backend.pop("a:80", 0.0, 2)
        backend.acknowledge([(stored.key, OK)])
        backend.refuse([(one, "robots.txt") for one in (new, queued, leased, stored)])
        assert backend.check([new.key, queued.key, leased.key, stored.key]) == [R, R, L, S]
        assert backend.visit(new.key).reason == "robots.txt"
        assert backend.visit(queued.key).url == queued.url
        assert backend.pop("a:80", 0.0) == []
        assert backend.counts() == Counts(discovered=4, leased=1, stored=1, refused=2)

    def test_reopens_refused_urls_only(self, backend, store):
        new, refused, waiting, stored = entries("new", "refused", "waiting", "stored")
        backend.add([stored, waiting])
        backend.acknowledge([(backend.pop("a:80", 0.0)[0].key, OK)])
        backend.refuse([(refused, "out of scope")])
        backend.checkpoint({})
        assert backend.reopen([new, refused, waiting, stored]) == [False, True, False, False]
        assert backend.counts() == Counts(discovered=3, queued=2, stored=1)
        backend.checkpoint({})
        again = self.restart(store, backend)
        assert again.check([new.key, refused.key]) == [U, Q]
        assert again.counts() == again.audit() == Counts(discovered=3, queued=2, stored=1)
        assert urls(again.pop("a:80", 0.0, 9)) == [waiting.url, refused.url]
        again.acknowledge([(refused.key, OK)])
        again.checkpoint({})
        last = self.restart(store, again)
        assert last.check([refused.key]) == [S]
        assert last.counts() == last.audit()
        last.close()

    def test_urls_are_found_by_their_canonical_form(self, backend, store):
        guess = url_key("http://a/faq")
        one, two, other = entries("FAQ", "Faq", "other")
        one.guess = two.guess = guess
        backend.add([one, other])
        assert backend.guessed([guess, other.key]) == [[one.key], []]
        backend.checkpoint({})
        backend.add([two])
        assert sorted(backend.guessed([guess])[0]) == sorted([one.key, two.key])
        again = self.restart(store, backend)
        assert backend is again or again.guessed([guess]) == [[one.key]]
        again.close()

    def test_merges_unknown_and_leased_urls_only(self, backend):
        new, queued, leased, stored, into = entries("new", "queued", "leased", "stored", "into")
        backend.add([stored, leased, queued])
        backend.pop("a:80", 0.0, 2)
        backend.acknowledge([(stored.key, OK)])
        backend.merge([MergedUrl(one, 5, into.key) for one in (new, queued, leased, stored)])
        assert backend.check([new.key, queued.key, leased.key, stored.key]) == [M, Q, M, S]
        assert backend.merged(new.key) == MergedUrl(new, 5, into.key)
        assert backend.merged(stored.key) is backend.visit(new.key) is backend.entry(new.key)
        assert backend.add([new]) == [False]
        assert backend.counts() == Counts(discovered=4, queued=1, stored=1, merged=2)
        assert backend.audit() == backend.counts()

    def test_what_was_only_asked_again_is_counted_nowhere(self, backend, store):
        again, into = entries("again", "into")
        backend.add([again, into])
        backend.pop("a:80", 0.0)
        backend.merge([MergedUrl(again, 0, into.key)])
        backend.checkpoint({})
        after = self.restart(store, backend)
        assert after.counts() == after.audit() == Counts(discovered=1, queued=1)
        assert after.merged_of("a:80", 9) == after.merged_into(into.key, 9) == []
        after.close()

    def test_merged_urls_are_found_and_queued_again(self, backend, store):
        one, two = entry("http://a/1", depth=2, from_page="http://a/"), entry("http://b/2")
        into = entry("http://a/into")
        backend.add([into])
        backend.merge([MergedUrl(one, 1, into.key), MergedUrl(two, 2, into.key)])
        backend.checkpoint({})
        again = self.restart(store, backend)
        assert again.merged(one.key) == MergedUrl(one, 1, into.key)
        assert again.merged_of("a:80", 9) == [one.key]
        assert sorted(again.merged_into(into.key, 9)) == sorted([one.key, two.key])
        assert again.unmerge([one.key, into.key]) == [one]
        assert again.merged_of("a:80", 9) == []
        assert again.merged_into(into.key, 9) == [two.key]
        again.checkpoint({})
        third = self.restart(store, again)
        assert third.check([one.key, two.key]) == [Q, M]
        assert urls(third.pop("a:80", 0.0, 9)) == ["http://a/into", "http://a/1"]
        assert third.merged_into(into.key, 9) == [two.key]
        assert third.counts() == Counts(discovered=3, leased=2, merged=1)
        third.close()

    def test_a_merged_url_may_have_another_that_stands_for_it(self, backend, store):
        one, before, into = entries("1", "before", "into")
        backend.merge([MergedUrl(one, 1, before.key)])
        backend.checkpoint({})
        backend.merge([MergedUrl(one, 3, into.key)])
        backend.checkpoint({})
        again = self.restart(store, backend)
        assert again.merged(one.key) == MergedUrl(one, 3, into.key)
        assert again.merged_of("a:80", 9) == again.merged_into(into.key, 9) == [one.key]
        assert again.merged_into(before.key, 9) == []
        assert again.counts() == again.audit() == Counts(discovered=1, merged=1)
        again.close()

    def test_counts_links_to_queued_urls(self, backend, store):
        one, two = entries("1", "2")
        backend.add([one, two])
        backend.pop("a:80", 0.0)
        assert backend.count_links([one.key, two.key, two.key, url_key("http://a/9")]) == [
            0,
            2,
            3,
            0,
        ]
        backend.checkpoint({})
        again = self.restart(store, backend)
        assert again.count_links([two.key]) == [4]
        again.close()

    @pytest.mark.parametrize("committed", [False, True])
    def test_moves_a_queued_url_to_another_priority(self, backend, committed):
        one, two, three = (entry(f"http://a/{n}", priority=5) for n in (1, 2, 3))
        backend.add([one, two, three])
        if committed:
            backend.checkpoint({})
        backend.reprioritize([(three.key, 1), (one.key, 8), (url_key("http://a/9"), 1)])
        got = backend.pop("a:80", 0.0, 9)
        assert urls(got) == ["http://a/3", "http://a/2", "http://a/1"]
        assert [g.priority for g in got] == [1, 5, 8]
        backend.reprioritize([(one.key, 0)])
        assert backend.check([one.key]) == [L]

    @staticmethod
    def visited(backend, *paths, due=100.0):
        """Stored URLs that are due again."""
        found = entries(*paths)
        backend.add(found)
        backend.pop("a:80", 0.0, len(found))
        backend.acknowledge([(one.key, replace(OK, due=due)) for one in found])
        return found

    def test_a_visit_again_keeps_the_record_until_it_is_made(self, backend, store):
        (one,) = self.visited(backend, "1")
        backend.checkpoint({})
        assert backend.due("a:80", 99.9) == []
        (again,) = backend.due("a:80", 100.0)
        assert (again.url, again.visit) == (one.url, backend.visit(one.key))
        assert again.visit.etag == OK.etag
        assert backend.check([one.key]) == [S]
        assert backend.due("a:80", 100.0) == []
        assert backend.add([one]) == [False]
        assert backend.counts() == backend.audit() == Counts(discovered=1, stored=1)
        assert (backend.visiting(), backend.visiting("b:80")) == (1, 0)
        assert [lease.url for lease in backend.leases()] == [one.url]
        backend.checkpoint({})
        backend = self.restart(store, backend)  # made due again by the crash
        assert urls(backend.due("a:80", 100.0)) == [one.url]
        changed = FetchRecord(F, 101.0, 404, reason="http-404", due=200.0, missing_as="missing")
        backend.acknowledge([(one.key, changed)])
        assert backend.counts() == backend.audit() == Counts(discovered=1, failed=1)
        backend.checkpoint({})
        backend = self.restart(store, backend)
        assert backend.visit(one.key).missing_as == "missing"
        assert (backend.due("a:80", 199.9), backend.next_due("a:80")) == ([], 0.0)
        backend.close()

    def test_visits_again_come_in_order_of_their_times(self, backend, store):
        one, two, three = self.visited(backend, "1", "2", "3")
        backend.schedule([(three.key, 50.0), (two.key, 0.0), (url_key("http://a/9"), 9.0)])
        backend.checkpoint({})
        backend = self.restart(store, backend)
        backend.schedule([(one.key, 60.0)])
        assert sorted(backend.due_times()) == [50.0, 60.0]
        assert backend.next_due("a:80", until=50.0) == 0.0
        assert backend.next_due("a:80", until=49.0) is None
        assert urls(backend.due("a:80", 0.0, 9, until=99.0)) == [three.url, one.url]
        backend.close()

    def test_a_visit_that_failed_is_tried_again_at_its_time(self, backend, store):
        one, two = self.visited(backend, "1", "2")
        backend.checkpoint({})
        backend.due("a:80", 100.0, 2)
        backend.release([(one.key, 150.0, 1), (two.key, 0.0, 0)])
        assert urls(backend.due("a:80", 120.0, 9)) == [two.url]
        assert backend.next_due("a:80", until=0.0) == 150.0
        (again,) = backend.due("a:80", 150.0, 9, until=0.0)
        assert (again.url, again.attempts) == (one.url, 1)
        backend.checkpoint({})
        backend = self.restart(store, backend)
        assert len(backend.due("a:80", 100.0, 9)) == 2
        backend.close()

    def test_a_forgotten_url_is_unknown(self, backend, store):
        one, two, three = self.visited(backend, "1", "2", "3")
        backend.checkpoint({})
        backend.schedule([(two.key, 50.0)])
        assert urls(backend.due("a:80", 50.0)) == [two.url]
        backend.forget([one.key, two.key, url_key("http://a/9")])
        assert backend.check([one.key, two.key, three.key]) == [U, U, S]
        assert backend.visiting() == 0
        assert backend.counts() == backend.audit() == Counts(discovered=1, stored=1)
        assert backend.add([one]) == [True]
        backend.checkpoint({})
        backend = self.restart(store, backend)
        assert backend.check([one.key, two.key, three.key]) == [Q, U, S]
        assert backend.counts() == backend.audit() == Counts(discovered=2, queued=1, stored=1)
        assert urls(backend.due("a:80", 999.0, 9)) == [three.url]
        backend.close()

    def test_all_urls_are_met_in_slices(self, backend):
        found = self.visited(backend, *"1234567")
        backend.add(entries("new"))
        backend.checkpoint({})
        met, after = [], b""
        while part := backend.visits(after, 3):
            met += part
            after = part[-1][0]
        assert {key for key, visit in met if visit} == {one.key for one in found}
        assert len(met) == 8

    def test_held_urls_are_queued_and_not_handed_out(self, backend, store):
        added = [entry(f"http://a/{n}", priority=n) for n in range(6)]
        backend.add([*added, *entries("x", host="b")])
        one, two, three, four = backend.pop("a:80", 0.0, 4)
        backend.hold([(one.key, 7), (two.key, 2**47 - 1), (three.key, 7)])
        backend.release([(four.key, 50.0, 1)])
        known = Counts(discovered=7, queued=7, delayed=1, held=3)
        assert backend.counts() == backend.audit() == known
        assert urls(backend.pop("a:80", 60.0, 1)) == [four.url]
        backend.acknowledge([(four.key, OK)])
        assert (backend.check([one.key]), backend.entry(one.key)) == ([Q], added[0])
        backend.checkpoint({})
        backend = self.restart(store, backend)
        assert backend.counts("a:80") == Counts(discovered=6, queued=5, stored=1, held=3)
        assert backend.unhold("b:80", None, 9) == backend.unhold("a:80", 8, 9) == 0
        assert (backend.unhold("a:80", 7, 1), backend.unhold("a:80", 7, 9)) == (1, 1)
        assert urls(backend.pop("a:80", 0.0, 9)) == [added[n].url for n in (0, 2, 4, 5)]
        assert (backend.next_time("a:80"), backend.pop("a:80", float("inf"))) == (None, [])
        backend.hold([(one.key, 1)])
        backend.refuse([(two, "not wanted")])
        assert backend.unhold("a:80", None, 9) == 1
        assert (backend.counts().held, backend.next_time("a:80")) == (0, 0.0)
        assert backend.counts() == backend.audit()
        assert urls(backend.pop("a:80", 0.0, 9)) == [one.url]
        backend.checkpoint({})
        backend = self.restart(store, backend)
        assert urls(backend.pop("a:80", 0.0, 9)) == [added[n].url for n in (0, 2, 4, 5)]
        backend.close()

    def test_a_crash_loses_what_came_after_the_commit_and_nothing_else(self, backend, store):
        backend.add(entries("1", "2", "3"))
        backend.put_hosts({"a:80": b"old"})
        backend.put_note("n", b"old")
        backend.checkpoint({"store.log": b"17", "links.log": b"4"})
        one, two, _three = backend.pop("a:80", 0.0, 3)
        backend.acknowledge([(one.key, OK)])
        backend.release([(two.key, 99.0, 1)])
        backend.add(entries("4"))
        backend.put_hosts({"a:80": b"new", "b:80": b"new"})
        backend.put_note("n", b"new")
        store.crash(backend)
        again = store.open()
        recovery = again.recover()
        assert dict(recovery.positions) == {"store.log": b"17", "links.log": b"4"}
        assert not recovery.fresh
        assert again.hosts() == {"a:80": b"old"}
        assert again.note("n") == b"old"
        assert again.counts() == again.audit() == Counts(discovered=3, queued=3)
        assert urls(again.pop("a:80", 0.0, 9)) == ["http://a/1", "http://a/2", "http://a/3"]
        again.close()

    def test_leases_of_a_commit_are_queued_again_at_their_places(self, backend, store):
        backend.add(entries("1", "2", "3"))
        backend.pop("a:80", 0.0, 2)
        backend.checkpoint({})
        for _ in range(2):  # a second crash before the next commit changes nothing
            store.crash(backend)
            backend = store.open()
            assert backend.recover().requeued == 2
            assert backend.counts() == backend.audit() == Counts(discovered=3, queued=3)
        assert urls(backend.pop("a:80", 0.0, 9)) == ["http://a/1", "http://a/2", "http://a/3"]
        backend.close()

    def test_what_comes_after_the_cut_is_not_in_the_commit(self, backend, store):
        backend.add(entries("1", "2", "3"))
        one, two = backend.pop("a:80", 0.0, 2)
        backend.acknowledge([(one.key, OK)])
        backend.seal()
        backend.acknowledge([(two.key, OK)])
        backend.add(entries("4"))
        backend.commit({"s": b"1"})
        assert backend.check([one.key, two.key]) == [S, S]
        backend.discard()
        assert backend.check([one.key, two.key, url_key("http://a/4")]) == [S, S, Q]
        again = self.restart(store, backend)
        assert again.check([one.key, two.key, url_key("http://a/4")]) == [S, Q, U]
        assert again.counts() == again.audit() == Counts(discovered=3, queued=2, stored=1)
        assert urls(again.pop("a:80", 0.0, 9)) == ["http://a/2", "http://a/3"]
        again.close()

    def test_work_goes_on_between_cut_and_settle(self, backend, store):
        backend.add(entries(*"123456"))
        (one,) = backend.pop("a:80", 0.0)
        backend.seal()
        backend.release([(one.key, 0.0, 1)])
        assert urls(backend.pop("a:80", 0.0, 3)) == ["http://a/1", "http://a/2", "http://a/3"]
        backend.commit({})
        backend.release([(url_key("http://a/2"), 0.0, 1)])
        backend.acknowledge([(url_key("http://a/1"), OK)])
        backend.discard()
        assert urls(backend.pop("a:80", 0.0, 9)) == [f"http://a/{n}" for n in (2, 4, 5, 6)]
        backend.checkpoint({})
        again = self.restart(store, backend)
        assert urls(again.pop("a:80", 0.0, 9)) == [f"http://a/{n}" for n in (2, 3, 4, 5, 6)]
        again.close()

    def test_a_cut_that_is_not_committed_joins_the_next(self, backend, store):
        backend.add(entries("1"))
        backend.seal()
        backend.add(entries("2"))
        backend.seal()
        backend.commit({})
        backend.discard()
        again = self.restart(store, backend)
        assert again.counts() == Counts(discovered=2, queued=2)
        again.close()

    def test_a_store_that_is_not_named_keeps_its_position(self, backend, store):
        backend.checkpoint({"a": b"1", "b": b"1"})
        backend.checkpoint({"b": b"2"})
        store.crash(backend)
        again = store.open()
        assert dict(again.recover().positions) == {"a": b"1", "b": b"2"}
        again.close()

    def test_a_new_place_is_fresh_until_its_first_commit(self, store):
        for _ in range(2):
            backend = store.open()
            assert backend.recover().fresh
            backend.add(entries("1"))
            store.crash(backend)

    def test_pending_falls_with_a_commit(self, backend):
        assert backend.pending == 0
        backend.add(entries("1", "2"))
        assert backend.pending >= 2
        backend.checkpoint({})
        assert backend.pending == 0
