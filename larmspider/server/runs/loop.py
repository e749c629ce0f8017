"""Lets the manager tick. The clock and the wait are arguments, so that a test can drive a week."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from larmspider.server.runs.manager import Manager
from larmspider.server.runs.watch import Watch

logger = logging.getLogger(__name__)

TICK_SECS = 1.0
TRIM_TICKS = 30


async def run(
    manager: Manager,
    watch: Watch | None = None,
    *,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    goes_on: Callable[[], bool] = lambda: True,
) -> None:
    """Tick until ``goes_on`` says no. An error is logged, and the next tick tries again."""
    ticks = 0
    while goes_on():
        try:
            await manager.tick()
            if ticks % TRIM_TICKS == 0:
                manager.trim_logs()
                if watch is not None:
                    await watch.look()
        except Exception:
            logger.exception("Error while looking after the crawls")
        ticks += 1
        await sleep(TICK_SECS)
