"""URLs that do something when they are fetched: sign out, delete, edit.

>>> acts("http://wiki/doku.php?id=start&do=revert&rev=7")
'"revert" in do=revert'
>>> acts("http://wiki/doku.php?id=how_to_delete_a_page")

A signed-in user may do more than read, and many applications delete by a plain link. On a host with
a login the crawl therefore follows no link whose last path segment, or a parameter, is a word for
an act. This may be the segment as a whole (``/page/7/delete``, ``/delete/7``), a part of a script's
name (``delete_page.php``, ``deletepage.action``), or a part of a name with a number or a query
behind it (``/delete-page/7``). A parameter counts by its name (``?delete=7``) or, if the name means
a command, by its value. A link that carries a token against forged requests acts by definition.
Titles of pages are safe: ``/docs/how-to-delete-a-page`` and ``/wiki/Delete`` are articles.
"""

from __future__ import annotations

import re
from urllib.parse import unquote_plus, urlsplit

_OUT = frozenset(["logout", "logoff", "signout", "signoff", "userlogout"])
_EVERYWHERE = """
    activate approve ban changepassword checkout clear confirm create deactivate decline delete
    destroy detach disable discard draftdel drop edit enable erase execute impersonate install
    invite kill markread publish purge reboot reject remove rename reopen reorder replace resolve
    restore revert revoke rollback shutdown submit subscribe suspend toggle trash trigger unban
    unblock undelete undo unfollow uninstall unlink unlock unpublish unsubscribe unwatch upload
    upvote downvote vote wipe
"""
_AS_VALUES = """
    add addto archive attach block cancel clone close copy editor empty expire flag follow join
    kick leave lock mark merge move pin post put register reply reset restart run save send share
    start stop update watch
"""
"""Elsewhere they name pages, and options of a search form, more often than acts."""
ACTS = _OUT | frozenset(_EVERYWHERE.split())
_VALUES = ACTS | frozenset(_AS_VALUES.split())
_COMMAND_NAMES = """
    act action actions cmd command do event func function method mode op operation perform task todo
    what _method x-method http_method
"""
_COMMANDS = frozenset(_COMMAND_NAMES.split())
"""Names of parameters whose value is a command."""
_TOKEN = re.compile(
    r".*(?:csrf|xsrf|nonce|sectok|sesskey|authenticity|crumb).*|_?token|form_?(?:token|key)"
)
_WORDS = re.compile(r"[^a-z0-9]+")
_ID = re.compile(r"[0-9]+|[0-9a-f]{8,}(?:-[0-9a-f]{4,}){0,4}")
_SPLIT = re.compile(r"(?<=[a-z])(?=[A-Z])")
_EXTENSION = re.compile(r"\.[a-z]{2,6}$")
_SCRIPT = re.compile(r".*\.(?:action|aspx?|cgi|do|jspx?|php[0-9]?|pl|py)")
_STRONG = ("delete", "destroy", "erase", "logoff", "logout", "purge", "remove", "signout")
"""Words that also act as a part of a name."""


def acts(url: str) -> str | None:
    """The acting part of the URL, for people; None: nothing acts. Takes 5 us."""
    parts = urlsplit(url)
    segments = [segment for segment in parts.path.lower().split("/") if segment]
    more = bool(parts.query)
    while len(segments) > 1 and _ID.fullmatch(segments[-1]):
        more = bool(segments.pop())  # /delete/7
    if segments and (len(segments) < 2 or segments[-2] != "wiki"):
        name = unquote_plus(segments[-1].partition(";")[0])
        if word := _act_in_path(name, more):
            return f'"{word}" in the path'
    for pair in re.split("[&;]", parts.query):
        name, _, value = (unquote_plus(text) for text in pair.partition("="))
        if found := _of_parameter(name.lower(), value):
            return f'"{found}" in {name[:40]}{f"={value[:40]}" if found in value.lower() else ""}'
    return None


def without_tokens(url: str) -> str:
    """The URL with ``***`` in place of tokens against forged requests, for logs.

    >>> without_tokens("http://wiki/doku.php?do=logout&sectok=1605d3")
    'http://wiki/doku.php?do=logout&sectok=***'
    """
    start, mark, query = url.partition("?")
    if not mark:
        return url
    pairs = re.split("([&;])", query)
    for at, pair in enumerate(pairs):
        name, _, value = pair.partition("=")
        if value and _TOKEN.fullmatch(unquote_plus(name).lower()):
            pairs[at] = f"{name}=***"
    return start + mark + "".join(pairs)


def _of_parameter(name: str, value: str) -> str | None:
    if _TOKEN.fullmatch(name):
        return name
    name = name.partition("[")[0]  # do[delete]=1
    if word := _act_in(name, ACTS):
        return word
    if name in _COMMANDS:
        words = [word for word in _WORDS.split(_SPLIT.sub(" ", value).lower()) if word]
        return next((word for word in words if word in _VALUES), None)
    last = re.split("[:/]", value)[-1]  # title=Special:UserLogout
    return _act_in(last, _OUT)


def _act_in_path(segment: str, more: bool) -> str | None:
    """``more``: a number or a query follows."""
    name = _EXTENSION.sub("", segment)
    if word := _act_in(name, ACTS):
        return word
    if not more and not _SCRIPT.fullmatch(segment):
        return None
    words = _WORDS.split(name)
    if _SCRIPT.fullmatch(segment):  # the canonical form has no capitals: deletePage, userDelete
        plain = "".join(words)
        if word := next(
            (one for one in _STRONG if plain.startswith(one) or plain.endswith(one)), ""
        ):
            return word
    return next((word for word in (words[0], words[-1]) if word in (*_STRONG, "edit")), None)


def _act_in(name: str, acts: frozenset[str]) -> str | None:
    """The act that a name is: as a whole, without separators (``log-out``, ``logOut``)."""
    plain = _WORDS.sub("", name.lower())
    return plain if plain in acts else None
