"""Each symptom in docs/operations.md, "On a bad day", has a test that runs its command."""

from __future__ import annotations

import re
from typing import NamedTuple

import pytest

from tests.support.crawling import PROJECT


class Shown(NamedTuple):
    """``words``: what the test's file has of the command."""

    file: str
    test: str
    words: tuple[str, ...]


MENDED = Shown(
    "recovery/test_verify.py",
    "test_a_damaged_file_is_mended_and_the_crawl_made_as_it_was",
    ('"--repair"', "refresh=all"),
)
REBUILT = "workers/test_rebuild.py"
REBUILD = ('"--rebuild"', '"--complete"')
TESTS = {
    "power loss": Shown(
        "recovery/test_power_loss.py",
        "test_a_power_loss_loses_nothing_that_was_committed",
        ("scrapy(*arguments(server)",),
    ),
    "full disk": Shown(
        "recovery/test_failing_stores.py",
        "test_a_full_file_system_ends_the_crawl",
        ("crawl.run(None)",),
    ),
    "damaged file": MENDED,
    "lost index": MENDED,
    "lost frontier": MENDED,
    "Redis gone": Shown(REBUILT, "test_the_crawl_goes_on_from_what_the_directories_have", REBUILD),
    "a worker's disk": Shown(REBUILT, "test_pages_of_a_lost_disk_are_fetched_again", REBUILD),
    "receiver gone": Shown(
        "recovery/test_killed_outbox.py",
        "test_a_receiver_that_is_away_costs_disk_and_not_the_crawl",
        ('"--send"',),
    ),
    "receiver late": Shown(
        "recovery/test_filled_receivers.py",
        "test_a_late_receiver_has_what_an_early_one_has",
        ('"--fill"',),
    ),
    "restored": Shown(
        "recovery/test_filled_receivers.py",
        "test_a_receiver_that_was_restored_from_a_backup_loses_what_was_taken_out",
        ('"--fill"',),
    ),
    "clock wrong": Shown(
        "whole_crawls/test_refresh.py",
        "test_a_clock_that_was_set_back_keeps_no_page_from_its_visit",
        ('crawl.run("due"',),
    ),
}


def test_the_page_has_these_symptoms() -> None:
    page = (PROJECT / "docs/operations.md").read_text("utf-8")
    section = page.split("## On a bad day\n")[1].split("\n## ")[0]
    rows = re.findall(r"^\| (.*?) \| .*`|^\| (.*?) \| .*command again", section, re.MULTILINE)
    symptoms = [part for row in rows for part in re.split(r", or |, ", "".join(row))]
    assert symptoms == list(TESTS)


@pytest.mark.parametrize("symptom", TESTS)
def test_a_test_runs_the_command(symptom: str) -> None:
    shown = TESTS[symptom]
    text = (PROJECT / "tests" / shown.file).read_text("utf-8")
    assert f"def {shown.test}(" in text
    assert [word for word in shown.words if word not in text] == []
