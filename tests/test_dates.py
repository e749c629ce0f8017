"""Dates in all forms, on machines of other time zones."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from larmspider.dates import http_time
from larmspider.extraction.documents.reading import date_of
from larmspider.extraction.pages.sitemap import time_of
from larmspider.fetch.errors import retry_after
from larmspider.index.schema import last_modified
from larmspider.learned.revisits.validators import modified_at

MOMENT = 784_111_777.0
FORMS = [
    "Sun, 06 Nov 1994 08:49:37 GMT",
    "Sunday, 06-Nov-94 08:49:37 GMT",
    "Sun Nov  6 08:49:37 1994",
    "Sun, 06 Nov 1994 08:49:37 UTC",
    "Sun, 06 Nov 1994 08:49:37 -0000",
    "Sun, 06 Nov 1994 08:49:37",
    "Sun, 06 Nov 1994 09:49:37 +0100",
    "6 Nov 1994 03:49:37 EST",
]


@pytest.fixture(autouse=True, params=["UTC", "America/New_York", "Asia/Kolkata"])
def zone(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", request.param)
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.parametrize("text", FORMS)
def test_a_date_is_the_same_moment_in_every_form_and_time_zone(text: str) -> None:
    """For each header, for feeds and for documents."""
    assert http_time(text) == MOMENT
    assert retry_after(text.encode(), MOMENT - 120) == 120
    assert modified_at(text, "", MOMENT + 3600) == MOMENT
    found = last_modified(text, MOMENT + 3600)
    assert found is not None
    assert found.timestamp() == MOMENT
    assert time_of(text) == MOMENT
    assert date_of(text) == MOMENT


@pytest.mark.parametrize(
    "text", ["", "0", "-1", "120s", "never", "Sun, 66 Nov 1994 08:49:37 GMT", "Sun Nov 6 1994"]
)
def test_other_texts_are_no_dates(text: str) -> None:
    assert http_time(text) is None
    assert retry_after(text.encode() or b"-", MOMENT) in (None, 0.0)


def test_a_leap_second_is_read() -> None:
    assert http_time("Sat, 31 Dec 2016 23:59:60 GMT") == http_time("Sat Dec 31 23:59:59 2016")
