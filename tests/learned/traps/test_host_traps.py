"""Budgets, quarantines and probes of single classes, and how they hold and let go of URLs."""

from __future__ import annotations

from itertools import count
from pathlib import Path

import pytest

from larmspider.learned.traps.host_traps import (
    PROBE,
    PROBES_IN_VAIN,
    Budgets,
    ClassRecord,
    ClassState,
    HostTraps,
)
from larmspider.learned.traps.trap_watch import LEARN, REPORT
from tests.support.frontier.memory_backend import Disk, MemoryBackend
from tests.support.frontier.walk import H, Walk
from tests.support.servers.generators import document, page
from tests.support.servers.scripted import Reply

FEW = Budgets(of_class=8, deep=0, of_host=0)


def class_of(traps: HostTraps, url: str = f"{H}/w?do=edit&id=1") -> ClassRecord:
    return traps.find(url, 1).records[0]


def test_a_budget_counts_pages_with_nothing_new_in_a_row() -> None:
    """Seven, a new one, and so on, are fetched for ever; eight use it up."""
    traps, pages = HostTraps(FEW, "h:80"), count()

    def fetched(share: float) -> ClassState:
        met = traps.meet(f"{H}/item/{next(pages)}", 1)
        traps.judge(met, share)
        return met.records[0].state

    for _ in range(4):
        assert fetched(1.0) is ClassState.OPEN
        assert [fetched(0.0) for _ in range(7)] == [ClassState.OPEN] * 7
    assert fetched(0.0) is ClassState.SPENT


@pytest.mark.parametrize(("vain", "probes"), [(0, 8), (PROBES_IN_VAIN, 4), (2 * PROBES_IN_VAIN, 2)])
def test_after_probes_in_vain_fewer_are_made(vain: int, probes: int) -> None:
    traps = HostTraps(FEW, "h:80")
    own = class_of(traps)
    own.state, own.vain = ClassState.QUARANTINED, vain
    met = [traps.meet(f"{H}/w?do=edit&id={number}", 1) for number in range(8 * PROBE)]
    assert sum(one.probe for one in met) == probes


def shop(target: str) -> Reply:
    """120 items, of which those from number 14 on say something."""
    if target == "/":
        return page("List", "All of them.", *(f"/item?n={n}" for n in range(120)))
    number = int(target.partition("=")[2])
    return page("Item", document(number) if number >= 14 else "Not in stock.")


def barren(target: str) -> Reply:
    return shop("/") if target == "/" else page("Item", "Not in stock.")


@pytest.mark.parametrize("mode", [LEARN, REPORT])
def test_urls_are_held_where_the_mode_says_so(mode: str) -> None:
    walk = Walk(barren, mode=mode, budgets=FEW).run(60)
    assert bool(walk.frontier.backend.counts().held) is (mode == LEARN)
    assert any("/item?n=*" in news for news in walk.news)


def test_what_was_held_is_fetched_when_its_class_opens() -> None:
    """Once a probe is new: those before it had waited."""
    walk = Walk(shop, budgets=FEW).run()
    assert walk.fetched.index("/item?n=20") > walk.fetched.index("/item?n=32")
    assert {f"/item?n={number}" for number in range(14, 120)} <= {*walk.fetched}


def test_the_operator_lets_go_of_a_class_while_the_crawl_runs(tmp_path: Path) -> None:
    walk = Walk(barren, budgets=FEW, not_traps=tmp_path / "not-traps.txt").run()
    assert walk.frontier.backend.counts().held > 80
    (tmp_path / "not-traps.txt").write_text("h:80/item?n=*\n")
    walk.frontier.checkpoint({})
    walk.run()
    assert {f"/item?n={number}" for number in range(120)} <= {*walk.fetched}


@pytest.mark.parametrize("in_a_run", [True, False])
def test_the_operator_takes_back_that_a_class_is_no_trap(tmp_path: Path, in_a_run: bool) -> None:
    """The class can be held again, in the same run or the next one."""
    file, backend = tmp_path / "not-traps.txt", MemoryBackend(Disk())
    walk = Walk(barren, backend, budgets=FEW, not_traps=file).run()
    file.write_text("h:80/item?n=*\n")
    walk.frontier.checkpoint({})
    walk.run(60).frontier.checkpoint({})
    assert not walk.frontier.backend.counts().held
    assert class_of(walk.traps.known("h:80"), f"{H}/item?n=1").state is ClassState.NEVER
    file.unlink()
    if not in_a_run:
        walk = Walk(barren, backend, budgets=FEW, not_traps=file)
    walk.frontier.checkpoint({})
    assert walk.run(len(walk.fetched) + 20).frontier.backend.counts().held


def test_revisions_of_known_names_in_a_path_are_held_and_new_names_are_not() -> None:
    """On a host without parameters, whose content they are."""
    traps, revisions = HostTraps(Budgets(), "h:80"), count()

    def fetched(name: int, share: float) -> ClassState:
        met = traps.meet(f"{H}/file/{next(revisions) + 0x9F86D081884:x}/src/name{name}", 1)
        traps.judge(met, share)
        return met.records[0].state

    fetched(0, 1.0)
    assert fetched(0, 0.0) is ClassState.OPEN
    assert {fetched(name, 1.0) for name in range(1, 20)} == {ClassState.OPEN}
    found = [fetched(name, 0.0) for name in range(20)]
    assert found[0] is ClassState.OPEN
    assert found[-1] is ClassState.QUARANTINED
    met = [traps.find(f"{H}/file/abcdef123456/src/name{name}", 1) for name in (7, 77)]
    assert [one.blocked is None for one in met] == [False, True]


def test_a_class_without_parameters_waits_with_the_views_if_it_shows_nothing_new() -> None:
    """On a host with views. A class that has shown something does not."""
    traps = HostTraps(Budgets(), "h:80")
    for number in range(30):
        for target, share in ((f"w?n={number}", 1.0), (f"a/{number}/list", 0.0)):
            traps.judge(traps.meet(f"{H}/{target}", 1), share)
        traps.judge(traps.meet(f"{H}/b/{number}/list", 1), float(number < 2))
    assert "the pages that wait behind all others" in traps.names(f"{H}/a/99/list", 1)
    assert "the pages that wait behind all others" not in traps.names(f"{H}/b/99/list", 1)
