"""What is searched is made by the fixtures of tests/index."""

from __future__ import annotations

from tests.index.conftest import find, make_page, writer

__all__ = ["find", "make_page", "writer"]
