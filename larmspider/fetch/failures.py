"""Names the ways in which a fetch fails: one short word each, and a line for the logs.

The words are those of frontier/failures.py, which knows what each means for the URL and its host.
Errors of our own download handler carry theirs (errors.py); those of Scrapy's handlers are told
apart by class and wording.
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

_KINDS: tuple[tuple[type[BaseException], str], ...] = (
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
    """scope, address, bad-url, ignored, dns, refused, timeout, slow, too-big, tls, reset,
    bad-response or error."""
    kind = getattr(error, "kind", None)
    if isinstance(kind, str):
        return kind
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
