"""Takes the simhashes (fingerprint.py) of a crawl's texts beside the crawl, at low priority.

    with Simhasher() as simhasher:
        future = simhasher.submit(["the text of a page", "and of another one"])
        future.result()        # [-6214087253..., 4387112...]

The first texts are done in a thread, so that a small crawl starts no process.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Sequence
from concurrent.futures import Future
from contextlib import suppress
from typing import Self

from larmspider.extraction.fingerprint import MAX_BYTES, simhash
from larmspider.extraction.process import ExtractionStopped, HelperProcess
from larmspider.extraction.process_child import receive, send

logger = logging.getLogger(__name__)

DONE_HERE = 64
"""Texts of a run before the process is started."""
_NICE = 10
_TRIED = 3
_PROGRAM = "from larmspider.extraction.simhasher import main; main()"


class Simhasher:
    """Answers in the order in which it was asked."""

    def __init__(self) -> None:
        self._process = HelperProcess(_PROGRAM, "simhash")
        self._done = self._failed = 0

    def submit(self, texts: Sequence[str]) -> Future[list[int]]:
        """The simhash of each text; never fails."""
        return self._process.pool.submit(self._of, [text[:MAX_BYTES] for text in texts])

    def _of(self, texts: list[str]) -> list[int]:
        self._done += len(texts)
        if self._done > DONE_HERE and self._failed < _TRIED:
            try:
                found: list[int] = self._process.ask(texts)
            except (EOFError, OSError):
                self._failed += 1
                if self._failed == _TRIED:
                    logger.error("Copies are compared in the crawl's own process: theirs ends")
            except ExtractionStopped:
                pass
            else:
                return found
        return list(map(simhash, texts))

    def close(self) -> None:
        """Texts that wait are done first. May be called twice."""
        self._process.pool.shutdown(wait=True)
        self._process.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def main() -> None:
    """Answer with the simhashes of the texts of each message until the input ends."""
    if hasattr(os, "nice"):
        os.nice(_NICE)
    with suppress(EOFError, BrokenPipeError):
        while True:
            send(sys.stdout.buffer, list(map(simhash, receive(sys.stdin.buffer))))
            sys.stdout.buffer.flush()
