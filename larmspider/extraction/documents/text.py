"""JSON, lines of JSON, and Jupyter notebooks.

JSON is read as it stands, except for the escapes in its strings (RFC 8259 7): ``\\\\u00fc`` is ü,
two halves of a character are one, ``\\\\n`` separates words. A URL ends where its string ends.
Comments, a call (JSONP), or a guard against scripts may stand before it.

A notebook (nbformat 3 and 4) gives the sources of all cells and the text of their outputs: streams,
plain text, HTML if there is no plain text, errors. Not read: pictures, and attachments of cells.
The first heading is the title; the links of Markdown are links.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

from larmspider.extraction.documents import markdown
from larmspider.extraction.documents.reading import DocumentBuilder, keeping, urls_in, urls_in_value
from larmspider.extraction.documents.text_page import text_page
from larmspider.extraction.pages import html
from larmspider.extraction.pages.page_builder import MAX_TEXT
from larmspider.extraction.texts.charset import decode
from larmspider.items import Page

_JSON_STRING = re.compile(r'"([^"\\\n]*+(?:\\.[^"\\\n]*+)*+)"?')
"""Also matches an unclosed string; linear, and without memory for each character."""
_BEGINS = re.compile(
    r"(?:[\ufeff\x1e\s]{1,999}|//[^\n]{0,9999}\n|/\*(?:[^*]|\*(?!/)){0,9999}\*/"
    r"|\)\]\}'?,?|(?:while|for) ?\([1;]{1,2}\);|[A-Za-z_$][\w.$]{0,99}\()*+[{\[\"]"
)
_ESCAPE = re.compile(
    r"\\(?:u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|(.))",
    re.DOTALL,
)
_SPACES = {"n": "\n", "r": "\r", "t": "\t", "b": " ", "f": "\n"}
_NOTEBOOK = re.compile(r'"nbformat"\s*:\s*[34]\b')
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")


def extract(body: bytes, url: str, content_type: str | None) -> Page:
    text, charset = decode(body, content_type)
    if not _BEGINS.match(text):
        return text_page(text, charset, url, DocumentBuilder(), urls=urls_in(text))
    if (notebook := _notebook(text)) is not None:
        return _read_notebook(notebook, text, charset, url)
    shown = _without_escapes(text[:MAX_TEXT]) + text[MAX_TEXT:]
    return text_page(shown, charset, url, DocumentBuilder(), urls=_urls_in_json(text))


def _without_escapes(text: str) -> str:
    """``text`` with the escapes in its strings replaced by their characters. Backslashes outside
    of strings stay, as in a log of lines in brackets."""
    if "\\" not in text:
        return text
    return _JSON_STRING.sub(
        lambda one: _ESCAPE.sub(_unescaped, one[0]) if "\\" in one[1] else one[0], text
    )


def _unescaped(found: re.Match[str]) -> str:
    high, low, code, char = found.groups()
    if high:
        return (
            (chr(int(high, 16)) + chr(int(low, 16)))
            .encode("utf-16", "surrogatepass")
            .decode("utf-16")
        )
    if code:
        number = int(code, 16)
        return "\ufffd" if 0xD800 <= number < 0xE000 else chr(number)
    return _SPACES.get(char, char)


def _urls_in_json(text: str) -> Iterator[str]:
    """URLs in the strings, without their escapes (RFC 8259 7), and in text outside of strings."""
    for found in _JSON_STRING.finditer(text):
        if "://" in found[1] or ":\\/" in found[1]:
            try:
                yield from urls_in_value(json.loads(found[0], strict=False))
            except ValueError:
                yield from urls_in(found[1])
    yield from urls_in(_JSON_STRING.sub(" ", text))


def _notebook(text: str) -> dict[str, Any] | None:
    if not _NOTEBOOK.search(text):
        return None
    try:
        found = json.loads(text.removeprefix("\ufeff"))
    except (ValueError, RecursionError):
        return None
    is_notebook = isinstance(found, dict) and ("cells" in found or "worksheets" in found)
    return found if is_notebook else None


def _read_notebook(notebook: dict[str, Any], whole: str, charset: str, url: str) -> Page:
    builder = DocumentBuilder()
    builder.title = _joined(_dict(notebook.get("metadata")).get("title"))
    with keeping(builder, url):
        sheets = [notebook, *_dicts(notebook.get("worksheets"))]
        for cell in (cell for sheet in sheets for cell in _dicts(sheet.get("cells"))):
            source = _joined(cell.get("source")) or _joined(cell.get("input"))
            if cell.get("cell_type") == "heading":
                source = "# " + source
            builder.add(source)
            if cell.get("cell_type") in ("markdown", "heading"):
                markdown.add_links(source, builder)
            for output in _dicts(cell.get("outputs")):
                for text in _shown(output, url):
                    builder.add(text)
            builder.note()
        known = {link[0] for link in builder.links}
        for target in dict.fromkeys(_urls_in_json(whole)):
            if target not in known:
                builder.add_link(target)
    page = builder.page(url)
    page.charset = charset
    return page


def _shown(output: dict[str, Any], url: str) -> Iterable[str]:
    """The printed, drawn or raised output of a cell, as text."""
    data = _dict(output.get("data"))
    plain = _joined(output.get("text")) or _joined(data.get("text/plain"))
    yield plain
    if not plain or plain.startswith("<"):  # the name of an object
        for name in ("text/markdown", "text/latex"):
            yield _joined(data.get(name))
        if markup := _joined(data.get("text/html")) or _joined(output.get("html")):
            yield html.extract(
                markup.encode("utf-8", "replace"), url, "text/html; charset=utf-8"
            ).text
    if output.get("output_type") in ("error", "pyerr"):
        yield f"{_joined(output.get('ename'))}: {_joined(output.get('evalue'))}"
        yield _COLOURS.sub("", "\n".join(_strings(output.get("traceback"))))


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _dicts(value: Any) -> list[dict[str, Any]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _strings(value: Any) -> list[str]:
    return [one for one in value if isinstance(one, str)] if isinstance(value, list) else []


def _joined(value: Any) -> str:
    """A text of a notebook, which may be stored as a list of its lines."""
    return value if isinstance(value, str) else "".join(_strings(value))
