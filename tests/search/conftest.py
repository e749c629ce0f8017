"""The fixtures of tests/index make the indexes that are searched here."""

from __future__ import annotations

from tests.index.conftest import find, make_page, writer

__all__ = ["find", "make_page", "writer"]
