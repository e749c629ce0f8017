from __future__ import annotations

import random

import pytest

from larmspider.extraction.texts import navigation
from larmspider.extraction.texts.navigation import (
    LEAST_PAGES,
    MAX_HOSTS,
    MAX_ROWS,
    ONE_OF,
    Navigation,
    Spans,
)

WORDS = [f"word{n}" for n in range(5_000)]
MENU = " ".join(f"Menu{n}" for n in range(400))


def texts(number: int, share: float = 1.0) -> list[str]:
    """``share`` of them have the menu between words of their own."""
    chance = random.Random(7)
    found = []
    for _ in range(number):
        before, behind = (" ".join(chance.choices(WORDS, k=400)) for _ in range(2))
        found.append(f"{before} {MENU if chance.random() < share else ''} {behind}")
    return found


def spans(learned: Navigation, host: str, text: str) -> Spans:
    (found,) = learned.spans([(host, text)])
    return found


def menu_in(text: str, spans: list[tuple[int, int]]) -> float:
    """The share of the menu that is in ``spans``; nothing else may be."""
    found = " ".join(text[start:end] for start, end in spans)
    assert set(found.split()) <= set(MENU.split())
    return len(found) / len(MENU)


@pytest.mark.parametrize(("share", "is_found"), [(1.0, True), (0.3, True), (0.05, False)])
def test_blocks_of_many_pages_are_learned(share: float, is_found: bool) -> None:
    """But for a few words at either end."""
    learned = Navigation()
    early, *_, late = [spans(learned, "wiki", text) for text in texts(300, share)] + [
        spans(learned, "wiki", f"{' '.join(WORDS[:400])} {MENU} {' '.join(WORDS[400:800])}")
    ]
    text = f"{' '.join(WORDS[:400])} {MENU} {' '.join(WORDS[400:800])}"
    assert (menu_in(text, late) > 0.5) is is_found
    assert early == []
    assert spans(learned, "other", text) == []


def test_of_many_pages_some_are_learned_from(monkeypatch: pytest.MonkeyPatch) -> None:
    """The menu of them all is found in each; one that comes then is learned, too."""
    monkeypatch.setattr(navigation, "MANY_PAGES", 100)
    learned = Navigation()
    found = [menu_in(text, spans(learned, "wiki", text)) for text in texts(200)]
    assert min(found[LEAST_PAGES:]) > 0.5
    assert learned._hosts["wiki"]._pages == 100 + 100 // ONE_OF
    other = [text.replace("Menu", "Other") for text in texts(400)]
    first, *_, last = [spans(learned, "wiki", text) for text in other]
    assert (len(first), len(last)) == (0, 1)


def test_blocks_are_where_they_stand_in_any_text() -> None:
    """With one space between two words, with any white space, with letters that grow in lower
    case."""
    learned = Navigation()
    for text in texts(100):
        spans(learned, "wiki", text)
    before, behind = "\u0130stanbul " * 50, " ".join(["", *WORDS[:800]])
    plain = f"{before}{MENU}{behind} {MENU} end"
    wide = plain.replace(" ", " \n ")
    (first, second), its = (spans(learned, "wiki", text) for text in (plain, wide))
    assert 0 < menu_in(plain, [first]) == menu_in(plain, [second])
    assert [wide[a:b].split() for a, b in its] == [plain[a:b].split() for a, b in (first, second)]


def test_a_page_that_is_nothing_else_keeps_its_text() -> None:
    learned = Navigation()
    assert {tuple(spans(learned, "wiki", MENU)) for _ in range(2 * LEAST_PAGES)} == {()}


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    learned = Navigation()
    for text in texts(200):
        spans(learned, "wiki", text)
    assert len(learned._hosts["wiki"]._rows) <= MAX_ROWS
    monkeypatch.setattr(navigation, "MAX_HOSTS", 3)
    for n in range(9):
        spans(learned, f"host{n}", MENU)
    assert list(learned._hosts) == ["host6", "host7", "host8"]
    assert MAX_HOSTS > 3
