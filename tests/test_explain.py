"""larmspider/explain.py: what the stages say of one URL."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from scrapy.settings import Settings

from larmspider.crawl_dir import CrawlDir
from larmspider.explain import explain


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
