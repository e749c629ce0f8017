"""Texts of others: without secrets, in one line, printable and not too long."""

from __future__ import annotations

import logging
import time
from base64 import b64encode
from pathlib import Path
from urllib.parse import quote, quote_plus

import pytest
from scrapy.settings import Settings

from larmspider import redaction
from larmspider.extensions.tuning import _VisibleFormatter
from larmspider.pipelines.outbox.outbox import tried
from larmspider.pipelines.outbox.receiver import AwayError, BatchError, RefusedError
from larmspider.pipelines.outbox.sender import Sender, StoppedError, dead_log
from larmspider.pipelines.outbox.spool import FOLDER, Cursor
from larmspider.redaction import (
    keep_secret,
    keep_secrets_of,
    keep_secrets_of_environment,
    told,
)
from tests.support.spooled import ShelfReceiver, page, spooled

WORD = "c4nary/wörd +1"


@pytest.fixture(autouse=True)
def nothing_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redaction, "_secrets", set())
    monkeypatch.setattr(redaction, "_logged", set())
    monkeypatch.setattr(redaction, "_patterns", [None, None])


@pytest.mark.parametrize(
    "form",
    [
        WORD, quote(WORD), quote(WORD, safe=""), quote_plus(WORD), quote(WORD).lower(),
        b64encode(WORD.encode()).decode(), b64encode(f"joe:{WORD}".encode()).decode(),
        b64encode(f"x{WORD}y".encode()).decode(), WORD.upper(), repr(WORD),
        WORD[:5] + "\n" + WORD[5:],
        WORD.replace("d", "\u200bd"), f"\x1b[31m{WORD}", WORD.encode().hex(),
    ],
)  # fmt: skip
def test_a_secret_is_masked_in_each_form(form: str) -> None:
    keep_secrets_of("LARM_SQL_URL", f"postgresql://joe:{quote(WORD, safe='')}@db/x")
    shown = told(f"before {form} after")
    assert "***" in shown
    for part in ("c4nary", "wörd", "w%C3%B6rd", b64encode(WORD.encode()).decode()[4:10]):
        assert part.lower() not in shown.lower()
    assert shown.startswith("before ")
    assert shown.isprintable()


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("redis://:pass@h:1/0 is away", "redis://***@h:1/0 is away"),
        ("kafka://u:pa@ss/w@one:9092", "kafka://***@one:9092"),
        ("token@h http://h/a@b", "token@h http://h/a@b"),
        ("Error 401: Authorization: Basic am9lOnB3", "Error 401: Authorization: Basic ***"),
        ("'authorization': 'Bearer abc.def-123'", "'authorization': 'Bearer ***'"),
        ("bad request: Basic am9lOnB3MTIz", "bad request: Basic ***"),
        ("Basic authentication is needed", "Basic authentication is needed"),
        ("conninfo host=h password='a b' user=u", "conninfo host=h password=*** user=u"),
        ("sasl.password=x;y=1", "sasl.password=***;y=1"),
        ("GET /x?token=abc&a=1 X-Amz-Signature=beef", "GET /x?token=***&a=1 X-Amz-Signature=***"),
        ('{"password": "a\\"b", "user": "u"}', '{"password": ***, "user": "u"}'),
        ("Cookie: sid=1234", "Cookie: ***"),
        ("password authentication failed for user", "password authentication failed for user"),
        ("a\r\n\x1b]0;x\x07b\u202ec", "a \N{REPLACEMENT CHARACTER}]0;x\N{REPLACEMENT CHARACTER}bc"),
        ("", ""),
    ],
)
def test_what_looks_like_a_secret_is_masked(said: str, shown: str) -> None:
    assert told(said) == shown


def test_a_short_secret_is_masked_where_it_is_a_word() -> None:
    keep_secret("pw")
    assert told("pw is wrong: 'pw' pwd") == "*** is wrong: '***' pwd"


