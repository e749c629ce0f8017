"""Session ids make one page look like many: /cart;jsessionid=1A and /cart?sid=2B are /cart.

A parameter of the path (after ``;``, RFC 3986 3.3) or of the query (after ``&`` or ``;``) is
dropped, with its separator, if its name is on a list and it has a value. ``?sid`` alone stays: it
names no session.

A server may put session ids into a parameter of any name. tokens_of() finds random-looking parts
of a URL, and without() removes some of them; the caller has to prove that they mean nothing.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence

from larmspider.errors import ConfigError

DEFAULT_SESSION_IDS: tuple[str, ...] = (
    "jsessionid",
    "jservsessionid*",
    "phpsessid",
    "aspsessionid*",
    "asp.net_sessionid",
    "cfid",
    "cftoken",
    "sid",
    "sessid",
    "sessionid",
    "session_id",
    "oscsid",
    "zenid",
)
"""Names of session parameters, ignoring case; ``*`` is any characters (aspsessionidQQGGRT)."""

_DRAWN = (
    r"(?:(?=[^&;/]*[0-9])[0-9A-Za-z_-]{12,}"
    r"|(?=[^&;/]*[0-9])(?=[^&;/]*[A-Za-z])[0-9A-Za-z]{8,11}"
    r"|(?=(?:[^&;/]*?[a-z][A-Z]){2})[A-Za-z]{10,})"
)
"""A value that looks as if drawn at random; letters alone have to change their case twice."""
_TOKEN = re.compile(rf"(?:\A|[&;])([^=&;]+)=({_DRAWN})(?=[&;]|\Z)")
_SEGMENT = re.compile(r"/\(([A-Z])\(([0-9A-Za-z_-]{12,})\)\)(?=[/?]|\Z)")
IN_PATH = "path"
"""Name of a parameter that is a segment of the path: ``/(S(lit3py55t21z5v55vlm25s55))/``."""
_LEAST_SEGMENT = 8
_BARE_SEGMENT = re.compile(
    r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
    r"|(?!(?:.*[_-])?[A-Za-z]?[a-z]{3,}(?:[_-]|\Z))(?:[0-9]{10,}"
    r"|(?=.*[0-9])(?=.*[A-Za-z])[0-9A-Za-z_-]{8,}|(?=(?:.*?[a-z][A-Z]){2})[A-Za-z]{10,})"
)
"""A whole segment that is a token: no slug (``chapter-12``), no date."""
_LIKE_TOKEN = re.compile(r"(?=.*[0-9]|.+[A-Z])[0-9A-Za-z_-]{8,}")
"""A segment in the place of tokens, of their length, that is another one."""
_LAST = "*"
"""Begins the name of a token in the last segment of a path: ``*12``, with its length. One that
stands elsewhere, or behind segments without numbers, is named by these: ``/s/*12``."""
_INSIDE = re.compile(
    r"(?<![0-9A-Za-z%(])(?=[A-Za-z]*[0-9])(?=[0-9]*[A-Za-z])[0-9A-Za-z]{8,}(?![0-9A-Za-z])"
)
"""A part of a segment that is a token: ``/forum_sid=9f86d081_topic5``."""
_LIKE_INSIDE = re.compile(r"(?<![0-9A-Za-z%(])(?=[A-Za-z]*[0-9])[0-9A-Za-z]{8,}(?![0-9A-Za-z])")
"""A part in the place of these, of their length."""
_PLAIN = re.compile(r"[A-Za-z]?[a-z]*[0-9]{0,4}")
"""A word or a number beside such a part. Otherwise the whole segment is the token: a GUID."""
_BEFORE_INSIDE = re.compile(r"[0-9A-Za-z]*[^0-9A-Za-z/]\Z")
"""The word and the separator before a part; a token's name begins with them: ``sid=*8``."""
_ONE_SEGMENT = re.compile(r"[^/]+")
_MOST_CHARS, _MOST_IN_SEGMENT = 2_083, 300
"""Longer paths and segments have no token in the path: the time grows with the square of these."""
_IN_SEGMENT = re.compile(rf"(;[^=;/]+)=({_DRAWN})(?=[;/]|\Z)")
"""A parameter behind a segment; its name begins with the semicolon: ``/item;trk=9f86d081884c``."""

_ALLOWED = re.compile(r"[A-Za-z0-9._~*-]+")


class SessionIds:
    """Drops session parameters from paths and queries whose escapes are normalized.

    ``names`` as in DEFAULT_SESSION_IDS; an empty sequence drops nothing. Raises ConfigError for a
    name with characters other than letters, digits and ``. _ ~ - *``, or of ``*`` alone.
    """

    def __init__(self, names: Sequence[str] = DEFAULT_SESSION_IDS) -> None:
        for name in names:
            if not _ALLOWED.fullmatch(name) or not name.strip("*"):
                raise ConfigError(
                    f"session id {name!r}: expected parameter names of letters, digits, "
                    "'.', '_', '~', '-' and '*' for any characters, such as aspsessionid*"
                )
        self.names = tuple(names)
        # (?!) matches nowhere: the empty list.
        any_name = "|".join(re.escape(name).replace(r"\*", "[^=&;/?]*") for name in names) or "(?!)"
        flags = re.IGNORECASE | re.ASCII
        self._in_path = re.compile(rf";(?:{any_name})=[^;/]*", flags)
        self._in_query = re.compile(rf"(?:\A|[&;])(?:{any_name})=[^&;]*", flags)

    def in_query(self, query: str) -> bool:
        """Whether ``query``, without its question mark, has a session parameter."""
        return self._in_query.search(query) is not None

    def drop_from_query(self, query: str) -> str:
        """``query``, without its question mark, less its session parameters."""
        kept = self._in_query.sub("", query)
        first = self._in_query.match(query)
        # A parameter at the very start has its separator behind it.
        return kept[1:] if first and first[0][0] not in "&;" else kept

    def drop_from_path(self, path: str) -> str:
        """``path`` less its session parameters: ``/a;jsessionid=1/b`` becomes ``/a/b``."""
        return self._in_path.sub("", path)


def tokens_of(url: str) -> dict[str, str]:
    """The parameters of a URL whose values look as if drawn at random, by name."""
    path, _, query = url.partition("#")[0].partition("?")
    found = dict(_TOKEN.findall(query)) if query else {}
    if "(" in path and (segment := _SEGMENT.search(path)) is not None:
        found[IN_PATH] = segment[2]
    for _, value, names in _segments(path, _BARE_SEGMENT):
        found |= dict.fromkeys(names, value)
    if ";" in path:
        found |= _IN_SEGMENT.findall(path)
    for part, name in _parts(path, _INSIDE):
        begin, end = part.span()
        before = path[path.rfind("/", 0, begin) + 1 : begin]
        rest = before + path[end:].partition("/")[0].partition(";")[0]
        whole = _BARE_SEGMENT.fullmatch(before + part[0] + rest[len(before) :])
        if whole is None or all(map(_PLAIN.fullmatch, re.split("[_-]", rest))):
            found[name] = part[0]
    return found


def _parts(url: str, tokens: re.Pattern[str]) -> Iterator[tuple[re.Match[str], str]]:
    """The parts of a URL's segments that match ``tokens``, each with its name. Whole segments and
    parameters are none."""
    first = url.find("/", url.find("://") + 3) if "://" in url else 0
    for segment in _ONE_SEGMENT.finditer(url, max(0, first)) if len(url) <= _MOST_CHARS else ():
        start, stop = segment.span()
        if stop - start > _MOST_IN_SEGMENT:
            continue
        for part in tokens.finditer(url, start, stop):
            begin, end = part.span()
            behind = url[end : end + 1]
            if (begin == start and behind in ("", "/", ";")) or ";" in url[start:begin]:
                continue
            before = _BEFORE_INSIDE.search(url, start, begin)
            word = f"{_fixed(before[0][:-1])}{before[0][-1]}" if before else "^"
            yield part, f"{word}*{len(part[0])}"


def _segments(url: str, tokens: re.Pattern[str]) -> Iterator[tuple[int, str, tuple[str, ...]]]:
    """The segments of a URL's path that match ``tokens``: the index among its parts between
    slashes, the segment, and its names."""
    if len(url) > _MOST_CHARS:
        return
    parts, before = url.split("/"), ""
    first, last = (3, len(parts) - 1) if "://" in url else (1, len(parts) - 1)
    named = first
    for at in range(first, len(parts)):
        value = parts[at].partition(";")[0] if ";" in parts[at] else parts[at]
        if len(value) < _LEAST_SEGMENT or tokens.fullmatch(value) is None:
            continue
        before += "".join([f"{_fixed(one)}/" for one in parts[named:at]])
        named = at
        names = (f"/{before}*{len(value)}",) if before or at < last else ()
        yield at, value, (*names, f"{_LAST}{len(value)}") if at == last else names


def _fixed(segment: str) -> str:
    """The form of a segment before a token in the token's name. Numbers and tokens in it are
    replaced, because they vary."""
    return "*" if any(map(str.isdigit, segment)) else segment.lower()


def without(url: str, names: Collection[str]) -> str:
    """A URL less the parameters of these names."""
    head, mark, query = url.partition("?")
    if IN_PATH in names:
        head = _SEGMENT.sub("", head)
    if any("*" in name for name in names):
        like = _segments(head, _LIKE_TOKEN)
        drawn = [at for at, _, found in like if not set(found).isdisjoint(names)]
        if drawn:
            parts = head.split("/")
            for at in reversed(drawn):
                _, mark_of, more = parts[at].partition(";")
                if mark_of:
                    parts[at - 1] += mark_of + more
                del parts[at]
            head = "/".join(parts) if len(parts) > 3 or "://" not in head else f"{'/'.join(parts)}/"
        for part, name in reversed([*_parts(head, _LIKE_INSIDE)]):
            if name in names:
                head = head[: part.start()] + head[part.end() :]
    if ";" in head:
        first, *rest = re.split("(;[^=;/]+=[^;/]*)", head)
        head = first + "".join(one for one in rest if one.partition("=")[0] not in names)
    if not mark:
        return head
    kept = [one for one in re.split("[&;]", query) if one.partition("=")[0] not in names]
    return f"{head}?{'&'.join(kept)}" if kept else head
