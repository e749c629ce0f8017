"""benchmarks/same_results.py: the same queries each time, and differences that are named."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import same_results
from benchmarks.same_results import (
    KINDS,
    OPTIONS,
    PARTS,
    QUERIES,
    Kept,
    NotPossibleError,
    differences,
    digest,
    first_difference,
    make_queries,
)
from larmspider.items import Page

ANSWER = {"total": 2, "hits": [{"url": "http://a/", "score": 1.5}, {"url": "http://b/"}]}


def kept(*answers: dict[str, object], store: str = "one\ttwo") -> Kept:
    rows = [("administrator", digest(one), same_results.json.dumps(one)) for one in answers]
    return Kept([{"kind": "one word", "query": "vpn"}], rows, {"store.log": [store]})


@pytest.fixture(scope="module")
def pages() -> list[Page]:
    """Enough words for each kind of query."""
    words = [
        f"{a}{b}{c}{d}" for a in "abcdefgh" for b in "aeiou" for c in "lmnrst" for d in "aeiou"
    ]
    words += [f"{a}{b}s" for a in words[:60] for b in words[:80]]
    texts = [" ".join(words[at : at + 900]) for at in range(0, len(words) - 900, 300)]
    code = " os.path.join() std::move() --enable-shared --help "
    return [
        Page(f"http://python.example/{n}", title=f"Title {text[:30]}", text=code + text)
        for n, text in enumerate(texts)
    ]


def test_queries_are_the_same_for_the_same_pages(pages: list[Page]) -> None:
    first = make_queries(pages)
    assert first == make_queries(pages)
    assert len(first) == QUERIES
    assert {one["kind"] for one in first} == set(KINDS)
    chosen = [{k: v for k, v in one.items() if k not in ("kind", "query")} for one in first]
    assert all(dict(options) in chosen for options in OPTIONS)
    assert len({one["query"] for one in first}) > QUERIES * 0.8


def test_a_file_gives_back_what_was_saved(tmp_path: Path) -> None:
    before = kept(ANSWER)
    before.write(tmp_path / "a.same")
    assert Kept.read(tmp_path / "a.same") == before
    assert differences(before, Kept.read(tmp_path / "a.same"), PARTS) == []


@pytest.mark.parametrize(
    ("now", "where"),
    [
        ({**ANSWER, "total": 3}, "total: 2 before, 3 now"),
        ({**ANSWER, "hits": ANSWER["hits"][:1]}, "hits: 2 before, 1 now"),
        (
            {**ANSWER, "hits": [{"url": "http://c/", "score": 1.5}]},
            "hits[0].url: 'http://a/' before, 'http://c/' now",
        ),
    ],
)
def test_the_first_difference_of_an_answer_is_named(now: dict[str, object], where: str) -> None:
    assert first_difference(ANSWER, now) == where
    told = differences(kept(ANSWER), kept(now), PARTS)
    asked = '{"kind": "one word", "query": "vpn"}'
    assert told == ["1 of 1 answers differ", f"  administrator: {asked}: {where}"]


def test_lines_that_are_missing_or_new_are_named() -> None:
    told = differences(kept(), kept(store="one\tthree"), PARTS)
    assert told == [
        "store.log: 1 lines are missing, 1 are new",
        "  - one\ttwo",
        "  + one\tthree",
    ]


@pytest.mark.parametrize("content", [None, b"no zip"])
def test_a_file_that_is_none_ends_with_status_2(
    content: bytes | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.same"
    if content is not None:
        path.write_bytes(content)
    assert same_results.main(["--compare", str(path)]) == 2
    assert capsys.readouterr().err.startswith(f"same_results: {path}: cannot be read: ")


def test_a_part_that_the_file_does_not_have_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Kept([], [], {"store.log": []}).write(tmp_path / "a.same")
    assert same_results.main(["--compare", str(tmp_path / "a.same"), "--part", "searches"]) == 2
    assert "has no searches; expected --part crawls" in capsys.readouterr().err


def test_missing_packages_are_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    nothing = same_results.Manual("none", "none-doc", tmp_path)
    monkeypatch.setattr(same_results, "INDEXED", (nothing,))
    with pytest.raises(NotPossibleError, match="packages are not installed: none-doc"):
        same_results.gather(["searches"])
