"""larmspider/explain.py: what the stages say of one URL."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from scrapy.settings import Settings

from larmspider.crawl_dir import CrawlDir
from larmspider.explain import explain
from tests.crawling import FAST, scrapy
from tests.servers.scripted import Reply, Route, ScriptedServer


@pytest.mark.parametrize("url", ["http://[::1]/", "http://[::1]:81/", "http://www.h/"])
def test_the_host_rules_that_apply_are_named(tmp_path: Path, url: str) -> None:
    """Of addresses too, whose colons are no port's."""
    (tmp_path / "crawl.json").write_text(json.dumps({"format": 1, "seeds": ["http://h/"]}))
    rules = tmp_path / "hosts.properties"
    rules.write_text("synonym([\\:\\:1])=h\nstartsWith(www.)=\n")
    settings = Settings({"LARM_HOST_RESOLVER_FILE": str(rules)})
    explanation = explain(url, settings, CrawlDir(tmp_path))
    assert len(explanation.host_rules) == 1
    assert (explanation.canonical or "").startswith("http://h")


FEWER_STORES = """
from larmspider.settings import *

for name in ("fetch_log.FetchLogPipeline", "link_log.LinkLogPipeline"):
    del ITEM_PIPELINES["larmspider.pipelines." + name]
"""


def test_the_frontier_is_asked_where_fetch_log_is_not_kept(
    scripted_server: Callable[..., ScriptedServer], tmp_path: Path
) -> None:
    """State, time and result of what was stored, failed or was refused; and of a redirect from
    one spelling of a page to another, where the last one counts."""
    html = {"Content-Type": "text/html"}
    links = "".join(f"<a href={path}>x</a>" for path in ("a", "no", "bad", "cut", "d/index.html"))
    routes: dict[str, Route] = {
        "/robots.txt": (200, {}, b"User-agent: *\nDisallow: /no\n"),
        "/": (200, html, links.encode()),
        "/a": (404, html, b"gone"),
        "/bad": (500, html, b"broken"),
        "/cut": Reply(body=b"x" * 5000),
        "/d/index.html": (301, {"Location": "/d/"}, b""),
        "/d/": (200, html, b"d"),
    }
    server = scripted_server(routes)
    (tmp_path / "fewer.py").write_text(FEWER_STORES)
    settings = FAST | {"LARM_RETRY_TIMES": "0", "DOWNLOAD_MAXSIZE": "4000"}
    options = [word for name, value in settings.items() for word in ("-s", f"{name}={value}")]
    arguments = ["crawl", "intranet", "-a", f"start={server.url()}", *options]
    ran = scrapy(*arguments, cwd=tmp_path, settings_module="fewer")
    assert ran.status == 0, ran.err
    assert not (tmp_path / "crawl" / "fetch.log").exists()
    assert re.search(r"^failed    2 URLs \(http-500 1, too-big 1\)$", ran.out, re.MULTILINE)

    def explained(path: str, *options: str) -> str:
        arguments = ["explain", server.url(path), *options]
        ran = scrapy(*arguments, cwd=tmp_path, settings_module="fewer")
        assert ran.status == 0, ran.err
        return ran.out

    found = {path: json.loads(explained(path, "--json")) for path in (*routes, "/no", "/unknown")}
    results = {
        path: (facts["state"], (facts["fetched"] or {}).get("result"))
        for path, facts in found.items()
        if path != "/robots.txt"
    }
    assert results == {
        "/": ("stored", "200"),
        "/a": ("stored", "404"),
        "/no": ("refused", "robots"),
        "/bad": ("failed", "500"),
        "/cut": ("failed", "too-big"),
        "/d/index.html": ("stored", "200"),
        "/d/": ("stored", "200"),
        "/unknown": ("unknown", None),
    }
    assert re.fullmatch(r"20\d\d-\d\d-\d\dT.*Z", found["/a"]["fetched"]["time"])
    assert found["/a"]["first_referrer"] == server.url()
    text = explained("/cut")
    assert re.search(r"^fetched +20\S+Z +too-big$", text, re.MULTILINE)
    assert re.search(
        r"^visited +pass +met already; further links to it are not followed$", text, re.MULTILINE
    )
    assert re.search(r"^found on +not known$", text, re.MULTILINE)
