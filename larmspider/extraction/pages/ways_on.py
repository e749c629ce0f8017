"""Guesses why a page has no links: it has a form, scripts, or nothing at all.

    instead_of_links(page)      # Instead.FORM: a person has to fill it in
    is_shell(page)              # scripts make the page
    asks_sign_in(page)          # a login form, even one that posts to another host
    leads_to_logins(page)       # a choice of logins

Each function looks at the first LOOKED_AT bytes of a page, in linear time: all expressions are
possessive or bounded.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import Enum
from urllib.parse import urlsplit

from larmspider.extraction.texts.fingerprint import asks_password
from larmspider.items import Page
from larmspider.urls.signing_in import is_login_path

LOOKED_AT = 1 << 18
SHELL_TEXT = 200
"""Characters of a page that scripts make: it says "Loading ...", or that it needs JavaScript."""
LOGIN_TEXT = 500
"""Characters of a page that is a login and not only has a field for a password."""
_FLAGS = re.IGNORECASE | re.DOTALL
_TAGS = re.compile(rb"<[^<>]*+>|\s++")
_MOUNT = re.compile(
    rb"""<div\b[^<>]{0,500}?\bid\s*+=\s*+["']?+(?:root|app|react-root|__next|__nuxt|svelte|q-app)\b
         [^<>]*+>\s*+</div
       | <(?P<own>app-root|[a-z]{1,40}-app|app-[a-z]{1,40})\b[^<>]*+>\s*+</(?P=own)""",
    _FLAGS | re.VERBOSE,
)
"""An empty element that a framework fills."""
_SCRIPTED = re.compile(
    rb"""\bhref\s*+=\s*+["']?+\s*+(?:javascript:\s*+[^v\s]|\#!?/)
       | \bonclick\s*+=\s*+["'][^"']*?(?:location|navigate|window\.open)""",
    _FLAGS | re.VERBOSE,
)
"""Links that only scripts follow; not ``javascript:void(0)``, which buttons have."""
_FORM = re.compile(rb"<form\b", _FLAGS)
_MARKUP = re.compile(rb"<(?:html|head|title|body|a)[\s>]", _FLAGS)
_SIGN_IN_FIELD = re.compile(
    rb"""\bname\s*+=\s*+["']?+(?:SAMLRequest|SAMLResponse|wctx|wresult)\b
       | \bautocomplete\s*+=\s*+["']?+one-time-code""",
    _FLAGS | re.VERBOSE,
)
"""Fields of a form that takes a browser to a login of another host, or asks for a code."""


class Instead(Enum):
    """The contents of a page without links."""

    NOTHING = "nothing"
    SCRIPTS = "scripts"
    FORM = "form"
    MARKUP = "markup"
    """HTML that its server calls plain text."""


def instead_of_links(page: Page) -> Instead | None:
    """The reason why nothing was followed from a page; None for text, and other media types."""
    body = page.body[:LOOKED_AT]
    if not (page.text or page.file_bytes or body.strip()):
        return Instead.NOTHING
    if page.mime == "text/plain" and _MARKUP.search(body[:2_000]):
        return Instead.MARKUP
    if "html" not in page.mime:
        return None
    if _SCRIPTED.search(body):
        return Instead.SCRIPTS
    return Instead.FORM if _FORM.search(body) else None


def is_shell(page: Page, *, has_links: bool) -> bool:
    """Whether scripts make the page; a page with links also needs an empty element for scripts."""
    body = page.body[:LOOKED_AT]
    if "html" not in page.mime or b"<script" not in body.lower():
        return False
    if len(page.text) >= SHELL_TEXT:
        hints = (_TAGS.sub(b" ", hint) for hint in _noscripts(body))
        if len(page.text) - sum(map(len, hints)) >= SHELL_TEXT:
            return False
    return not has_links or _MOUNT.search(body) is not None


def _noscripts(body: bytes) -> Iterator[bytes]:
    """The contents of ``noscript`` elements, by find(): an expression would be quadratic where many
    begin and none ends."""
    lower, end = body.lower(), 0
    while (start := lower.find(b"<noscript", end)) >= 0:
        start = lower.find(b">", start) + 1
        end = lower.find(b"</noscript", start)
        if not start or end < 0:
            return
        yield body[start:end]


def asks_sign_in(page: Page) -> bool:
    """Whether the page is little but a login: a short one with a password or a code, or any form at
    a login's path."""
    is_login = is_login_path(urlsplit(page.url).path)
    if not is_login and len(page.text) >= LOGIN_TEXT:
        return False
    body = page.body[:LOOKED_AT]
    if asks_password(page) or _SIGN_IN_FIELD.search(body):
        return True
    return is_login and _FORM.search(body) is not None


def leads_to_logins(page: Page) -> bool:
    """Whether all links of a short page to its host lead to logins: "Sign in with ..."."""
    if len(page.text) >= LOGIN_TEXT:
        return False
    own = urlsplit(page.url)
    paths = {_path(link.url, own.netloc) for link in page.links} - {"", own.path}
    return bool(paths) and all(map(is_login_path, paths))


def _path(url: str, host: str) -> str:
    """The path of a URL of this host; "" for other hosts and texts that are not URLs."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return ""
    return parts.path if parts.netloc == host else ""
