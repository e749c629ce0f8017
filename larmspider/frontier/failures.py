"""Kinds of failed fetches: is the URL worth another try, and is the host to blame?

A page that is too big says nothing about its server; five refused connections in a row do.
"""

from __future__ import annotations

from typing import NamedTuple


class FailureKind(NamedTuple):
    """``retry``: the same URL may succeed later. ``blames_host``: counts towards parking it.
    ``snoozes``: the host is left alone for a while at once, and not this URL only."""

    retry: bool
    blames_host: bool
    snoozes: bool = False


KINDS = {
    "dns": FailureKind(retry=True, blames_host=True, snoozes=True),
    "refused": FailureKind(retry=True, blames_host=True, snoozes=True),
    "timeout": FailureKind(retry=True, blames_host=True, snoozes=True),
    "slow": FailureKind(retry=True, blames_host=True, snoozes=True),
    "tls": FailureKind(retry=True, blames_host=True, snoozes=True),
    "reset": FailureKind(retry=True, blames_host=True, snoozes=True),
    "too-big": FailureKind(retry=False, blames_host=False),
    "bad-response": FailureKind(retry=True, blames_host=False),
    "address": FailureKind(retry=False, blames_host=False),
    "bad-url": FailureKind(retry=False, blames_host=False),
}
"""By the fetch layer's word for it; any other word: retried, the host not blamed."""

_SERVER_ERROR = FailureKind(retry=True, blames_host=True)
_OVERLOADED = FailureKind(retry=True, blames_host=True, snoozes=True)
_OTHER = FailureKind(retry=True, blames_host=False)


def failure_kind(kind: str) -> FailureKind:
    """5xx, 429 and 408 blame the host; other statuses are final for the URL.

    429 and 503 are about the host, other 5xx most often about one page: a wiki with a broken page
    in a hundred is not left alone for each of them.
    """
    if kind in ("http-429", "http-503"):
        return _OVERLOADED
    if kind.startswith("http-"):
        if kind[5:6] == "5" or kind == "http-408":
            return _SERVER_ERROR
        return FailureKind(retry=False, blames_host=False)
    return KINDS.get(kind, _OTHER)
