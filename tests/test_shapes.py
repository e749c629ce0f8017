"""benchmarks/shapes.py: ten times as much is ten times the work; calls are counted, not seconds."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.shapes import MOST, SHAPES, Shape, calls_of

pytestmark = pytest.mark.acceptance


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.run.__name__)
def test_ten_times_as_much_costs_ten_times_the_calls(shape: Shape, tmp_path: Path) -> None:
    """The smaller size is a fiftieth of the smallest one of the table."""
    sizes = shape.sizes[0] // 50, shape.sizes[0] // 5
    small, large = (calls_of(shape, _made(tmp_path / str(size)), size) for size in sizes)
    assert large / small <= MOST


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder
