from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "findability.py"


@pytest.fixture(scope="module")
def findability() -> ModuleType:
    spec = importlib.util.spec_from_file_location("findability", BENCHMARK)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # its dataclasses look themselves up there
    spec.loader.exec_module(module)
    return module


def test_python_documentation_is_found(findability: ModuleType, tmp_path: Path) -> None:
    """100 entries of its own index: found 1.000 / 0.902; plain BM25 0.980 / 0.827."""
    docs = findability.DOCS
    if not (docs / "genindex-all.html").exists():
        pytest.skip(f"package python3.11-doc is not installed: no {docs}")
    pages = list(findability.pages(docs))
    entries = findability.entries(docs, (page.url for page in pages))
    chosen = findability.sample(entries, 100)
    typed = findability.cases(chosen, "full", entries)
    product = findability.product(findability.build(tmp_path, pages))
    scores = findability.measure(typed, product)
    plain = findability.measure(typed, findability.baseline(pages))
    assert scores.success >= 0.97
    assert scores.mrr >= 0.87
    assert scores.mrr > plain.mrr


def test_figures_are_what_they_say(findability: ModuleType) -> None:
    """success@10 counts right pages, MRR@10 their ranks."""
    right = frozenset({"r"})
    found = {"first": ["r", "x"], "fourth": ["x", "x", "x", "r"], "never": ["x"], "empty": []}
    scores = findability.measure([(query, right) for query in found], found.__getitem__)
    assert (scores.success, scores.mrr) == (0.5, (1 + 0.25) / 4)


@pytest.mark.parametrize(
    "text, full, name",
    [
        ("join() (asyncio.Queue method)", "join() asyncio.Queue method", "join()"),
        ("abstract base class", "abstract base class", "abstract base class"),
        ("abc (module)", "abc module", "abc"),
    ],
)
def test_an_entry_is_typed_as_people_would(
    findability: ModuleType, text: str, full: str, name: str
) -> None:
    """The name, and the words of the qualifier without its parentheses."""
    entry = findability.QueuedUrl(text, frozenset())
    assert (entry.full, entry.name) == (full, name)
