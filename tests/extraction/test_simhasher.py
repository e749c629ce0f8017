from __future__ import annotations

import sys
from pathlib import Path

import pytest

from larmspider.extraction.texts import simhasher
from larmspider.extraction.texts.fingerprint import simhash
from larmspider.extraction.texts.simhasher import Simhasher

TEXTS = [("wiki", "one text"), ("", "another text \ud800"), ("wiki", "")]


def test_a_process_answers_as_the_crawl_does(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first texts are done in a thread; a process that is killed costs no text its hash."""
    expected = [(simhash(text), []) for _, text in TEXTS]
    monkeypatch.setattr(simhasher, "DONE_HERE", len(TEXTS))
    with Simhasher() as hasher:
        assert hasher.submit(TEXTS).result() == expected
        assert hasher.process.child is None
        assert hasher.submit(TEXTS).result() == expected
        assert hasher.process.child is not None
        hasher.process.child.kill()
        waiting = [hasher.submit(TEXTS) for _ in range(3)]
    assert [one.result() for one in waiting] == [expected] * 3


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells the threads of a process")
def test_its_process_has_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """numpy starts none for each core."""
    monkeypatch.setattr(simhasher, "DONE_HERE", 0)
    with Simhasher() as hasher:
        hasher.submit(TEXTS).result()
        assert hasher.process.child is not None
        status = Path(f"/proc/{hasher.process.child.pid}/status")
        assert "Threads:\t1\n" in status.read_text()
