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
