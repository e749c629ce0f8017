"""Words that say little about the subject of a query: articles, pronouns, question words.

They stay in the index, for phrases and names, but count little beside other words of a query. In a
question, common verbs count little too::

    matter(["how", "do", "i", "use", "queues"])      # [False, False, False, False, True]
    matter(["use", "index"])                         # [True, True]
    matter(["kilobyte", "definition", "of"])         # [True, False, False]

stops.txt has the words: question words, verbs of questions, words that matter little only before
another word ("definition of"), and the others by language.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, lru_cache
from importlib.resources import files
from itertools import pairwise

_LEAST = 2  # words of languages other than English


def matter(words: Sequence[str]) -> list[bool]:
    """Whether each word of a query, in lower case, counts in full. English stop words count little.
    Stop words of another language do if the query has two of them. If no word would be left, all
    count."""
    return list(_matter(tuple(words)))


def stand_out(words: Sequence[str]) -> list[bool]:
    """Whether each word of a query, as typed, is a name because it alone has a capital letter:
    "songs by The", "the IF statement". The first word has one in any sentence, and "I" too."""
    capitals = [word != word.lower() for word in words]
    if sum(capitals) != 1 or len(words) < _LEAST:
        return [False] * len(words)
    at = capitals.index(True)
    is_name = words[at] != "I" and (at > 0 or (words[at].isupper() and len(words[at]) > 1))
    return [number == at and is_name for number in range(len(words))]


@lru_cache(1_024)  # each part of a search calls it
def _matter(words: tuple[str, ...]) -> Sequence[bool]:
    lists = _lists()
    stops = set(lists["en"])
    for name, known in lists.items():
        if len(name) == len("en") and sum(word in known for word in words) >= _LEAST:
            stops |= known
    if len(words) > _LEAST and not lists["questions"].isdisjoint(words):
        stops |= lists["fillers"]
    asks = [word in lists.get(f"before {after}", ()) for word, after in pairwise((*words, ""))]
    found = [
        not (word in stops or asking or after_that)
        for word, asking, after_that in zip(words, asks, [False, *asks], strict=False)
    ]
    return found if any(found) else [True] * len(words)


@cache
def all_stops() -> frozenset[str]:
    """All words that say little in one of the languages, and the verbs of questions."""
    return frozenset().union(*(each for name, each in _lists().items() if " " not in name))


@cache
def _lists() -> dict[str, frozenset[str]]:
    found: dict[str, frozenset[str]] = {}
    name = ""
    for line in (files(__package__) / "stops.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            name = line.strip("[]")
        elif not line.startswith("#"):
            found[name] = found.get(name, frozenset()) | frozenset(line.split())
    return found
