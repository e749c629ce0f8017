"""URLs that do something when they are fetched: sign out, delete, edit.

>>> acts("http://wiki/doku.php?id=start&do=revert&rev=7")
'"revert" in do=revert'
>>> acts("http://wiki/doku.php?id=how_to_delete_a_page")

A signed-in user may do more than read, and many applications delete by a plain link. On a host with
a login the crawl therefore follows no link whose last path segment, or a parameter, is a word for
an act. This may be the segment as a whole (``/page/7/delete``, ``/delete/7``), a part of a script's
name (``delete_page.php``, ``deletepage.action``), or a part of a name with a number or a query
after it (``/delete-page/7``). A parameter counts by its name (``?delete=7``) or, if the name means
a command, by its value. A link that carries a token against forged requests acts by definition.
Titles of pages are safe: ``/docs/how-to-delete-a-page`` and ``/wiki/Delete`` are articles.

On hosts without a login changes() knows the same words for signing out, deleting and editing, in
several languages, and asks for more: ``/page/7/delete`` acts, ``/sql/delete`` may be an article.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from urllib.parse import unquote_plus, urlsplit


def _folded(text: str) -> str:
    """The text without escapes, parameters, capitals and accents: ``l%C3%B6schen`` is
    ``loschen``."""
    text = unquote_plus(text).partition(";")[0].casefold()
    if text.isascii():
        return text
    apart = unicodedata.normalize("NFKD", text)
    plain = "".join(one for one in apart if not unicodedata.combining(one))
    return unicodedata.normalize("NFC", plain)


_SIGN_OUT = """
    logout logoff signout signoff userlogout
    abmelden ausloggen afmelden uitloggen loggaut loggaav loggut logud wyloguj wylogowanie
    deconnexion deconnecter sedeconnecter cerrarsesion desconectar desconectarse disconnetti esci
    encerrarsessao terminarsessao sair odhlasit odhlaseni kijelentkezes kirjauduulos cikisyap
    выход выйти вийти вихід 登出 退出登录 退出登錄 ログアウト 로그아웃
"""
_OUT = frozenset(map(_folded, _SIGN_OUT.split()))
"""All words are without separators, capitals and accents."""
_DELETE = """
    delete destroy erase purge remove trash del delitem rm
    loschen loeschen entfernen verwijderen supprimer effacer eliminar borrar elimina cancella
    rimuovi excluir apagar remover tabort radera slett slet poista usun skasuj smazat odstranit
    torol kaldir удалить видалити 删除 刪除 削除 삭제
"""
_EDIT = """
    edit bearbeiten bewerken modifier editer editar modificar modifica redigera rediger muokkaa
    edytuj upravit szerkesztes duzenle редактировать изменить редагувати 编辑 編輯 編集 편집
"""
_EVERYWHERE = """
    activate addtocart approve ban changepassword checkout clear confirm create deactivate decline
    detach disable discard disconnect draftdel drop enable execute impersonate install invite
    kill markread publish reboot reject rename reopen reorder replace resolve restore revert revoke
    rollback shutdown submit subscribe suspend toggle trigger unban unblock undelete undo
    unfollow uninstall unlink unlock unpublish unsubscribe unwatch upload upvote downvote vote wipe
"""
_AS_VALUES = """
    add addto archive attach block cancel clone close copy editor empty expire flag follow join
    kick leave lock mark merge move pin post put register reply reset restart run save send share
    start stop update watch
"""
"""Elsewhere they name pages, and options of a search form, more often than acts."""
_CHANGES = _OUT | frozenset(map(_folded, (_DELETE + _EDIT).split()))
"""Words of URLs that all hosts refuse, if more of the URL speaks for an act."""
ACTS = _CHANGES | frozenset(_EVERYWHERE.split())
_VALUES = ACTS | frozenset(_AS_VALUES.split())
_COMMAND_NAMES = """
    act action actions cmd command do event func function method mode op operation perform task todo
    what _method x-method http_method aktion accion azione acao действие
