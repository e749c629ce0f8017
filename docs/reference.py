"""Writes docs/settings.md and docs/stats.md from larmspider/settings.py and larmspider/stats.py.

    python -m docs.reference        # or: make docs; a test fails where they are not up to date

A comment above a setting, or behind it, is its meaning; a comment that stands alone is a paragraph;
``# --- title ---`` begins a section. The docstring below a stats key says who sets it, a colon, and
what it counts. ``docs/formats.md#known-paths`` in either becomes a link.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
_SECTION = re.compile(r"# -{3} (.+?) -+$")
_HEADER = "<!-- made from larmspider/{source} by `make docs` -->\n"
_SETTINGS = """\
# Settings

All defaults stand in `larmspider/settings.py`, in the order in which a URL meets them. Set one for
a single crawl with `-s NAME=VALUE`, for good in that file, or in a settings module of your own that
begins with `from larmspider.settings import *`.

Names that begin with `LARM_` are ours. They carry their unit. A name that does not exist, or a
value that is not accepted, is an error when the crawl starts, before anything is written. On the
command line, lists and mappings are JSON, as here:
`-s 'LARM_DENY_ADDRESSES=["10.0.0.0/8", "fe80::/10"]'`. Lists may also be separated by commas
(`LARM_EXCLUDE`: by white space). Scrapy's settings keep their meaning.
"""
_STATS = """\
# Stats

{docstring}

| key | set by | counts |
|---|---|---|
{rows}
"""


@dataclass(frozen=True)
class Setting:
    name: str
    default: str
    meaning: str


def settings_page(source: str) -> str:
    """docs/settings.md."""
    parts = [_HEADER.format(source="settings.py"), _SETTINGS]
    in_table = False
    for block in _blocks(source):
        if isinstance(block, Setting):
            if not in_table:
                parts.append("\n| setting | default | meaning |\n|---|---|---|\n")
            parts.append(f"| `{block.name}` | {block.default} | {_cell(block.meaning)} |\n")
        else:
            parts.append(f"\n{block}\n")
        in_table = isinstance(block, Setting)
    return "".join(parts)


def _blocks(source: str) -> Iterator[Setting | str]:
    """Sections, paragraphs and settings, from top to bottom."""
    lines = source.splitlines()
    settings = {node.lineno: node for node in ast.parse(source).body if _is_setting(node)}
    comment: list[str] = []
    began = False
    for number, line in enumerate(lines, 1):
        if section := _SECTION.match(line):
            began = True
            yield f"## {section[1]}"
        elif line.startswith("#"):
            comment.append(line.removeprefix("#").strip())
        else:
            if number in settings:
                behind = "" if comment else line.partition("  # ")[2]
                if meaning := " ".join(comment) or behind:
                    yield _setting(settings[number], meaning)
            elif not line and comment and began:
                yield _linked(" ".join(comment))
            comment = []
    if comment:
        yield _linked(" ".join(comment))


def _is_setting(node: ast.stmt) -> bool:
    target = node.target if isinstance(node, ast.AnnAssign) else None
    if isinstance(node, ast.Assign):
        (target,) = node.targets
    return isinstance(target, ast.Name) and target.id.isupper()


def _setting(node: ast.stmt, meaning: str) -> Setting:
    assert isinstance(node, ast.Assign | ast.AnnAssign)
    assert node.value is not None
    (target,) = node.targets if isinstance(node, ast.Assign) else (node.target,)
    value = node.value
    components = isinstance(value, ast.Dict) and bool(value.keys)
    default = "see settings.py" if components else f"`{_written(value)}`"
    return Setting(ast.unparse(target), default, _linked(meaning))


def _written(value: ast.expr) -> str:
    """A default as the command line takes it: ``1 << 30`` as a number."""
    source = ast.unparse(value)
    if isinstance(value, ast.BinOp):
        source = str(eval(source, {"__builtins__": {}}))
    return source.replace("'", '"')


def stats_page(source: str) -> str:
    """docs/stats.md."""
    tree = ast.parse(source)
    docstring = ast.get_docstring(tree) or ""
    rows = []
    for node, below in pairwise(tree.body):
        if not _is_setting(node) or not isinstance(node, ast.Assign):
            continue
        key = ast.literal_eval(node.value)
        text = ast.literal_eval(below.value) if isinstance(below, ast.Expr) else ""
        who, colon, what = " ".join(text.split()).partition(": ")
        if not colon:
            raise SystemExit(f"stats.py: {key} has no docstring of the form 'who: what'")
        rows.append(f"| `{key}` | {_cell(who)} | {_cell(_linked(what))} |")
    text = _STATS.format(docstring=_linked(docstring), rows="\n".join(rows))
    return _HEADER.format(source="stats.py") + text


def _linked(text: str) -> str:
    """The text with links where it names a page of the documentation."""
    text = re.sub(r"docs/([a-z-]+\.md)(#[a-z-]+)?", lambda m: f"[{m[1]}]({m[1]}{m[2] or ''})", text)
    return re.sub(r"(ARCHITECTURE\.md)(#[a-z-]+)?", lambda m: f"[{m[1]}](../{m[0]})", text)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def pages() -> dict[Path, str]:
    """Each page by its path."""
    package = ROOT / "larmspider"
    return {
        DOCS / "settings.md": settings_page((package / "settings.py").read_text("utf-8")),
        DOCS / "stats.md": stats_page((package / "stats.py").read_text("utf-8")),
    }


if __name__ == "__main__":
    for path, text in pages().items():
        path.write_text(text, "utf-8")
