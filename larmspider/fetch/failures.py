"""Names the ways in which a fetch fails, by Scrapy's exceptions: one short word each.

The words are those of frontier/failures.py, which knows what each means for the URL and its host.
"""

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


class OutOfScope(IgnoreRequest):
    """A request that was about to leave the scope."""


_KINDS: tuple[tuple[type[BaseException], str], ...] = (
    (OutOfScope, "scope"),
    (CannotResolveHostError, "dns"),
    (DownloadConnectionRefusedError, "refused"),
    (DownloadTimeoutError, "timeout"),
    (DownloadCancelledError, "too-big"),
    (ResponseDataLossError, "reset"),
)
_TLS_WORDS = ("ssl", "tls", "certificate", "handshake")
_RESET_WORDS = ("reset", "lost", "closed", "aborted", "cleanly")
_MESSAGE_CHARS = 300


def kind_of(error: BaseException) -> str:
    """scope, ignored, dns, refused, timeout, too-big, tls, reset, bad-response or error."""
    for cls, kind in _KINDS:
        if isinstance(error, cls):
            return kind
    if isinstance(error, IgnoreRequest):
        # Scrapy's word for a body that grew too large when it was unpacked
        return "too-big" if "DOWNLOAD_MAXSIZE" in str(error) else "ignored"
    if isinstance(error, DownloadFailedError):
        words = str(error).lower()
        if any(word in words for word in _TLS_WORDS):
            return "tls"
        return "reset" if any(word in words for word in _RESET_WORDS) else "bad-response"
    return "error"


def message_of(error: BaseException) -> str:
    """What the error says, on one line and not longer than 300 characters."""
    return " ".join(str(error).split())[:_MESSAGE_CHARS] or type(error).__name__
