"""A server of names that says nothing about many names: a real one, in namespaces of its own."""

from __future__ import annotations

import json

import pytest

from tests.support.servers import own_names


def test_names_of_others_are_looked_up_and_their_pages_fetched_meanwhile() -> None:
    """60 silent names stand before 30 good ones, which are there before any of the 60 has failed;
    and the crawl ends when it is told to."""
    ran = own_names.run("tests.support.hostile.silent_names", "60", "30", "15", timeout=120)
    if ran.stderr.startswith("unshare:"):
        pytest.skip(f"namespaces cannot be had here: {ran.stderr.strip()}")
    assert ran.returncode == 0, ran.stderr
    found = json.loads(ran.stdout)
    assert found["fetched"] == 30, found
    assert found["failed"] == 0, found["log"]
    assert found["status"] == 0
    assert found["end"] < 10.0
