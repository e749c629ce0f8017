"""JSON without its escapes, lines of JSON, notebooks."""

from __future__ import annotations

import json
import time

import pytest

from larmspider.extraction.documents import text
from larmspider.extraction.formats import media_type
from larmspider.items import Page


def read(body: str | bytes) -> Page:
    return text.extract(body.encode() if isinstance(body, str) else body, "http://h/x", None)


@pytest.mark.parametrize(
    ("source", "shown"),
    [
        ('{"a":"one\\ntwo\\tthree"}', '{"a":"one two three"}'),
        ('["\\u00fcb \\ud83d\\ude00 \\ud83d! \\u65E5"]', '["üb 😀 \ufffd! 日"]'),
        ('["a\\/b \\\\c \\"q\\""]', '["a/b \\c "q""]'),
        ('{"a":"Zeile\\u00fc"}\n{"a":"zwei"}\n', '{"a":"Zeileü"} {"a":"zwei"}'),
        ('["open\\u12', '["openu12'),
        ("// of a\n/* and b */ {'a': \"\\u00fc\"}", "// of a /* and b */ {'a': \"ü\"}"),
        (')]}\',\n["\\u00fc"]', ')]}\', ["ü"]'),
        ('a.call({"b":"\\u00fc"})', 'a.call({"b":"ü"})'),
        ("plain \\n text", "plain \\n text"),
        ("[info] C:\\new\\temp", "[info] C:\\new\\temp"),
    ],
)
def test_escapes_of_json_are_undone(source: str, shown: str) -> None:
    assert read(source).text == shown


@pytest.mark.parametrize("name", ["a.jsonl", "a.ndjson", "a.geojson", "a.ipynb"])
def test_json_is_known_by_its_name(name: str) -> None:
    for said in ("", "text/plain", "application/octet-stream"):
        assert media_type(said, b'{"a":1}\n', f"/{name}") == "application/json"


CELLS = [
    {
        "cell_type": "markdown",
        "source": ["# Head *line*\n", "[way](http://h/a)"],
        "attachments": {"a.png": {"image/png": "QUFB"}},
    },
    {
        "cell_type": "code",
        "source": "print('x')",
        "outputs": [
            {"output_type": "stream", "text": ["out\n", "put"]},
            {"data": {"image/png": "QkJC", "text/plain": ["<Figure>"], "text/html": "<b>bold</b>"}},
            {"data": {"text/plain": "42", "text/html": "<i>42</i>"}},
            {
                "output_type": "error",
                "ename": "E",
                "evalue": "boom",
                "traceback": ["\x1b[0;31mTr\x1b[0m"],
            },
        ],
    },
]


def test_a_notebook_has_its_cells_and_their_outputs() -> None:
    page = read(json.dumps({"nbformat": 4, "metadata": {}, "cells": CELLS}))
    assert page.title == "Head *line*"
    assert page.text == (
        "# Head *line* [way](http://h/a) print('x') out put <Figure> bold 42 E: boom Tr"
    )
    assert [(link.url, link.anchor) for link in page.links] == [("http://h/a", "way")]


def test_an_old_notebook_has_sheets() -> None:
    cell = {"cell_type": "code", "input": ["a = 1"], "outputs": [{"text": "old", "png": "QUFB"}]}
    sheets = [{"cells": [{"cell_type": "heading", "source": "Top"}, cell]}]
    page = read(json.dumps({"nbformat": 3, "worksheets": sheets}))
    assert (page.title, page.text) == ("Top", "# Top a = 1 old")


@pytest.mark.parametrize(
    "source",
    [
        '{"nbformat": 4, "cells": 7}',
        '{"nbformat": 4, "cells": [7, {"source": {}, "outputs": [null]}]}',
        '{"nbformat": 4, "cells": [',
        '{"nbformat": 4, "a":' + "[" * 100_000,
        '["\\"nbformat\\": 4"]',
        '["' + "\\ud83d" * 100_000,
    ],
)
def test_what_only_looks_like_a_notebook_is_read(source: str) -> None:
    before = time.process_time()
    assert read(source).unread == ""
    assert time.process_time() - before < 2
