"""A provider of OpenID Connect: code flow with PKCE, discovery, keys, logout.

    provider = OidcProvider(settings.oidc, secret)
    begun = await provider.begin("https://search.example", "/search")    # URL and cookie
    person = await provider.finish(query, cookie, "https://search.example")

Requests and tokens have limits, so this file fetches by aiohttp itself; joserfc checks signatures.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json
import logging
import secrets
import ssl
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode, urlsplit

import aiohttp
import msgspec
from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import KeySet
from joserfc.jws import JWSRegistry
from msgspec import Struct

from larmspider.errors import ConfigError, HttpError
from larmspider.formatting import printable
from larmspider.server.config.sign_in_settings import Oidc
from larmspider.web.auth import Provider
from larmspider.web.people import PROVIDER_AWAY, PROVIDER_REFUSED
from larmspider.web.reader import checked_groups, checked_name

logger = logging.getLogger(__name__)

LEEWAY_SECS = 60
"""Seconds that the clocks of provider and server may be apart."""
ALGORITHMS = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "EdDSA"]
"""Signatures by keys that only the provider has: neither `none`, nor HS256 with a shared secret."""
MAX_BYTES = 2_000_000
"""Limit of an answer of the provider; 10,000 groups have some 400,000 bytes."""
MAX_TOKEN = 150_000
"""Bytes; 2,000 groups with names of 50 characters have 140,000."""
TIMEOUT_SECS = 10.0
KNOWN_SECS = 3_600.0
"""Metadata and keys are fetched again after this time."""
KEYS_AGAIN_SECS = 10.0
"""Keys are fetched at most this often for a signature that none of them made."""
PENDING_SECS = 600.0
"""How long a sign-in may take."""
MAX_TARGET = 1_000
"""Characters of the page that is wanted; browsers take 4,096 bytes of a cookie."""
MAX_ENDED = 10_000
"""Sign-ins that have ended and are remembered, so that none ends twice."""
CALLBACK = "/oidc/callback"
_REGISTRY = JWSRegistry(algorithms=ALGORITHMS, strict_check_header=False)
_REGISTRY.max_payload_length = MAX_TOKEN
_BROKEN = (JoseError, ValueError, TypeError, KeyError)
"""Errors of joserfc for tokens and keys of all kinds."""
LOGOUT_EVENT = "http://schemas.openid.net/event/backchannel-logout"


class Begun(NamedTuple):
    """``url`` is where the browser goes; it sends ``cookie`` back with the answer."""

    url: str
    cookie: str


class Person(NamedTuple):
    """The person who has signed in, the session at the provider, and the page that the person
    wanted."""

    name: str
    principals: frozenset[str]
    session: Provider
    target: str


class _Pending(Struct, frozen=True):
    """A sign-in that has begun. The browser keeps it in a signed cookie: sign-ins that others begin
    take no room here."""

    state: str
    nonce: str
    verifier: str
    origin: str
    target: str
    ends: float


@dataclass(frozen=True, slots=True)
class _Known:
    """Metadata of the provider; ``until`` is a time of the clock."""

    values: Mapping[str, Any]
    until: float


class OidcProvider:
    """``clock`` is Unix time, by which tokens end."""

    def __init__(self, settings: Oidc, secret: str, clock: Callable[[], float] = time.time) -> None:
        self.settings, self.name = settings, settings.name
        self._secret, self._clock = secret, clock
        self._key = secrets.token_bytes(32)
        self._ended: OrderedDict[str, None] = OrderedDict()
        self._known: _Known | None = None
        self._keys: KeySet | None = None
        self._keys_at = 0.0
        self._lock = asyncio.Lock()
        self._ssl: ssl.SSLContext | bool = True
        try:
            if settings.issuer.startswith("https://"):
                self._ssl = ssl.create_default_context(cafile=settings.ca_file or None)
        except (OSError, ssl.SSLError) as error:
            raise ConfigError(f"oidc.ca_file {settings.ca_file}: {error}") from None

    async def begin(self, origin: str, target: str) -> Begun:
        """Raises HttpError while the provider is away."""
        values = await self._metadata()
        state, nonce, verifier = (secrets.token_urlsafe(32) for _ in range(3))
        target = target if len(target) <= MAX_TARGET else "/"
        ends = self._clock() + PENDING_SECS
        cookie = self._signed(_Pending(state, nonce, verifier, origin, target, ends))
        challenge = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest())
        query = urlencode({
            "response_type": "code", "client_id": self.settings.client_id,
            "redirect_uri": origin + CALLBACK, "scope": self.settings.scopes, "state": state,
            "nonce": nonce, "code_challenge": challenge.decode().rstrip("="),
            "code_challenge_method": "S256",
        })  # fmt: skip
        endpoint = self._endpoint(values, "authorization_endpoint")
        return Begun(f"{endpoint}{'&' if '?' in endpoint else '?'}{query}", cookie)

    async def finish(self, query: Mapping[str, str], cookie: str, origin: str) -> Person:
        """The person whom the provider has sent back. Raises HttpError."""
        pending = self._in_cookie(cookie)
        if (
            pending is None
            or pending.ends < self._clock()
            or pending.origin != origin
            or pending.state != query.get("state")
            or pending.state in self._ended
        ):
            raise self._refused("it was started in another browser, or too long ago", 400)
        self._ended[pending.state] = None
        while len(self._ended) > MAX_ENDED:
            self._ended.popitem(last=False)
        if "error" in query:
            raise self._refused(printable(query["error"][:100]), 403)
        # RFC 9207: an answer of another provider that this browser was sent to
        if query.get("iss", self.settings.issuer) != self.settings.issuer:
            raise self._refused("the answer is of another issuer", 400)
        tokens = await self._tokens(query.get("code", ""), pending)
        token = tokens.get("id_token")
        if not isinstance(token, str):
            raise self._refused("the provider gave no ID token", 502)
        claims = await self._claims(token)
        self._check(claims, nonce=pending.nonce)
        wanted = (self.settings.name_claim, self.settings.groups_claim)
        more = {name: claims[name] for name in (*wanted, "_claim_names") if name in claims}
        if not all(name in more for name in wanted):
            more = await self._user_info(tokens, claims["sub"]) | more
        name, principals = self._named(more)
        session = Provider(str(claims.get("sid", "")), str(claims["sub"]), token)
        return Person(name, principals, session, pending.target)

    def _signed(self, pending: _Pending) -> str:
        content = base64.urlsafe_b64encode(msgspec.json.encode(pending))
        return f"{content.decode()}.{self._signature(content)}"

    def _signature(self, content: bytes) -> str:
        return hmac.new(self._key, content, hashlib.sha256).hexdigest()

    def _in_cookie(self, cookie: str) -> _Pending | None:
        """The sign-in that this server has put into a cookie; None for any other cookie."""
        content, _, signature = cookie.encode("utf-8", "replace").partition(b".")
        if not hmac.compare_digest(self._signature(content).encode(), signature):
            return None
        return msgspec.json.decode(base64.urlsafe_b64decode(content), type=_Pending)

    async def end_url(self, token: str, origin: str) -> str:
        """The URL at which the provider ends its session; "" if it has none, or is away."""
        try:
            values = await self._metadata()
        except HttpError:
            return ""
        if "end_session_endpoint" not in values:
            return ""
        endpoint = self._endpoint(values, "end_session_endpoint")
        query = urlencode({
            "id_token_hint": token, "post_logout_redirect_uri": f"{origin}/login",
            "client_id": self.settings.client_id,
        })  # fmt: skip
        return f"{endpoint}{'&' if '?' in endpoint else '?'}{query}"

    async def logged_out(self, token: str) -> tuple[str, str]:
        """The number of the session and the subject that the provider's logout token ends (OpenID
        Connect Back-Channel Logout). Raises HttpError."""
        claims = await self._claims(token)
        self._check(claims, logout=True)
        if not (claims.get("sid") or claims.get("sub")):
            raise self._refused("the logout token names no session", 400)
        return str(claims.get("sid", "")), str(claims.get("sub", ""))

    async def _metadata(self) -> Mapping[str, Any]:
        now = self._clock()
        if self._known is None or not now < self._known.until <= now + KNOWN_SECS:
            url = f"{self.settings.issuer.rstrip('/')}/.well-known/openid-configuration"
            values = await self._fetch("GET", url)
            if values.get("issuer") != self.settings.issuer:
                shown = printable(str(values.get("issuer"))[:200])
                raise self._refused(f"the provider says that its issuer is {shown}", 502)
            self._known = _Known(values, now + KNOWN_SECS)
        return self._known.values

    def _endpoint(self, values: Mapping[str, Any], name: str) -> str:
        url = values.get(name)
        scheme = urlsplit(self.settings.issuer).scheme
        if not isinstance(url, str) or not url.startswith((f"{scheme}://", "https://")):
            raise self._refused(f"the provider has no {name} with {scheme}", 502)
        return url

    async def _tokens(self, code: str, pending: _Pending) -> Mapping[str, Any]:
        form = {
            "grant_type": "authorization_code", "code": code,
            "redirect_uri": pending.origin + CALLBACK, "code_verifier": pending.verifier,
        }  # fmt: skip
        headers = {}
        values = await self._metadata()
        if not self._secret:
            form["client_id"] = self.settings.client_id
        elif "client_secret_basic" in values.get(
            "token_endpoint_auth_methods_supported", ["client_secret_basic"]
        ):
            pair = f"{quote(self.settings.client_id, safe='')}:{quote(self._secret, safe='')}"
            headers["Authorization"] = "Basic " + base64.b64encode(pair.encode()).decode()
        else:
            form |= {"client_id": self.settings.client_id, "client_secret": self._secret}
        return await self._fetch("POST", self._endpoint(values, "token_endpoint"), headers, form)

    async def _user_info(self, tokens: Mapping[str, Any], subject: str) -> dict[str, Any]:
        values = await self._metadata()
        if "userinfo_endpoint" not in values or not isinstance(tokens.get("access_token"), str):
            return {}
        headers = {"Authorization": f"Bearer {tokens['access_token']}"}
        found = await self._fetch("GET", self._endpoint(values, "userinfo_endpoint"), headers)
        if found.get("sub") != subject:
            raise self._refused("the provider told the claims of another person", 502)
        return dict(found)

    def _named(self, claims: Mapping[str, Any]) -> tuple[str, frozenset[str]]:
        """The name and the principals."""
        name, groups = (claims.get(one) for one in (
            self.settings.name_claim, self.settings.groups_claim
        ))  # fmt: skip
        elsewhere = claims.get("_claim_names")
        if isinstance(elsewhere, dict) and self.settings.groups_claim in elsewhere:
            raise self._refused(
                "the token leaves the groups out, because they are too many: let the provider name"
                " only the groups that this application needs", 403
            )  # fmt: skip
        found = [] if groups is None else [groups] if isinstance(groups, str) else groups
        if not isinstance(name, str):
            raise self._refused(f"there is no claim {self.settings.name_claim}", 403)
        if not isinstance(found, list) or not all(isinstance(one, str) for one in found):
            raise self._refused(f"{self.settings.groups_claim} is not a list of names", 403)
        try:
            name = checked_name(name, "name")
            return name, checked_groups(found, name) | {f"user:{name}"}
        except ConfigError as error:
            raise self._refused(str(error), 403) from None

    async def _claims(self, token: str) -> Mapping[str, Any]:
        """The claims of a token that the provider has signed. Raises HttpError."""
        if len(token) > MAX_TOKEN:
            raise self._refused(
                f"the token has {len(token):,} bytes: expected at most {MAX_TOKEN:,}; let the"
                " provider name only the groups that this application needs", 403
            )  # fmt: skip
        for new in (False, True):  # the provider may have new keys
            keys = await self._key_set(new=new)
            try:
                return _decoded(token, keys)
            except _BROKEN as error:
                why = f"the token is not signed by the provider: {error}"
        raise self._refused(printable(why[:200]), 403)

    async def _key_set(self, *, new: bool = False) -> KeySet:
        async with self._lock:
            age = self._clock() - self._keys_at
            if self._keys is None or not 0 <= age < (KEYS_AGAIN_SECS if new else KNOWN_SECS):
                values = await self._metadata()
                found = await self._fetch("GET", self._endpoint(values, "jwks_uri"))
                try:
                    self._keys = KeySet.import_key_set({"keys": _signing(found.get("keys"))})
                except (JoseError, ValueError, TypeError, KeyError) as error:
                    raise self._refused(
                        f"the provider's keys cannot be read: {error}", 502
                    ) from None
                self._keys_at = self._clock()
            return self._keys

    def _check(self, claims: Mapping[str, Any], nonce: str = "", *, logout: bool = False) -> None:
        """Raises HttpError for a token that is not for this server, or not for now."""
        audience = claims.get("aud")
        audiences = audience if isinstance(audience, list) else [audience]
        own, now = self.settings.client_id, self._clock()
        if claims.get("iss") != self.settings.issuer:
            raise self._refused("the token is of another issuer", 403)
        if own not in audiences or claims.get("azp", own) != own:
            raise self._refused("the token is for another application", 403)
        times = [claims.get("iat"), claims.get("exp"), claims.get("nbf", now)]
        if not all(isinstance(one, int | float) for one in times):
            raise self._refused("the token has no time", 403)
        for off in (claims["iat"] - now, now - claims["exp"], claims.get("nbf", now) - now):
            if off > LEEWAY_SECS:
                raise self._refused(
                    f"the token's time is {off:,.0f} s off: expected at most {LEEWAY_SECS} s; it"
                    " has expired, or the clocks of the provider and of this server are apart", 403
                )  # fmt: skip
        if logout:
            events = claims.get("events")
            if not isinstance(events, dict) or LOGOUT_EVENT not in events or "nonce" in claims:
                raise self._refused("the token is not a logout token", 403)
            return
        sent = str(claims.get("nonce", "")).encode("utf-8", "replace")
        if not hmac.compare_digest(sent, nonce.encode()):
            raise self._refused("the token is for another sign-in", 403)
        subject = claims.get("sub")
        if not isinstance(subject, str) or not 0 < len(subject) <= 255:
            raise self._refused("the token names no person", 403)

    async def _fetch(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str] | None = None,
        form: Mapping[str, str] | None = None,
    ) -> Mapping[str, Any]:
        """An answer in JSON. Raises HttpError. Neither its text nor the log has data that was
        sent."""
        where = url.partition("?")[0]
        try:
            async with (
                aiohttp.ClientSession(
                    timeout=aiohttp.ClientTimeout(total=TIMEOUT_SECS), trust_env=False
                ) as session,
                session.request(
                    method, url, headers=headers, data=form, allow_redirects=False, ssl=self._ssl
                ) as response,
            ):
                content = b""
                async for part in response.content.iter_chunked(65_536):
                    content += part
                    if len(content) > MAX_BYTES:
                        raise self._refused(f"{where} sends more than {MAX_BYTES:,} bytes", 502)
                status = response.status
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            logger.error("%s: %s cannot be reached: %s", self.name, where, error)
            raise HttpError(PROVIDER_AWAY, 503, name=self.name) from None
        try:
            found = json.loads(content)
        except (ValueError, RecursionError):
            found = None
        if status >= 500 or not isinstance(found, dict):
            logger.error("%s: %s answers %d, and not as expected", self.name, where, status)
            raise HttpError(PROVIDER_AWAY, 503, name=self.name)
        if status != 200:
            why = printable(str(found.get("error", ""))[:100])
            raise self._refused(f"{where} answers {status} {why}", 403)
        return found

    def _refused(self, why: str, status: int) -> HttpError:
        logger.warning("%s: a sign-in failed: %s", self.name, why)
        return HttpError(PROVIDER_REFUSED, status, name=self.name, why=why)


def _signing(keys: object) -> list[Any]:
    """The keys that sign; keys of unknown kinds are left out."""
    found = keys if isinstance(keys, list) else []
    return [
        one
        for one in found[:100]
        if isinstance(one, dict)
        and one.get("use", "sig") == "sig"
        and one.get("kty") in ("RSA", "EC", "OKP")
    ]


def _decoded(token: str, keys: KeySet) -> Mapping[str, Any]:
    return jwt.decode(token, keys, registry=_REGISTRY).claims
