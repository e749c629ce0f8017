"""A provider that lies or is broken: a mock, as no real one can be made to do this."""

from __future__ import annotations

import asyncio
import base64
import hmac
import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import msgspec
import pytest
from joserfc import jwt
from joserfc.jwk import OctKey, RSAKey
from joserfc.jws import JWSRegistry

from larmspider.errors import HttpError
from larmspider.plugins.oidc.provider import LEEWAY_SECS, OidcProvider
from larmspider.server.config.sign_in_settings import Oidc

HERE = "http://search.example"
KEY = RSAKey.generate_key(2048, {"kid": "a", "use": "sig"})
OTHER = RSAKey.generate_key(2048, {"kid": "a", "use": "sig"})


class Liar:
    """Answers by path; each answer is a status and a value, or bytes."""

    def __init__(self, port: int) -> None:
        self.issuer = f"http://127.0.0.1:{port}"
        ends = ("authorization", "token", "userinfo", "end_session")
        self.answers: dict[str, tuple[int, Any]] = {
            "/.well-known/openid-configuration": (200, {
                "issuer": self.issuer, "jwks_uri": f"{self.issuer}/keys",
                **{f"{end}_endpoint": f"{self.issuer}/{end}" for end in ends},
            }),
            "/keys": (200, {"keys": [KEY.as_dict(private=False)]}),
            "/userinfo": (200, {"sub": "1"}),
        }  # fmt: skip
        self.asked: list[str] = []
        self.provider = OidcProvider(
            Oidc(issuer=self.issuer, client_id="me", name="Corp", groups_claim="groups"), "hidden"
        )

    def claims(self, **changed: Any) -> dict[str, Any]:
        now = int(time.time())
        return {
            "iss": self.issuer, "aud": "me", "sub": "1", "iat": now, "exp": now + 300,
            "preferred_username": "anna", "groups": ["hr"],
        } | changed  # fmt: skip

    def sign_in(self, token: Any = None, **changed: Any) -> Any:
        """``token`` makes an ID token of the claims; the good one without."""
        made = token or (lambda claims: signed(claims, KEY))

        async def run() -> Any:
            begun = await self.provider.begin(HERE, "/search")
            query = parse_qs(urlsplit(begun.url).query)
            claims = {"nonce": query["nonce"][0]} | self.claims(**changed)
            claims = {name: value for name, value in claims.items() if value is not None}
            self.answers["/token"] = (200, {"id_token": made(claims), "access_token": "at"})
            answer = {"state": query["state"][0], "code": "c"}
            return await self.provider.finish(answer, begun.cookie, HERE)

        return asyncio.run(run())


def signed(claims: dict[str, Any], key: Any, alg: str = "RS256", kid: str = "a") -> str:
    registry = JWSRegistry(algorithms=[alg])
    registry.max_payload_length = 10_000_000
    return jwt.encode({"alg": alg, "kid": kid}, claims, key, registry=registry)


@pytest.fixture
def liar() -> Iterator[Liar]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path = self.path.partition("?")[0]
            running.asked.append(path)
            status, value = running.answers.get(path, (404, {}))
            body = value if isinstance(value, bytes) else json.dumps(value).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.do_GET()

        def log_message(self, *arguments: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        running = Liar(server.server_port)
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield running
        server.shutdown()
        thread.join()


def test_a_good_token(liar: Liar) -> None:
    person = liar.sign_in()
    assert (person.name, person.target) == ("anna", "/search")
    assert person.principals == {"user:anna", "group:hr"}
    assert liar.sign_in(groups=None).principals == {"user:anna"}
    assert liar.sign_in(aud=["me", "other"], azp="me").name == "anna"
    assert liar.sign_in(iat=int(time.time()) + LEEWAY_SECS - 5).name == "anna"


NOW = int(time.time())


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"iss": "https://evil.example"}, "another issuer"),
        ({"aud": "other"}, "another application"),
        ({"aud": ["me", "other"], "azp": "other"}, "another application"),
        ({"aud": None}, "another application"),
        ({"exp": NOW - LEEWAY_SECS - 60}, "expected at most 60 s"),
        ({"iat": NOW + 600, "exp": NOW + 900}, "clocks of the provider and of this server"),
        ({"nbf": NOW + 86_400}, "expected at most 60 s"),
        ({"exp": None}, "has no time"),
        ({"exp": "tomorrow"}, "has no time"),
        ({"nbf": "now"}, "has no time"),
        ({"nonce": "x"}, "for another sign-in"),
        ({"nonce": None}, "for another sign-in"),
        ({"sub": 7}, "names no person"),
        ({"sub": "x" * 256}, "names no person"),
        ({"preferred_username": 7}, "no claim preferred_username"),
        ({"preferred_username": "a\u202eb"}, "all visible"),
        ({"groups": {"a": 1}}, "not a list of names"),
        ({"groups": [1]}, "not a list of names"),
        ({"groups": [f"g{n}" for n in range(2_001)]}, "is in 2,001 groups: expected at most"),
        ({"groups": [f"g{n}" * 9 for n in range(10_000)]}, "name only the groups"),
        ({"groups": None, "_claim_names": {"groups": "src1"}}, "leaves the groups out"),
    ],
)
def test_claims_that_are_refused(liar: Liar, changed: dict[str, Any], why: str) -> None:
    with pytest.raises(HttpError, match=why) as raised:
        liar.sign_in(**changed)
    assert raised.value.status == 403


def _none(claims: dict[str, Any]) -> str:
    return signed(claims, OctKey.import_key("x"), "none").rpartition(".")[0] + "."


