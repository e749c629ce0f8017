"""larmspider/extensions/checkpoint.py: when its moment comes. Whole crawls: tests/recovery/."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

from larmspider.extensions.checkpoint import CheckpointExtension


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
            await extension._at_rest(SimpleNamespace(gate=gate))
        at_rest = slot.itemproc_size
        for task in streams:
            task.cancel()
        return at_rest, gate.is_set()

    assert asyncio.run(run()) == (0, True)
