"""Makes messages of servers and libraries safe to show: no secrets, one line, not too long.

>>> keep_secret("s3cret/word", user="larm")
>>> told("FATAL: s3cret%2Fword is wrong for postgresql://larm:s3cret/word@db/x\\n\\x1b[31mHINT")
'FATAL: *** is wrong for postgresql://***@db/x \N{REPLACEMENT CHARACTER}[31mHINT'

A server may repeat its input, and so may a library: URLs with a password, an Authorization header,
a DSN. Every such text goes through told() before it is logged, kept or shown.
"""

from __future__ import annotations

import json
import os
import re
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from html import escape
from typing import Any
from urllib.parse import parse_qsl, quote, quote_plus, unquote, urlsplit

from larmspider.formatting import readable

MASK = "***"
MAX_TEXT = 300
"""Characters of a text that is shown."""
_MAX_READ = 3_000
"""Characters that are looked at: the time of the patterns below grows with their square."""
_MAX_SECRET = 500
_LONG = 6
"""Characters from which a secret is masked within a word, too."""
_LONG_ENCODED = 8
_LOGGED = 6
"""Characters of the shortest secret that is masked in each line of the log: a shorter one is a part
of too many addresses."""
_SPLIT = "[\\s\N{REPLACEMENT CHARACTER}]{0,2}"
"""Two characters of a secret may be this far apart: base64 is broken into lines."""

_NAMES = (
    r"(?:password|passwd|passphrase|pwd|secret|(?:api|access|account)[_-]?key"
    r"|(?:security|session)[_-]?token)"
)
_SECRET_NAME = re.compile(rf"{_NAMES}|token|credential", re.IGNORECASE)
_PLACE_NAME = re.compile(r"^(OLD)?PWD$|_(FILE|PATH|DIR|SOCK)$", re.IGNORECASE)
"""Variables that name a place: the shell's PWD is the working directory, not a password."""
_VALUE = r"(\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'|[^\s&,;)}\]]+)"
_USERINFO = re.compile(
    r"(\b[a-z][a-z0-9+.-]*://)(?:[^\s/:@\"'<>]*:[^\s\"'<>]*|[^\s/?#@\"'<>]*)@", re.IGNORECASE
)
_PAIRS = (
    re.compile(
        rf"(\b[\w.-]{{0,40}}(?:{_NAMES}|token|credential|signature|\bsig)[\w.-]{{0,40}}[\"']?\s*=\s*){_VALUE}",
        re.IGNORECASE,
    ),
    re.compile(rf"(\b[\w.-]{{0,40}}{_NAMES}[\w.-]{{0,40}}[\"']?\s*:\s*){_VALUE}", re.IGNORECASE),
    re.compile(
        r"(\b(?:(?:proxy-)?authorization|(?:set-)?cookie)[\"']?\s*[:=]\s*[\"']?(?:[\w-]+\s+)?)"
        r"([^\s\"',;]+)",
        re.IGNORECASE,
    ),
)
_SCHEME = re.compile(
    r"\b(basic|bearer|apikey|negotiate)(\s+)([A-Za-z0-9+/_.=~-]{8,})", re.IGNORECASE
)

_secrets: set[str] = set()
_patterns: list[re.Pattern[str] | None] = [None, None]
"""Patterns of all secrets, and of the secrets that are masked in the log."""
_logged: set[str] = set()
"""All ways to write a secret that is masked in the log."""


def keep_secret(*values: str, user: str = "") -> None:
    """Mask these secrets from now on in this process. ``user``: the user who sends them by Basic
    authentication."""
    found = {value for value in values if value}
    if user:
        found |= {f"{user}:{value}" for value in found}
    if not found <= _secrets:
        _secrets.update(found)
        _patterns[0] = _pattern(_secrets)
        logged = [one for one in _secrets if len(one) >= _LOGGED]
        _patterns[1] = _pattern(logged)
        _logged.update(form.lower() for one in logged for form in _forms(one))


