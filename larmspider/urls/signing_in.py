"""Links to logins, sign-up, password resets and social logins: one form, linked from each page.

>>> form_of("http://wiki/login?next=/page/7")
'http://wiki/login'
>>> form_of("http://wiki/accounts/google/login/?process=login&next=%2Fa")
'http://wiki/accounts/google/login/?process=login'
>>> form_of("http://wiki/search?q=login&next=2") is None
True

Such a link carries the address of its page, so that each page has another one. The form is the same
for all. A URL is such a link if its path ends with a word for a login (``/login``,
``/password/reset``, ``/oauth/authorize``, ``/login/github``), or a parameter is a command for one
(``?action=login``, ``?title=Special:UserLogin``). All other URLs keep all of their parameters.
"""

from __future__ import annotations

import re
from typing import NamedTuple
from urllib.parse import unquote_plus

_LOGIN = """
    login logon signin signon userlogin loginform dologin ssologin signup signupform register
    registration usercreate createaccount newaccount sso saml saml2 oauth oauth2 oidc openid
    openidconnect authorize authenticate cas adfs lostpassword forgotpassword forgottenpassword
    passwordreset resetpassword passwordrecovery recoverpassword requestpassword remindpassword
    passwordforgot passwordlost
    anmelden anmeldung einloggen registrieren registrierung kontoerstellen passwortvergessen
    connexion seconnecter inscription motdepasseoublie iniciarsesion registrarse accedi
    inloggen registreren entrar cadastrar
"""
LOGINS = frozenset(_LOGIN.split())
"""Names of the last segment of a path, without separators, extension and case."""
_PROVIDERS = """
    login logon signin signon signup register sso saml saml2 oauth oauth2 oidc openid auth adfs
"""
_BEFORE = frozenset(_PROVIDERS.split())
"""Names of the segment before the last one, which is a provider or a step: ``/login/github``."""
_PASSWORD_STEPS = frozenset(["new", "reset", "forgot", "forgotten", "lost", "recover", "recovery"])
_COMMANDS = frozenset(["a", "act", "action", "cmd", "command", "do", "mode", "op", "page", "task"])
_RETURNS = """
    next nexturl returnto returnurl returnuri return returnpage returntoquery returnpath backto
    backurl backpage redirect redirecturi redirecturl redirectto redirectpath destination dest
    camefrom continue continueurl relaystate successurl targeturl gotourl goto loginredirect
    originalurl postloginredirect afterlogin forward forwardurl requestedurl service wreply
    ziel zielurl zurueck weiterleitung retour volver
"""
_RETURN_NAMES = frozenset(_RETURNS.split())
"""Parameters that say where the login returns to, without separators."""
_NEW_EACH_TIME = """
    state nonce codechallenge samlrequest signature csrf csrftoken authenticitytoken
"""
_STATES = frozenset(_NEW_EACH_TIME.split())
"""Parameters that differ in each link, without separators."""
_ADDRESS_NAMES = frozenset(
    {"url", "uri", "ref", "referer", "referrer", "from", "target", "back", "origin", "to", "r", "u"}
    | {"von", "path", "seite"}
)
"""Parameters that count if their value is an address."""
_MAY_BE = re.compile(
    r"log|sign|regist|sso|saml|auth|oidc|openid|passw|cas|adfs|account|anmeld|konto|conne"
    r"|inscri|motde|mot-de|iniciar|accedi|entrar|cadastr",
    re.IGNORECASE,
)
_ADDRESS = re.compile(r"/|https?:|\.\.?/", re.IGNORECASE)
_SEPARATORS = re.compile(r"[^a-z0-9]+")
_EXTENSION = re.compile(r"\.[a-z]{2,6}$")


class SignIn(NamedTuple):
    """``form`` is the URL without what differs from page to page. ``name`` is the same for all
    links to this form: the form, or the command where each page has the form at its own path."""

    form: str
    name: str


def form_of(url: str) -> str | None:
    """The form that a link leads to; None for a URL that is not a link to a login."""
    found = sign_in(url)
    return None if found is None else found.form


def sign_in(url: str) -> SignIn | None:
    """The login that a URL with parameters leads to; None for other URLs, in 0.3 us."""
    if "?" not in url or not _MAY_BE.search(url):
        return None
    head, _, query = url.partition("?")
    pairs = re.split("[&;]", query)
    path = head.split("/", 3)[3] if head.count("/") > 2 else ""
    command = next(filter(None, map(_command, pairs)), "")
    by_path = is_login_path(path)
    if not (by_path or command):
        return None
    kept = [pair for pair in pairs if pair and not _differs(pair)]
    if len(kept) == len([pair for pair in pairs if pair]) and not command:
        return None
    form = f"{head}?{'&'.join(kept)}" if kept else head
    host = "/".join(head.split("/", 3)[:3])
    return SignIn(form, form if by_path else f"{host}/?{command}")


def is_login_path(path: str) -> bool:
    """Whether a path ends with a login, as ``/users/sign_in`` and ``/login.php`` do."""
    words = [_plain(_EXTENSION.sub("", one.lower())) for one in path.split("/") if one]
    if not words:
        return False
    last = words[-1]
    if last in LOGINS:
        return True
    before = words[-2] if len(words) > 1 else ""
    return before in _BEFORE or (before in ("password", "passwords") and last in _PASSWORD_STEPS)


def _command(pair: str) -> str:
    """``action=login`` where the pair is a command for a login; "" if it is not."""
    name, _, value = (unquote_plus(text) for text in pair.partition("="))
    last = _plain(re.split("[:/]", value.lower())[-1])
    named = name.lower() in _COMMANDS and ":" not in value
    special = name.lower() in ("title", "page", "id") and ":" in value
    return f"{name.lower()}={value}" if (named or special) and last in LOGINS else ""


def _differs(pair: str) -> bool:
    """Whether a parameter says where the login returns to, or is new in each link."""
    name, _, value = (unquote_plus(text) for text in pair.partition("="))
    plain = _plain(name.lower())
    if plain in _RETURN_NAMES or plain in _STATES:
        return True
    return plain in _ADDRESS_NAMES and _ADDRESS.match(value) is not None


def _plain(word: str) -> str:
    return _SEPARATORS.sub("", word)
