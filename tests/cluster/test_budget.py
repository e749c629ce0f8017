"""larmspider/cluster/worker.py: a worker hears of the pages of others between its own
checkpoints, or one with a long time between two would go on with all that it has."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

import pytest

from larmspider.cluster import worker as scheduler_budget
from larmspider.cluster.worker import Budget


class Worker:
    """Of which the budget asks; ``heard`` is what its blocks were told."""

    def __init__(self, max_pages: int) -> None:
        self.pages, self.heard = 0, list[int]()
        self.checkpointing = asyncio.Lock()
        frontier = SimpleNamespace(
            limits=SimpleNamespace(max_pages=max_pages),
            partitions=SimpleNamespace(stored_in_all=self.heard.append),
        )
        membership = SimpleNamespace(stored=lambda: self.pages)
        self.budget = Budget(frontier, membership, self.checkpointing)  # type: ignore[arg-type]


def test_others_pages_are_looked_up_without_an_own_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each time that it is due; a commit counts as one."""
    worker = Worker(max_pages=10)
    budget = worker.budget

    async def run() -> None:
        worker.pages = 3
        await budget.look()
        worker.pages = 7
        await budget.look()
        assert worker.heard == [3], "too soon"
        await budget.committed()
        assert worker.heard == [3, 7]
        monkeypatch.setattr(scheduler_budget, "BUDGET_LOOK_SECS", 0.0)
        await budget.committed()
        worker.pages = 11
        await budget.look()
        assert worker.heard == [3, 7, 7, 11]

    asyncio.run(run())


def test_nothing_is_looked_up_in_the_middle_of_an_own_commit() -> None:
    """Whether that is in the number cannot be told then."""
    worker = Worker(max_pages=10)
    budget = worker.budget

    async def run() -> None:
        async with worker.checkpointing:
            await budget.look()
        assert worker.heard == []
        await budget.look()
        assert worker.heard == [0]

    asyncio.run(run())


def test_without_a_limit_nobody_is_asked() -> None:
    worker = Worker(max_pages=0)
    asyncio.run(worker.budget.look())
    assert worker.heard == []
