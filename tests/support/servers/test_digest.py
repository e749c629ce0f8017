"""The Digest of the tests is that of RFC 7616."""

from __future__ import annotations

import pytest

from tests.support.servers.digest import DigestGuard
from tests.support.servers.scripted import Request

NONCE = "7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v"
CNONCE = "f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ"
RESPONSES = {
    "MD5": "8ca523f5e9506fed4657c9700eebdbec",
    "SHA-256": "753927fa0e85d155564e2e272a28d1802ca10daf4496794697cf8db5856cb6c1",
}


def ask(guard: DigestGuard, **changed: str) -> int:
    """Status of the request of the RFC's example, 3.9.1."""
    sent = {
        "username": "Mufasa",
        "realm": "http-auth@example.org",
        "uri": "/dir/index.html",
        "nonce": NONCE,
        "cnonce": CNONCE,
        "response": RESPONSES[guard.algorithm],
    } | changed
    value = ", ".join(f'{name}="{text}"' for name, text in sent.items()) + ", nc=00000001, qop=auth"
    request = Request(0.0, "GET", "/dir/index.html", {"authorization": f"Digest {value}"})
    return guard.protect(b"inside")(request).status


@pytest.mark.parametrize("algorithm", RESPONSES)
def test_takes_the_example_of_the_rfc(algorithm: str) -> None:
    """Once: a nonce count that was seen is refused, and so is anything that differs."""
    guard = DigestGuard("Mufasa", "Circle of Life", algorithm)
    guard.realm = "http-auth@example.org"
    guard._counts[NONCE] = 0
    assert ask(guard, nonce="another") == 401
    assert ask(guard) == 200
    assert ask(guard) == 401
    for name in ("username", "realm", "uri", "cnonce", "response"):
        guard._counts[NONCE] = 0
        assert ask(guard, **{name: "another"}) == 401, name