"""
_COMMANDS = frozenset(map(_folded, _COMMAND_NAMES.split()))
"""Names of parameters whose value is a command."""
_TEXTS = frozenset(["q", "query", "s", "search", "title", "word", "tag"])
"""Names of parameters whose value is a title, or words of a search."""
_TOKEN = re.compile(
    r".*(?:csrf|xsrf|nonce|sectok|sesskey|authenticity|crumb).*|_?token|form_?(?:token|key)"
)
_WORDS = re.compile(r"[\W_]+")
_ID = re.compile(r"[0-9]+|[0-9a-f]{8,}(?:-[0-9a-f]{4,}){0,4}")
_SPLIT = re.compile(r"(?<=[a-z])(?=[A-Z])")
_EXTENSION = re.compile(r"\.[a-z]{2,6}$")
_SCRIPT = re.compile(r".*\.(?:action|aspx?|cgi|do|jspx?|php[0-9]?|pl|py)")
_STRONG = ("delete", "destroy", "erase", "logoff", "logout", "purge", "remove", "signout")
"""Words that also act as a part of a name."""


def acts(url: str) -> str | None:
    """The acting part of the URL, for people; None: nothing acts. Takes 5 us."""
    parts = urlsplit(url)
    segments, more = _segments(parts.path)
    is_article = not segments or _is_article(segments)
    if not is_article and (word := _act_in_path(segments[-1], more or bool(parts.query))):
        return f'"{word}" in the path'
    for name, value in _pairs(parts.query):
        if _TOKEN.fullmatch(name):
            return _in_pair(name, name, value)
        if found := _of_parameter(name, value, ACTS, _VALUES):
            return _in_pair(found, name, value)
    return None


def changes(url: str) -> str | None:
    """The part of a URL that signs out, deletes or edits, also on hosts without a login; None:
    nothing does, or the URL may be an article. Takes 5 us.

    >>> changes("http://works/machine/17/delete")
    '"delete" in the path'
    >>> changes("http://works/manual/sql/delete")
    """
    parts = urlsplit(url)
    segments, is_numbered = _segments(parts.path)
    if segments and not _is_article(segments):
        name = _plain_name(segments[-1])
        signs_out = _act_in(name, _OUT) or name.split("_")[-1] in _OUT
        if signs_out and "wiki" not in segments:
            return f'"{name}" in the path'
        is_numbered |= len(segments) > 1 and _ID.fullmatch(segments[-2]) is not None
        is_numbered |= any(_names_one(pair, value) for pair, value in _pairs(parts.query))
        if is_numbered:
            word = _act_in(name, _CHANGES) or _strong_in(segments[-1])
            word = word or _act_in(name.split("_")[0], _CHANGES)
            if word:
                return f'"{word}" in the path'
    for name, value in _pairs(parts.query):
        if found := _of_parameter(name, value, _CHANGES, _CHANGES):
            return _in_pair(found, name, value)
    return None


def _segments(path: str) -> tuple[list[str], bool]:
    """The segments of a path up to the last segment that is not a number, and whether a number
    follows it."""
    segments = [_folded(segment) for segment in path.split("/") if segment]
    more = False
    while len(segments) > 1 and _ID.fullmatch(segments[-1]):
        more = bool(segments.pop())  # /delete/7
    return segments, more


def _is_article(segments: list[str]) -> bool:
    return len(segments) > 1 and segments[-2] == "wiki"


def _pairs(query: str) -> Iterator[tuple[str, str]]:
    """Names and values of a query."""
    for pair in re.split("[&;]", query) if query else ():
        name, _, value = pair.partition("=")
        yield _folded(name), unquote_plus(value)


def _names_one(name: str, value: str) -> bool:
    """Whether a parameter names the thing that a URL is about: ``id=start``, ``nr=17``."""
    return bool(value) and (name.endswith("id") or _ID.fullmatch(value.lower()) is not None)


def _in_pair(found: str, name: str, value: str) -> str:
    return f'"{found}" in {name[:40]}{f"={value[:40]}" if found in _folded(value) else ""}'


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


def _of_parameter(
    name: str, value: str, acts: frozenset[str], values: frozenset[str]
) -> str | None:
    """The act that a parameter is: one of ``acts`` by its name, of ``values`` by its value."""
    name = name.partition("[")[0]  # do[delete]=1
    if word := _act_in(name, acts):
        return word
    if name in _COMMANDS:
        words = [word for word in _WORDS.split(_folded(_SPLIT.sub(" ", value))) if word]
        return next((word for word in words if word in values), None)
    last = re.split("[:/]", value)[-1]  # title=Special:UserLogout
    return None if last == value and name in _TEXTS else _act_in(_folded(last), _OUT)


def _act_in_path(segment: str, more: bool) -> str | None:
    """``more``: a number or a query follows."""
    name = _plain_name(segment)
    if word := _act_in(name, ACTS):
        return word
    if (last := name.split("_")[-1]) in _OUT:
        return last
    if not more and not _SCRIPT.fullmatch(segment):
        return None
    if word := _strong_in(segment):
        return word
    words = _WORDS.split(name)
    return next((word for word in (words[0], words[-1]) if word in (*_STRONG, "edit")), None)


def _plain_name(segment: str) -> str:
    return _EXTENSION.sub("", segment)


def _strong_in(segment: str) -> str | None:
    """The act that a script's name begins or ends with: ``deletepage.action``."""
    if not _SCRIPT.fullmatch(segment):
        return None
    plain = _WORDS.sub("", _plain_name(segment))  # the canonical form has no capitals: deletePage
    return next((one for one in _STRONG if plain.startswith(one) or plain.endswith(one)), None)


def _act_in(name: str, acts: frozenset[str]) -> str | None:
    """The act that a name is: as a whole, without separators (``log-out``, ``logOut``)."""
    plain = _WORDS.sub("", name)
    return plain if plain in acts else None