def keep_secrets_of(name: str, value: Any) -> None:
    """Mask the secret part of the value of a setting or variable ``name``: all of it, or the
    password and the tokens of a URL."""
    if not isinstance(value, str) or not value:
        return
    if _SECRET_NAME.search(name) and "://" not in value:
        keep_secret(value)
    for url in value.split():
        if "://" in url:
            _keep_secrets_of_url(url)


def _keep_secrets_of_url(url: str) -> None:
    with suppress(ValueError):
        parts = urlsplit(url)
        user, _, password = parts.netloc.rpartition("@")[0].partition(":")
        keep_secret(password, unquote(password), user=unquote(user))
        for name, value in parse_qsl(parts.query):
            if _SECRET_NAME.search(name) or name.lower() in ("sig", "key", "signature"):
                keep_secret(value)
    # urlsplit() ends the authority at a / or # in the password; other parsers do not
    user, colon, password = url.partition("://")[2].rpartition("@")[0].partition(":")
    if colon:
        keep_secret(password, unquote(password), user=unquote(user))


def keep_secrets_of_environment(environment: Mapping[str, str] = os.environ) -> None:
    """Mask the variables that hold a secret, by their names, or a URL with one."""
    for name, value in environment.items():
        if not _PLACE_NAME.search(name) and (_SECRET_NAME.search(name) or "://" in value):
            keep_secrets_of(name, value)


def told(text: object, limit: int = MAX_TEXT) -> str:
    """A foreign text: printable, in one line of ``limit`` characters, without secrets."""
    whole = str(text)
    line = " ".join(readable(" ".join(whole[:_MAX_READ].split())).split())
    if len(whole) > _MAX_READ:
        line = line[:-_MAX_SECRET]  # its end may be half a secret
    line = redacted(line)
    line = _USERINFO.sub(rf"\1{MASK}@", line)
    for pattern in _PAIRS:
        line = pattern.sub(rf"\1{MASK}", line)
    line = _SCHEME.sub(_without_token, line)
    return line if len(line) <= limit else f"{line[: limit - 4]} ..."


def _without_token(found: re.Match[str]) -> str:
    is_word = found[3].isalpha() and (found[3].islower() or found[3].istitle())
    return found[0] if is_word else f"{found[1]}{found[2]}{MASK}"


def redacted(text: str, *, logged: bool = False) -> str:
    """``text`` without the known secrets; ``logged``: also without secrets that are too short to
    be masked elsewhere."""
    pattern = _patterns[1 if logged else 0]
    if logged and pattern is not None:  # 5 us a line; the pattern takes 0.5 ms
        lower = text.lower()
        if not any(form in lower for form in _logged):
            return text
    return text if pattern is None else pattern.sub(MASK, text)


def _pattern(secrets: Iterable[str]) -> re.Pattern[str] | None:
    forms = {form for secret in secrets for form in _forms(secret)}
    if not forms:
        return None
    # the longest first: of two that begin alike that one is meant
    ordered = sorted(forms, key=lambda form: (-len(form), form))
    return re.compile("|".join(map(_spelled, ordered)), re.IGNORECASE)


def _spelled(form: str) -> str:
    if len(form) < _LONG:
        return rf"(?<![^\W_]){re.escape(form)}(?![^\W_])"
    return _SPLIT.join(map(re.escape, "".join(form.split()) or form))


def _forms(secret: str) -> Iterator[str]:
    """The forms in which a server or a library may write a secret."""
    raw = secret.encode("utf-8", "replace")
    with suppress(ValueError):
        yield " ".join(readable(secret).split())
    yield from (quote(raw, safe=""), quote(raw), quote_plus(raw), escape(secret))
    yield from (json.dumps(secret)[1:-1], repr(secret)[1:-1], raw.hex())
    for before in range(3):  # base64 of something that has it within
        encoded = b64encode(bytes(before) + raw).decode()
        start, end = -(-before * 8 // 6), (before + len(raw)) * 8 // 6
        if end - start >= _LONG_ENCODED:
            if not before:
                yield encoded
            part = encoded[start:end]
            yield from (part, part.replace("+", "-").replace("/", "_"))