def _shared(claims: dict[str, Any]) -> str:
    """Signed with the provider's public key as if it were a shared secret."""
    front = signed(claims, OctKey.import_key("x"), "HS256").rpartition(".")[0]
    made = hmac.digest(KEY.as_pem(private=False), front.encode(), "sha256")
    return f"{front}.{base64.urlsafe_b64encode(made).decode().rstrip('=')}"


@pytest.mark.parametrize(
    "token",
    [
        _none, _shared, lambda claims: signed(claims, OTHER),
        lambda claims: signed(claims, OTHER, kid="new"), lambda claims: "a.b.c", lambda claims: "",
        lambda claims: signed(claims, KEY)[:-9] + "AAAAAAAAA",
        lambda claims: signed(claims, OctKey.import_key("hidden"), "HS256"),
    ],
)  # fmt: skip
@pytest.mark.filterwarnings("ignore::joserfc.errors.SecurityWarning")
def test_signatures_that_are_refused(liar: Liar, token: Any) -> None:
    """`alg none`, a shared secret, another key, rubbish. Keys are fetched at most every 10 s."""
    for _ in range(3):
        with pytest.raises(HttpError, match="not signed by the provider"):
            liar.sign_in(token)
    assert liar.asked.count("/keys") == 1


def test_keys_that_change(liar: Liar) -> None:
    """An unknown key lets the keys be fetched again, after 10 s."""
    liar.sign_in()
    liar.answers["/keys"] = (200, {"keys": [OTHER.as_dict(private=False)]})
    with pytest.raises(HttpError):
        liar.sign_in(lambda claims: signed(claims, OTHER))
    liar.provider._keys_at -= 11
    assert liar.sign_in(lambda claims: signed(claims, OTHER)).name == "anna"


@pytest.mark.parametrize(
    ("path", "answer", "status"),
    [
        ("/.well-known/openid-configuration", (200, {"issuer": "https://evil.example"}), 502),
        ("/.well-known/openid-configuration", (200, b"<html>"), 503),
        ("/.well-known/openid-configuration", (302, b""), 503),
        ("/.well-known/openid-configuration", (200, b"[" * 100_000), 503),
        ("/keys", (500, {}), 503), ("/keys", (200, {"keys": 7}), 502),
        ("/keys", (200, {"keys": [{"kty": "RSA", "n": 7}]}), 502),
        ("/keys", (200, b" " * 2_100_000), 502),
        ("/userinfo", (200, {"sub": "2"}), 502), ("/userinfo", (401, {}), 403),
    ],
)  # fmt: skip
def test_answers_that_are_wrong(
    liar: Liar, path: str, answer: tuple[int, Any], status: int, caplog: pytest.LogCaptureFixture
) -> None:
    liar.answers[path] = answer
    with pytest.raises(HttpError) as raised:
        liar.sign_in(groups=None)
    assert raised.value.status == status
    assert "Corp" in caplog.text
    assert "hidden" not in caplog.text
    assert "eyJ" not in caplog.text  # no token


def test_what_is_missing_is_asked_of_userinfo(liar: Liar) -> None:
    liar.answers["/userinfo"] = (200, {"sub": "1", "groups": ["it"], "preferred_username": "eve"})
    assert liar.sign_in(groups=None).principals == {"user:anna", "group:it"}


def test_logout_tokens(liar: Liar) -> None:
    """Only tokens with the event, and without a nonce, end sessions."""
    event = {"events": {"http://schemas.openid.net/event/backchannel-logout": {}}}

    def ended(**claims: Any) -> tuple[str, str]:
        token = signed(liar.claims(**claims), KEY)
        return asyncio.run(liar.provider.logged_out(token))

    assert ended(sid="s", **event) == ("s", "1")
    for wrong in ({}, event | {"nonce": "x"}, event | {"sub": "", "sid": ""}, event | {"aud": "x"}):
        with pytest.raises(HttpError):
            ended(**wrong)


def test_sign_ins_that_were_not_begun(liar: Liar) -> None:
    """However many others begin one, none pushes another out; each ends once, and after 10
    minutes."""

    async def run() -> list[int]:
        begun = await liar.provider.begin(HERE, "/" + "x" * 5_000)
        assert len(begun.cookie) < 1_000
        state = parse_qs(urlsplit(begun.url).query)["state"][0]
        statuses = []
        for query, cookie, origin in (
            ({"state": "x", "code": "c"}, begun.cookie, HERE), ({}, begun.cookie, HERE),
            ({"state": state, "code": "c"}, "ü", HERE),
            ({"state": state, "code": "c"}, begun.cookie[:-1] + "-", HERE),
            ({"state": state, "code": "c"}, "A" + begun.cookie, HERE),
            ({"state": state, "code": "c"}, begun.cookie, "http://other.example"),
        ):  # fmt: skip
            with pytest.raises(HttpError) as raised:
                await liar.provider.finish(query, cookie, origin)
            statuses.append(raised.value.status)
        for _ in range(2_000):
            await liar.provider.begin(HERE, "/")
        for _ in range(2):
            with pytest.raises(HttpError) as raised:
                await liar.provider.finish({"state": state, "error": "no"}, begun.cookie, HERE)
            statuses.append(raised.value.status)
        return statuses

    assert asyncio.run(run()) == [*[400] * 6, 403, 400]


@pytest.mark.parametrize(
    ("table", "why"),
    [
        ({"issuer": "http://login.example", "client_id": "a"}, "expected https"),
        ({"issuer": "login.example", "client_id": "a"}, "expected a URL such as"),
        ({"issuer": "https://u:p@login.example", "client_id": "a"}, "expected a URL such as"),
        ({"issuer": "https://a", "client_id": "a", "scopes": "profile"}, 'expected "openid"'),
    ],
)
def test_settings_that_cannot_be(table: dict[str, str], why: str) -> None:
    with pytest.raises(Exception, match=why):
        msgspec.convert(table, Oidc).check()
