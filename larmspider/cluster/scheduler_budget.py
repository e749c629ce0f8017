"""LARM_MAX_PAGES over many workers: each goes by what all have committed, and by its own pages.

await budget.look()            # once a second: others have committed since
await budget.committed()       # after an own commit, before the next one can begin
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from larmspider.cluster.scheduler_parts import Worker

BUDGET_LOOK_SECS = 1.0


class Budget:
    """Asks Redis only where there is a limit. Raises what heartbeat.UNREACHABLE lists."""

    def __init__(self, sharing: Worker) -> None:
        self._sharing = sharing
        self._next = 0.0

    async def look(self) -> None:
        """Not while an own commit is under way, which may be in that number or not."""
        checkpointing = self._sharing.scheduler.checkpointing
        if asyncio.get_running_loop().time() >= self._next and not checkpointing.locked():
            async with checkpointing:
                await self.committed()

    async def committed(self) -> None:
        """Note how many pages are stored in all."""
        self._next = asyncio.get_running_loop().time() + BUDGET_LOOK_SECS
        sharing = self._sharing
        if sharing.frontier.bounds.max_pages:
            sharing.blocks.stored_in_all(await asyncio.to_thread(sharing.membership.stored))
