"""Digest authentication as a server checks it (RFC 7616, qop auth), on top of ScriptedServer.

    guard = DigestGuard("joe", "word", algorithm="SHA-256")
    with ScriptedServer({"/": guard.protect(b"inside")}) as server: ...
    guard.accepted, guard.challenged      # how often

Each request is checked for realm, nonce, URI, a nonce count that grows, and the response itself.
"""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Callable

from tests.support.servers.scripted import Reply, Request

_HASHES = {"MD5": hashlib.md5, "SHA-256": hashlib.sha256}
_PAIR = re.compile(r'(\w+)=(?:"((?:[^"\\]|\\.)*)"|([^\s,]+))')


class DigestGuard:
    """Knows one user. ``stale_after`` uses of a nonce it asks for another."""

    def __init__(
        self, user: str, password: str, algorithm: str = "SHA-256", stale_after: int = 1000
    ) -> None:
        self.realm = "the archive"
        self.user, self.password = user, password
        self.algorithm, self.stale_after = algorithm, stale_after
        self.accepted = self.challenged = 0
        self._counts: dict[str, int] = {}

    def protect(self, body: bytes) -> Callable[[Request], Reply]:
        """A route that gives ``body`` to the user alone."""

        def answer(request: Request) -> Reply:
            sent = request.headers.get("authorization", "")
            challenge = self.challenge(sent, request.method, request.target)
            if challenge:
                return Reply(401, {"WWW-Authenticate": challenge}, b"who are you?")
            return Reply(headers={"Content-Type": "text/html"}, body=body)

        return answer

    def challenge(self, sent: str, method: str, target: str) -> str:
        """What a server or a proxy asks for, "" where ``sent``, the value of (Proxy-)Authorization,
        is right."""
        answered = self._check(sent, method, target)
        if answered == "right":
            self.accepted += 1
            return ""
        self.challenged += 1
        nonce = secrets.token_urlsafe(12)
        self._counts[nonce] = 0
        stale = "true" if answered == "stale" else "false"
        return (
            f'Digest realm="{self.realm}", qop="auth", algorithm={self.algorithm},'
            f' nonce="{nonce}", stale={stale}'
        )

    def _check(self, value: str, method: str, target: str) -> str:
        """right, wrong, or stale: right, but with a nonce that has been used too often."""
        scheme, _, rest = value.partition(" ")
        sent = {name: quoted or bare for name, quoted, bare in _PAIR.findall(rest)}
        nonce = sent.get("nonce", "")
        if scheme.lower() != "digest" or nonce not in self._counts:
            return "wrong"
        count = int(sent.get("nc", "0"), 16)
        if count <= self._counts[nonce]:
            return "wrong"
        self._counts[nonce] = count
        a1 = self._hash(f"{self.user}:{self.realm}:{self.password}")
        a2 = self._hash(f"{method}:{target}")
        middle = (nonce, sent["nc"], sent["cnonce"], "auth")
        expected = self._hash(":".join((a1, *middle, a2)))
        right = (
            sent.get("username") == self.user
            and sent.get("realm") == self.realm
            and sent.get("uri") == target
            and sent.get("qop") == "auth"
            and secrets.compare_digest(sent.get("response", ""), expected)
        )
        if not right:
            return "wrong"
        return "right" if count <= self.stale_after else "stale"

    def _hash(self, text: str) -> str:
        return _HASHES[self.algorithm](text.encode()).hexdigest()
