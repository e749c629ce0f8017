"""Valid files in odd forms, each with known words: the share that needs no other program. All of
them: ``python -m benchmarks.document_corpus``."""

from __future__ import annotations

from itertools import groupby

import pytest

from benchmarks.document_corpus import measure, reading
from benchmarks.valid_documents.every import by_hand

pytestmark = pytest.mark.acceptance

MOST = 12
"""Files of a format, evenly picked."""
LEAST = 0.98


def test_words_of_valid_documents_are_found() -> None:
    picked = []
    for _, same in groupby(sorted(by_hand(set())), lambda made: made.format):
        files = list(same)
        picked += files[:: -(-len(files) // MOST)]
    with reading() as reader:
        rows = measure(reader, picked)
    assert len(rows) > 30
    assert {name: row.silent for name, row in rows.items() if row.silent} == {}
    assert {name: row.misses for name, row in rows.items() if row.share < LEAST} == {}
