"""Names the ways in which a fetch fails, by Scrapy's exceptions: one short word each."""

from __future__ import annotations

from scrapy.exceptions import (
    CannotResolveHostError,
    DownloadCancelledError,
    DownloadConnectionRefusedError,
    DownloadFailedError,
    DownloadTimeoutError,
    IgnoreRequest,
    ResponseDataLossError,
)

from larmspider.middlewares.last_check import OutOfScope

_KINDS: tuple[tuple[type[BaseException], str], ...] = (
    (OutOfScope, "scope"),
    (CannotResolveHostError, "dns"),
    (DownloadConnectionRefusedError, "refused"),
    (DownloadTimeoutError, "timeout"),
    (DownloadCancelledError, "too-big"),
    (ResponseDataLossError, "incomplete"),
)
_TLS_WORDS = ("ssl", "tls", "certificate", "handshake")
_MESSAGE_CHARS = 300


def kind_of(error: BaseException) -> str:
    """robots, scope, dns, refused, timeout, too-big, incomplete, tls, failed or error."""
    if isinstance(error, IgnoreRequest) and "robots.txt" in str(error):
        return "robots"
    for cls, kind in _KINDS:
        if isinstance(error, cls):
            return kind
    if isinstance(error, DownloadFailedError):
        words = str(error).lower()
        return "tls" if any(word in words for word in _TLS_WORDS) else "failed"
    return "error"


def message_of(error: BaseException) -> str:
    """What the error says, on one line and not longer than 300 characters."""
    return " ".join(str(error).split())[:_MESSAGE_CHARS] or type(error).__name__
