"""larmspider/extensions/checkpoint.py: when its moment comes. Whole crawls: tests/recovery/."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

import pytest

from larmspider.extensions.checkpoint import CheckpointExtension
from larmspider.scheduler.scheduler import FrontierScheduler


def test_a_stream_of_items_without_a_gap_does_not_keep_it_waiting() -> None:
    """Items overlap for ever; the gate keeps new ones out, and opens again."""

    async def run() -> tuple[int, bool]:
        gate = asyncio.Event()
        gate.set()
        slot = SimpleNamespace(itemproc_size=0)
        engine = SimpleNamespace(scraper=SimpleNamespace(slot=slot))
        extension = CheckpointExtension(SimpleNamespace(engine=engine), 5.0)

        async def stream(delay: float) -> None:
            await asyncio.sleep(delay)
            while True:
                await gate.wait()
                slot.itemproc_size += 1
                await asyncio.sleep(0.02)
                slot.itemproc_size -= 1

        streams = [asyncio.ensure_future(stream(number / 1000)) for number in range(20)]
        await asyncio.sleep(0.1)
        assert slot.itemproc_size > 0
        async with asyncio.timeout(30):
            await extension._quiesce(SimpleNamespace(gate=gate))
        at_rest = slot.itemproc_size
        for task in streams:
            task.cancel()
        return at_rest, gate.is_set()

    assert asyncio.run(run()) == (0, True)


def test_whatever_goes_wrong_in_a_checkpoint_ends_the_crawl(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """It would go on without one for ever else: all of it in memory, and lost at its end."""

    class Wrong(FrontierScheduler):
        def __init__(self) -> None:
            self.closed, self.broken = False, ""
            self.checkpointing, self.gate = asyncio.Lock(), asyncio.Event()

        @property
        def wants_checkpoint(self) -> bool:
            return True

        def seal(self) -> dict[str, bytes]:
            raise RuntimeError("some of blocks [7]\nare leased")

    async def main() -> str:
        scheduler = Wrong()
        engine = SimpleNamespace(scheduler=scheduler, scraper=SimpleNamespace(slot=None))
        crawler = SimpleNamespace(
            engine=engine, signals=SimpleNamespace(send_catch_log_async=None), stats=None
        )
        extension = CheckpointExtension(crawler, 5.0)
        await asyncio.wait_for(extension._run(), 30)
        return scheduler.broken

    assert asyncio.run(main()) == "RuntimeError: some of blocks [7] are leased"
    assert "Error while taking a checkpoint" in caplog.text


def test_a_checkpoint_that_is_due_when_none_is_taken_any_more_leaves_the_loop_free() -> None:
    """A worker that closes, or was fenced, may still have blocks to give up: it could never end."""
    asked = []

    class Closed(FrontierScheduler):
        def __init__(self) -> None:
            self.closed, self.broken = True, ""
            self.checkpointing, self.gate = asyncio.Lock(), asyncio.Event()

        @property
        def wants_checkpoint(self) -> bool:
            asked.append(1)
            assert len(asked) < 1000, "it goes round and round"
            return True

    async def main() -> None:
        engine = SimpleNamespace(scheduler=Closed(), scraper=SimpleNamespace(slot=None))
        crawler = SimpleNamespace(
            engine=engine,
            signals=SimpleNamespace(send_catch_log_async=None),
            stats=SimpleNamespace(inc_value=lambda key: None),
        )
        extension = CheckpointExtension(crawler, 5.0)
        extension.spider_opened()
        await asyncio.sleep(0.3)
        extension.spider_closed()
        await asyncio.gather(*extension._tasks, return_exceptions=True)

    asyncio.run(main())
    assert asked
    assert len(asked) < 10
