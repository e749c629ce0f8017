"""The structure of the package: no import is part of a circle, and what is pure stays pure."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "larmspider"

PURE = ["urls", "access", "extraction", "index", "search", "frontier", "learned"]
SCRAPY = {"scrapy", "twisted", "scrapy_redis"}


@cache
def modules() -> dict[str, Path]:
    """Every module of the package by its dotted name."""
    names = {}
    for path in PACKAGE.rglob("*.py"):
        parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
        names[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return names


def statements(tree: ast.AST) -> Iterator[ast.stmt]:
    """All statements of a module, also those within others: a tenth of its nodes."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.stmt):
            yield node
        for name in ("body", "orelse", "finalbody", "handlers", "cases"):
            waiting += getattr(node, name, ())


def imports(path: Path, *, typing: bool) -> Iterator[str]:
    """The imports of a module, by dotted name; with ``typing`` also those for annotations only."""
    known = modules()
    skipped: set[ast.AST] = set()
    for node in statements(ast.parse(path.read_text("utf-8"))):
        if node in skipped:
            continue
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test) and not typing:
            skipped.update(inner for part in node.body for inner in statements(part))
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} imports relatively"
            module = node.module or ""
            for alias in node.names:
                inner = f"{module}.{alias.name}"
                yield inner if inner in known else module


def unit(module: str) -> str:
    """The folder or file under larmspider/ that a module belongs to; "" for the package itself."""
    return module.split(".")[1] if "." in module else ""


def test_imports_have_no_circle() -> None:
    """The modules can be sorted so that each comes after all that it imports as it runs. Imports
    for annotations only may point back: functions that take the Frontier name its class."""
    graph = {
        name: {
            imported
            for imported in imports(path, typing=False)
            if imported in modules() and imported != name
        }
        for name, path in modules().items()
    }
    try:
        order = list(TopologicalSorter(graph).static_order())
    except CycleError as error:
        pytest.fail(f"a circle: {' -> '.join(error.args[1])}")
    assert len(order) == len(graph)


def test_pure_modules_know_no_scrapy() -> None:
    """urls/, extraction/, index/, search/ and frontier/ work without Scrapy."""
    for module in (name for name in modules() if unit(name) in PURE):
        for imported in imports(modules()[module], typing=True):
            assert imported.split(".")[0] not in SCRAPY, f"{module} imports {imported}"


def test_one_module_says_which_hosts_are_restricted() -> None:
    """workdir/restricted.py alone reads which hosts the sites file protects, and which crawl.json
    has noted. All others ask that module."""
    words = ("protected", "opens_doors", "credentials")
    asking = {
        name
        for name, path in modules().items()
        if any(word in path.read_text("utf-8") for word in words)
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if (isinstance(node, ast.Attribute) and node.attr in ("protected", "opens_doors"))
        or (isinstance(node, ast.ImportFrom) and "protected_in" in _imported(node))
        or (isinstance(node, ast.Constant) and node.value == "credentials")
    }
    definitions = {"larmspider.fetch.sites.lookup"}
    assert asking - definitions == {"larmspider.workdir.restricted"}


def _imported(node: ast.ImportFrom) -> list[str]:
    return [alias.name for alias in node.names]


def test_the_longest_files_of_tests_are_there() -> None:
    """Each line of longest_files.txt is a file, once: a moved file would begin last."""
    names = Path(__file__).with_name("longest_files.txt").read_text().split()
    assert [name for name in names if not (PACKAGE.parent / name).is_file()] == []
    assert len(set(names)) == len(names)
