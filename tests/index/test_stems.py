from __future__ import annotations

from collections.abc import Callable
from typing import cast

import pytest
import tantivy

from larmspider.index.stems import Stems


class Commit:
    """A commit in which ``pages`` have each word."""

    num_docs = 10

    def __init__(self, pages: int) -> None:
        self.pages = pages

    def doc_freq(self, _field: str, _word: str) -> int:
        return self.pages

    def terms_with_prefix(self, _field: str, _head: str, limit: int) -> list[tuple[str, int]]:
        return [("printers", 1)][: min(limit, self.pages)]

    def as_searcher(self) -> tantivy.Searcher:
        return cast("tantivy.Searcher", self)


class Overtaken(Commit):
    """Another thread reads the ``next_one`` before an answer is there."""

    def __init__(self, stems: Stems, next_one: Commit) -> None:
        super().__init__(0)
        self.stems, self.next_one = stems, next_one
        self.asked = False

    def doc_freq(self, field: str, word: str) -> int:
        if self.asked:
            self.stems.look_in(self.next_one.as_searcher())
        return super().doc_freq(field, word)

    def terms_with_prefix(self, field: str, head: str, limit: int) -> list[tuple[str, int]]:
        self.stems.look_in(self.next_one.as_searcher())
        return super().terms_with_prefix(field, head, limit)


@pytest.mark.parametrize(("ask", "before", "after"), [
    (lambda stems: stems.having("exact", "zither"), 0, 5),
    (lambda stems: stems.in_most_titles("zither"), False, True),
    (lambda stems: stems.forms("printer"), {}, {"printers": 5}),
])  # fmt: skip
def test_what_was_asked_of_a_commit_says_nothing_of_the_next_one(
    ask: Callable[[Stems], object], before: object, after: object
) -> None:
    """Also where one is read while another is asked."""
    stems = Stems("english")
    overtaken = Overtaken(stems, Commit(5))
    stems.look_in(overtaken.as_searcher())
    overtaken.asked = True
    assert ask(stems) == before
    assert ask(stems) == after
