"""/mirrors: proposed lines are accepted by those who have the token."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

from larmspider.frontier.storage.records import FetchRecord, UrlState
from tests.support.stored_crawl import StoredCrawl
from tests.support.web.serving import TOKEN, Got, Served, request


def visits() -> Iterator[FetchRecord]:
    for host, pages in (("a.example", 30), ("b.example", 25)):
        for n in range(pages):
            url, digest = f"http://{host}/{n}", f"{n:>28}".encode()
            yield FetchRecord(UrlState.STORED, 1.0, status=200, url=url, digest=digest)


def test_a_proposed_line_is_accepted_with_the_token(
    tmp_path: Path, served: Callable[..., Served]
) -> None:
    crawl = StoredCrawl(tmp_path / "crawl", refresh=False)
    crawl.end()
    crawl.make_frontier([], visits())
    (file := tmp_path / "<b>.properties").touch()
    crawl.ran_with(LARM_HOST_RESOLVER_FILE=file)
    site = served(crawl.path)
    signed = {"Authorization": f"Bearer {TOKEN}"}

    def accept(host: str, headers: dict[str, str] = signed) -> Got:
        return request(f"{site.url}/control/accept-mirror", "POST", headers, {"host": host})

    page = site.get("/mirrors").text
    assert "synonym(b.example)=a.example" in page
    assert "&lt;b&gt;.properties" not in page, "where files lie is the operator's"
    assert "accept-mirror" not in page, "who is not signed in sees it alone"
    page = request(f"{site.url}/mirrors", headers=signed).text
    assert "&lt;b&gt;.properties" in page
    assert 'name="host" value="b.example"' in page
    assert accept("b.example", {}).status == 401
    unknown = accept("<i>")
    assert unknown.status == 409
    assert file.read_text() == ""
    for _ in range(2):  # the second one finds it there
        done = accept("b.example")
        assert json.loads(done.body)["done"].startswith("synonym(b.example)=a.example is in ")
    assert file.read_text() == "synonym(b.example)=a.example\n"
    page = request(f"{site.url}/mirrors", headers=signed).text
    assert '<span class="tag good">accepted</span>' in page
    assert "accept-mirror" not in page
