"""Who may ask for what."""

from __future__ import annotations

import pytest

from larmspider.errors import ConfigError
from larmspider.web.auth import Guard, checked_token, found_token, stored_token

TOKEN = "0123456789abcdef"


@pytest.mark.parametrize(
    "host, accepted",
    [
        ("127.0.0.1:6080", True), ("127.0.0.1", True), ("localhost:1", True), ("LOCALHOST", True),
        ("[::1]:6080", True), ("192.0.2.7:6080", True), ("wiki.example", True),
        ("Wiki.Example.:6080", True), ("evil.example:6080", False), ("", False), ("[::1", False),
        ("127.0.0.1.evil.example", False), ("localhost.evil.example", False),
        ("a@localhost", False),
        ("localhost@evil.example", False), ("127.1", False), ("0x7f.1", False), ("::1", False),
        ("a@127.0.0.1", False), ("@127.0.0.1", False), ("127.0.0.1/x", False),
        ("127.0.0.1:x", False), ("127.0.0.1:999999", False), ("127.0.0.1 ", False),
        ("a@[::1]", False), ("127.0.0.1?", False), ("127.0.0.1\\", False), ("[]", False),
    ],
)  # fmt: skip
def test_hosts(host: str, accepted: bool) -> None:
    """Addresses, localhost and the names of LARM_WEB_HOSTS; a name that leads here is none."""
    assert Guard(TOKEN, ["wiki.example"]).accepts_host(host) is accepted


def test_what_a_browser_gets_is_not_the_token() -> None:
    """The cookie and the forms' word are made from it; each token has a cookie name of its own."""
    guard, other = Guard(TOKEN), Guard(TOKEN + "x")
    assert len({guard.session, guard.csrf, guard.cookie, TOKEN}) == 4
    assert guard.cookie != other.cookie
    assert guard.signed_in({guard.cookie: guard.session})
    assert guard.signed_in({}, f"Bearer {TOKEN}")
    assert guard.signed_in({}, f"bearer  {TOKEN} ")
    for cookies, authorization in (
        ({}, ""), ({guard.cookie: ""}, ""), ({guard.cookie: TOKEN}, ""), ({guard.cookie: "ü"}, ""),
        ({other.cookie: other.session}, ""), ({}, TOKEN), ({}, f"Basic {TOKEN}"), ({}, "Bearer "),
    ):  # fmt: skip
        assert not guard.signed_in(cookies, authorization)


@pytest.mark.parametrize("token", ["", "short", "x" * 15, "0123456789 abcdef", "ü" * 16, "\t" * 20])
def test_poor_tokens_are_refused_unseen(token: str) -> None:
    """The message does not show it."""
    with pytest.raises(ConfigError) as refused:
        checked_token(token)
    assert not token.strip() or token not in str(refused.value)


def test_the_token_of_a_directory_is_made_once(tmp_path) -> None:  # type: ignore[no-untyped-def]
    """For its owner alone, and anew where the file holds none."""
    assert found_token(tmp_path) == ""
    token = stored_token(tmp_path)
    assert stored_token(tmp_path) == token == found_token(tmp_path)
    assert (tmp_path / "web.token").stat().st_mode & 0o777 == 0o600
    (tmp_path / "web.token").write_text("x\n")
    assert stored_token(tmp_path) not in ("x", token)
