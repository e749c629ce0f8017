"""Reads that may hang, in threads that the process does not wait for when it ends."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


async def in_thread(call: Callable[[], T]) -> T:
    """Run ``call`` in a daemon thread; return its result, or raise its exception."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def end(result: T | None, error: BaseException | None) -> None:
        if future.done():
            return
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(result)  # type: ignore[arg-type]

    def run() -> None:
        result, raised = None, None
        try:
            result = call()
        except BaseException as error:  # noqa: BLE001 - it is raised where it is awaited
            raised = error
        try:
            loop.call_soon_threadsafe(end, result, raised)
        except RuntimeError:
            pass  # the loop has ended

    threading.Thread(target=run, name="file", daemon=True).start()
    return await future
