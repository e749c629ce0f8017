"""/traps: classes are accepted and rejected by those who have the token."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from tests.reports.test_traps import EDIT, walk_in
from tests.support.stored_crawl import StoredCrawl
from tests.support.web.serving import TOKEN, Got, Served, request


def test_a_class_is_accepted_or_rejected_with_the_token(
    tmp_path: Path, served: Callable[..., Served]
) -> None:
    crawl = StoredCrawl(tmp_path / "crawl", refresh=False)
    crawl.end()
    (file := tmp_path / "<b>.txt").write_text("# ours\n")
    crawl.ran_with(LARM_KNOWN_PATHS_FILE=file)
    walk_in(crawl.path)
    site = served(crawl.path)
    signed = {"Authorization": f"Bearer {TOKEN}"}

    def act(name: str, trap: str, headers: dict[str, str] = signed) -> Got:
        return request(f"{site.url}/control/{name}", "POST", headers, {"name": trap})

    page = site.get("/traps").text
    assert "do=edit(?:[&amp;;]|$)" in page
    assert "&lt;b&gt;.txt" not in page, "where files lie is the operator's"
    assert "accept-trap" not in page, "who is not signed in sees it alone"
    page = request(f"{site.url}/traps", headers=signed).text
    assert "&lt;b&gt;.txt" in page
    assert "accept-trap" in page
    assert act("accept-trap", EDIT, {}).status == 401
    assert act("accept-trap", "<i>").status == 409
    assert file.read_text() == "# ours\n"
    for _ in range(2):  # the second one finds it there
        done = act("accept-trap", EDIT)
        assert json.loads(done.body)["done"].startswith(f"the rule of {EDIT} is in ")
    assert file.read_text().count("\nurl ") == 1
    assert '<span class="tag good">accepted</span>' in site.get("/traps").text
    assert act("reject-trap", EDIT).status == 200
    assert (crawl.path / "not-traps.txt").read_text() == f"{EDIT}\n"
