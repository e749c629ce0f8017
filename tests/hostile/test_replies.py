"""241 raw replies, good and bad, that the test suites of curl and Nutch hold."""

from __future__ import annotations

from pathlib import Path

from tests.hostile.replies import EXCEPTIONS, curl_cases, curl_replies, nutch_cases
from tests.support.hostile.healthy import HEALTHY
from tests.support.hostile.running import MORE_MB, crawl, differences
from tests.support.hostile.server import HostileServer


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
