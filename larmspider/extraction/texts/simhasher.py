"""Computes simhashes (fingerprint.py, words.py) of a crawl's texts, and finds navigation in them,
beside the crawl, at low priority.

    with Simhasher() as simhasher:
        future = simhasher.submit([("wiki.example", "the text of a page"), ("", "and another")])
        future.result()        # [(-6214087253..., []), (4387112..., [])]

A thread does the first texts, so that a small crawl starts no process. No navigation is learned
from these texts, nor from texts without a host (navigation.py).
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from concurrent.futures import Future
from typing import Self, TypeAlias

from larmspider.extraction.processes.helper_process import ExtractionStopped, HelperProcess
from larmspider.extraction.texts.fingerprint import MAX_BYTES, simhash

logger = logging.getLogger(__name__)

DONE_HERE = 64
"""Texts that a run compares in its own process, before it starts the other process."""
SHORT = 100_000
"""Characters of one batch. A longer batch starts the process at once: a million take 50 MB."""
_TRIED = 3
Compared: TypeAlias = tuple[int, list[tuple[int, int]]]
_PROGRAM = "from larmspider.extraction.processes.helper_child import compare_texts; compare_texts()"


class Simhasher:
    """Gives its results in the order of the calls."""

    def __init__(self) -> None:
        self.process = HelperProcess(_PROGRAM, "simhash")
        self._done = self._failed = 0

    def submit(self, texts: Sequence[tuple[str, str]]) -> Future[list[Compared]]:
        """The simhash of each text, and the spans of navigation in it; never fails."""
        first = [(host, text[:MAX_BYTES]) for host, text in texts]
        return self.process.pool.submit(self._of, first)

    def _of(self, texts: list[tuple[str, str]]) -> list[Compared]:
        self._done += len(texts)
        is_little = self._done <= DONE_HERE and sum(len(text) for _, text in texts) <= SHORT
        if not is_little and self._failed < _TRIED:
            try:
                answer = self.process.ask(texts)
            except (EOFError, OSError):
                self._failed += 1
                if self._failed == _TRIED:
                    logger.error("Copies are compared in the crawl's own process: theirs ends")
            except ExtractionStopped:
                pass
            else:
                return [(found, [(a, b) for a, b in spans]) for found, spans in answer]
        return [(simhash(text), []) for _, text in texts]

    def close(self) -> None:
        """Texts that wait are done first. May be called twice."""
        self.process.pool.shutdown(wait=True)
        self.process.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
