"""scrapy export passages: sections with URL and rights."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from larmspider import open_crawl
from larmspider.access.lists import POSIX, AccessList
from larmspider.access.rights import Rights
from larmspider.access.table import AccessWriter
from larmspider.errors import ConfigError
from larmspider.items import Page
from larmspider.plugins.export.export import export
from larmspider.plugins.export.passages import CHARS
from tests.support.stored_crawl import StoredCrawl, restrict

BODY = """<html lang=en><title>Pump guide</title><h1>Pump guide</h1><p>All pumps.
<ul><li>Open.<li>Close.</ul><h2 id=oil>Oil</h2><pre>oil
  5</pre><h2 id=water>Water</h2><p>"""
OPEN, HR, FILE = "http://wiki/", "http://hr/", "file:///srv/a.txt"


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    folder = tmp_path_factory.mktemp("passages") / "guide"
    crawl = StoredCrawl(folder, refresh=False)
    long = "Water flows down. " * 600
    for url, mime, body in (
        (OPEN, "text/html", BODY + long), (HR, "text/plain", "Salaries."),
        (FILE, "text/plain", "Only by rights."),
    ):  # fmt: skip
        crawl.store(url, Page(url, url, exact=url, mime=mime, body=body.encode(), text="x"))
    crawl.end()
    restrict(folder, "http://hr")
    lists = AccessWriter(folder / "index")
    posix = AccessList(POSIX, (("owner", 1007, 4), ("other", 0, 0)))
    lists.give(HR, Rights(AccessList.simple(["group:hr", "user:anna"])))
    lists.give(FILE, Rights(posix, above=[("/srv", AccessList(POSIX, (("other", 0, 1),)))]))
    lists.flush()
    out = folder.parent / "passages.jsonl"
    with open_crawl(folder) as opened:
        done = export(opened, "passages", out)
    found = [json.loads(line) for line in out.read_text().splitlines()]
    assert done.rows == len(found)
    return found


def test_sections_are_passages(rows: list[dict[str, Any]]) -> None:
    """With the URL that leads there; a long one in pieces."""
    found = [one for one in rows if one["url"].partition("#")[0] == OPEN]
    assert [(one["url"], one["heading"]) for one in found[:3]] == [
        (OPEN, "Pump guide"), (f"{OPEN}#oil", "Oil"), (f"{OPEN}#water", "Water"),
    ]  # fmt: skip
    assert found[0]["text"] == "# Pump guide\n\nAll pumps.\n\n- Open.\n- Close."
    assert found[1]["text"] == "## Oil\n\n```\noil\n  5\n```"
    assert len(found) == 5
    assert max(len(one["text"]) for one in found) <= CHARS
    assert sum(one["text"].count("flows") for one in found) == 600
    assert {(one["title"], one["language"], one["collection"]) for one in found} == {
        ("Pump guide", "en", "guide")
    }
    assert {(one["restricted"], one["access"], one["lists"]) for one in found} == {
        (False, None, None)
    }


def test_rights_of_passages(rows: list[dict[str, Any]]) -> None:
    """A simple list gives its principals. A file gives its lists, and no principals."""
    by_url = {one["url"]: one for one in rows}
    hr, file = by_url[HR], by_url[FILE]
    assert (hr["restricted"], hr["access"]) == (True, ["group:hr", "user:anna"])
    assert (file["restricted"], file["access"]) == (False, [])
    assert file["lists"] == [
        {"kind": "posix", "entries": [["owner", 1007, 4], ["other", 0, 0]]},
        {"kind": "posix", "entries": [["other", 0, 1]]},
    ]


def test_passages_are_json_lines(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"ends in one of \.jsonl, for passages"):
        export(None, "passages", tmp_path / "a.csv")  # type: ignore[arg-type]