@pytest.mark.parametrize("unit", ["x", "a.", "a://", "password", '"\\', "basic ", "c4nary ", "é\n"])
def test_a_flood_is_cut_in_time(unit: str) -> None:
    """Also where the secret lies at the end of what is shown."""
    keep_secret("c4nary-word")
    begun = time.monotonic()
    assert len(told(unit * 1_000_000)) <= 300
    assert time.monotonic() < begun + 3
    for length in range(270, 310):
        assert "c4n" not in told("x" * length + " c4nary-word" * 300)


@pytest.mark.parametrize("kind", [AwayError, RefusedError, BatchError])
def test_errors_of_receivers_are_redacted(kind: type[Exception]) -> None:
    keep_secret("c4nary-word")
    assert str(kind("a\nc4nary-word b")) == "a *** b"


def test_what_is_kept_of_an_error_is_redacted(tmp_path: Path) -> None:
    """The cursor, which commands and pages show, and the log of dead letters."""
    keep_secret("c4nary-word")
    end = spooled(tmp_path, page("a")).offset
    receiver = ShelfReceiver()
    faults = [ValueError("x://u:c4nary-word@h"), BatchError("c4nary-word\tis too long")]

    def answer(_: object) -> None:
        raise faults.pop(0)

    receiver.answer = answer  # type: ignore[assignment]
    with pytest.raises(StoppedError):
        Sender(receiver, tmp_path / FOLDER, lambda secs: not secs).send_up_to(end)
    cursor = Cursor.read(tmp_path / FOLDER, "ShelfReceiver")
    assert cursor is not None
    assert cursor.trouble == "ValueError: x://***@h"
    Sender(receiver, tmp_path / FOLDER, lambda _: True).send_up_to(end)
    assert "*** is too long" in (tmp_path / FOLDER / dead_log("ShelfReceiver")).read_text()
    old = Cursor(trouble="of before: c4nary-word")
    old.write(tmp_path / FOLDER, "ShelfReceiver")
    found = Cursor.read(tmp_path / FOLDER, "ShelfReceiver")
    assert found is not None
    assert found.trouble == "of before: ***"


def test_the_log_masks_what_is_known(caplog: pytest.LogCaptureFixture) -> None:
    """In a traceback, too."""
    keep_secret("c4nary-word", "pw")
    formatter = _VisibleFormatter(logging.Formatter("%(message)s"))
    try:
        raise ValueError("c4nary-word")
    except ValueError:
        logging.getLogger("x").exception("pw: %s", "redis://c4nary-word")
    text = formatter.format(caplog.records[0])
    assert "c4nary" not in text
    assert text.startswith("pw: redis://***\nTraceback")


class Repeats(ShelfReceiver):
    """A library that says what it was given."""

    settings = ("SHELF_URL",)

    @classmethod
    def from_settings(cls, settings: Settings) -> Repeats:
        found = cls()
        found.url = settings["SHELF_URL"]  # type: ignore[attr-defined]
        return found

    def connect(self) -> None:
        raise ValueError(f"cannot connect to {self.url!r}: c4nary-word")  # type: ignore[attr-defined]


def test_the_start_of_a_crawl_shows_no_password() -> None:
    found = tried(Repeats, Settings({"SHELF_URL": "shelf://joe:c4nary-word@h/x"}))
    assert found == ("refused", "ValueError: cannot connect to 'shelf://***@h/x': ***")


def test_the_working_directory_is_no_password() -> None:
    """The shell has it in PWD, and paths of files in variables of such names."""
    places = {"PWD": "/srv/intranet", "OLDPWD": "/srv/before", "DB_PASSWORD_FILE": "/run/db"}
    keep_secrets_of_environment({**places, "DB_PASSWORD": "c4nary-word"})
    for place in places.values():
        assert told(f"{place}/crawl cannot be read") == f"{place}/crawl cannot be read"
    assert "c4nary-word" not in told("it is c4nary-word")
