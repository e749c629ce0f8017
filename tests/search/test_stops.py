"""Words of a query that say little."""

from __future__ import annotations

import pytest

from larmspider.search.stops import matter


@pytest.mark.parametrize(
    "query, full",
    [
        ("how do i use queues", "queues"),
        ("what is the gil", "gil"),
        ("use index", "use index"),  # no question
        ("wie benutze ich warteschlangen", "warteschlangen"),
        ("die server", "die server"),  # one German word makes no German query
        ("comment utiliser la messagerie", "messagerie"),
        ("kilobyte definition of", "kilobyte"),
        ("the meaning of definition", "definition"),
        ("bedeutung von urlaub", "urlaub"),
        ("definition files", "definition files"),
        ("to be or not to be", "to be or not to be"),  # nothing else is there
    ],
)
def test_question_words_and_articles_count_little(query: str, full: str) -> None:
    words = query.split()
    assert [word for word, counts in zip(words, matter(words), strict=True) if counts] == (
        full.split()
    )
