"""Broken HTTP and endless replies, one host each, in one crawl."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.hostile.cases import GROUPS, HOSTS, LIMITS, LINKS, NOT_ASKED, ROBOTS, TRUSTED, WIRE
from tests.hostile.replies import EXCEPTIONS, curl_cases, curl_replies, nutch_cases
from tests.support.hostile.healthy import HEALTHY, is_complete
from tests.support.hostile.running import MORE_MB, crawl, differences
from tests.support.hostile.server import HostileServer
from tests.support.servers import own_names


def test_each_case_ends_as_promised(tmp_path: Path, idle_mb: float) -> None:
    """By fetch.log, store.log and links.log."""
    with HostileServer([HEALTHY, *LIMITS, *WIRE]) as server:
        crawled = crawl(server.seeds(), tmp_path)
    assert not (wrong := differences(server, crawled.found)), wrong
    assert is_complete(server, crawled.found)
    assert crawled.peak_mb < idle_mb + MORE_MB


# robots.txt files that are none, have no end, or cannot be obeyed.


def test_each_robots_txt_is_read_as_promised(tmp_path: Path, idle_mb: float) -> None:
    """RFC 9309: what cannot be read allows everything, what cannot be had allows nothing."""
    with HostileServer([HEALTHY, *ROBOTS]) as server:
        crawled = crawl(
            server.seeds(), tmp_path, ROBOTSTXT_OBEY="1", LARM_CRAWL_DELAY_MAX_SECS="0.3"
        )
    assert not (wrong := differences(server, crawled.found)), wrong
    assert is_complete(server, crawled.found)
    assert crawled.peak_mb < idle_mb + MORE_MB


# 241 raw replies, good and bad, that the test suites of curl and Nutch hold.


def test_each_reply_is_read_or_fails_as_it_should(
    suites: Path, tmp_path: Path, idle_mb: float
) -> None:
    """A page with the status and body that the bytes hold, or a failure of the right kind."""
    cases = [*curl_cases(suites), *nutch_cases(suites)]
    assert len(cases) == 241
    with HostileServer([HEALTHY, *cases]) as server:
        crawled = crawl(server.seeds(), tmp_path, LARM_MAX_REDIRECTS="0")
    assert not (wrong := differences(server, crawled.found)), wrong
    assert crawled.peak_mb < idle_mb + MORE_MB


def test_exceptions_are_of_replies_that_exist(suites: Path) -> None:
    """The table names none that is gone."""
    assert EXCEPTIONS.keys() <= {case["test"] for case in curl_replies(suites)}


# docs/internals/hostile-web.md has each case under its heading, with its outcome.


DOCS = Path(__file__).parents[2] / "docs" / "internals" / "hostile-web.md"


def documented(heading: str) -> dict[str, str]:
    """Case -> outcome, of the table under a heading."""
    section = DOCS.read_text("utf-8").partition(f"## {heading}\n")[2].partition("\n## ")[0]
    found = {}
    for row in re.findall(r"^\| (`.*)\|$", section, re.MULTILINE):
        cells = row.split(" | ")
        for name in re.findall(r"`([^`]+)`", cells[0]):
            assert name not in found, f"{name} stands there twice"
            found[name] = cells[1]
    return found


@pytest.mark.parametrize("heading", GROUPS)
def test_each_case_has_its_row(heading: str) -> None:
    """The same names, and the outcome is one that the row names."""
    rows = documented(heading)
    cases = {case.name: case.outcome for case in GROUPS[heading]}
    assert rows.keys() == cases.keys()
    for name, outcome in cases.items():
        wanted = "not asked" if outcome == NOT_ASKED else f"`{outcome.result}`"
        assert wanted in rows[name], name


# A server of names that says nothing about many names: a real one, in namespaces of its own.


@pytest.mark.acceptance
def test_names_of_others_are_looked_up_and_their_pages_fetched_meanwhile() -> None:
    """60 silent names stand before 30 good ones, which are there before any of the 60 has failed;
    and the crawl ends when it has to stop."""
    ran = own_names.run("tests.support.hostile.silent_names", "60", "30", "15", timeout=120)
    if ran.stderr.startswith("unshare:"):
        pytest.skip(f"namespaces cannot be had here: {ran.stderr.strip()}")
    assert ran.returncode == 0, ran.stderr
    found = json.loads(ran.stdout)
    assert found["fetched"] == 30, found
    assert found["failed"] == 0, found["log"]
    assert found["status"] == 0
    assert found["end"] < 10.0


# Links and redirects that lead astray, and hosts with wrong names or certificates.


def test_each_link_ends_as_promised(
    tmp_path: Path, idle_mb: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same table of outcomes, and hosts out of scope are not asked."""
    bundle = tmp_path / "trusted.pem"
    monkeypatch.setenv("SSL_CERT_FILE", str(bundle))
    with HostileServer([HEALTHY, *LINKS, *HOSTS]) as server:
        bundle.write_bytes(b"".join(TRUSTED))
        crawled = crawl(server.seeds(), tmp_path)
    assert not (wrong := differences(server, crawled.found)), wrong
    assert is_complete(server, crawled.found)
    assert crawled.peak_mb < idle_mb + MORE_MB
