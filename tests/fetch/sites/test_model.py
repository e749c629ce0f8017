"""larmspider/fetch/sites/model.py: a secret shows nowhere but where it is revealed."""

from __future__ import annotations

import copy
import json
import logging
import pickle
import traceback
from collections.abc import Callable

import pytest

from larmspider.fetch.sites.model import Secret

CANARY = "canary-7d1f"


@pytest.mark.parametrize(
    "show",
    [
        repr,
        str,
        lambda secret: f"{secret} {secret!r} {secret!s} {[secret]} { ({'x': secret}) }",
        lambda secret: "%s %r" % (secret, secret),  # noqa: UP031
        lambda secret: json.dumps({"x": secret}, default=str),
        lambda secret: str(vars(type(secret)).keys()),
    ],
)
def test_does_not_show(show: Callable[[Secret], str]) -> None:
    assert CANARY not in show(Secret(CANARY))


@pytest.mark.parametrize("give_away", [pickle.dumps, copy.deepcopy, json.dumps, "".join, len])
def test_cannot_be_taken_for_a_text(give_away: Callable[[Secret], object]) -> None:
    """What expects a str or stores objects fails, without the secret in its message."""
    with pytest.raises(TypeError) as caught:
        give_away(Secret(CANARY))
    assert CANARY not in "".join(traceback.format_exception(caught.value))


def test_is_revealed_on_purpose_and_compared_by_value() -> None:
    assert Secret(CANARY).reveal() == CANARY
    assert Secret(CANARY) == Secret(CANARY)
    assert Secret(CANARY) != Secret("other")
    assert Secret(CANARY) != CANARY
    assert len({Secret(CANARY), Secret(CANARY)}) == 1


def test_a_log_record_does_not_hold_it(caplog: pytest.LogCaptureFixture) -> None:
    logging.getLogger("test").warning("with %s and %r", Secret(CANARY), Secret(CANARY))
    assert CANARY not in caplog.text
