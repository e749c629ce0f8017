"""The audit log turns over without a loss."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from larmspider.server import audit
from larmspider.server.audit import FILE, Audit


def test_a_log_that_is_full_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also if two threads find it full at once."""
    monkeypatch.setattr(audit, "MAX_BYTES", 1_000)
    (tmp_path / FILE).write_text("x" * 2_000)
    replace, turning, noted = Path.replace, threading.Event(), threading.Event()

    def slowly(path: Path, target: Path) -> Path:
        if not turning.is_set():
            turning.set()
            noted.wait(0.3)
        return replace(path, target)

    def note(number: str) -> None:
        Audit(tmp_path).note("anna", "", "push", number, "done")  # users and crawls have one each

    monkeypatch.setattr(Path, "replace", slowly)
    first = threading.Thread(target=note, args="0")
    first.start()
    assert turning.wait(10)
    note("1")
    noted.set()
    first.join(10)
    assert len((tmp_path / f"{FILE}.1").read_text()) == 2_000
    assert {row[4] for row in Audit(tmp_path).last(9)} == {"0", "1"}
