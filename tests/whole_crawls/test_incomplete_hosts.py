"""Hosts of which something cannot be had: the rest is crawled, and the crawl says what is missing."""

import pytest

from tests.support.crawling import crawl_of_cases, scrapy

pytestmark = pytest.mark.acceptance


def links(*targets):
    return "".join(f"<a href='{target}'>to {target}</a> " for target in targets)


def failing(request):
    return 500, {}, b"<p>Internal error"


BROKEN = [f"/broken/{number}" for number in range(12)]
GOOD = [f"/page/{number}" for number in range(8)]
CASES = {
    "broken-view": {
        "/": links(*BROKEN, *GOOD),
        **dict.fromkeys(BROKEN, failing),
        **{path: f"<title>{path}</title><p>This is {path}" for path in GOOD},
    },
}


@pytest.fixture(scope="module")
def crawled(tmp_path_factory):
    folder = tmp_path_factory.mktemp("incomplete")
    with crawl_of_cases(CASES, folder, LARM_TRAPS="learn") as done:
        yield done


def test_a_host_with_a_broken_view_is_crawled_whole(crawled):
    server = crawled.servers["broken-view"]
    assert crawled.ran.status == 0, crawled.ran.err
    assert {request.path for request in server.log} >= {*BROKEN, *GOOD}
    assert "left alone" not in crawled.ran.err


def test_hosts_and_explain_name_a_broken_view(crawled):
    server = crawled.servers["broken-view"]
    crawl = ("-s", f"LARM_DIR={crawled.folder / 'crawl'}")
    hosts = scrapy("hosts", *crawl, cwd=crawled.folder)
    words = "failed with 500; the rest of the host works"
    assert "view /broken/*: " in hosts.out and words in hosts.out, hosts
    explained = scrapy("explain", *crawl, server.url("/broken/7"), cwd=crawled.folder)
    assert words in explained.out, explained
