"""The errors that larmspider raises on purpose, each one line that a user can act on; and messages
for the panic of a library."""

from larmspider import program

MEND = f"{program.NAME} verify --repair repairs it"
"""The advice for a file that is damaged, or that lacks committed bytes."""


class LarmspiderError(Exception):
    """Base of all errors of larmspider. ``text`` may name ``values`` in braces: both are kept, for
    pages in other languages (web/words.py)."""

    def __init__(self, text: str = "", /, **values: object) -> None:
        super().__init__(text.format(**values) if values else text)
        self.text, self.values = text, values


class ConfigError(LarmspiderError):
    """An unusable setting, argument or file: the text names the fault and the accepted values."""


class TemporaryError(LarmspiderError):
    """A failure that may pass by itself, and did not while the command waited. The same command may
    be started again (exit status 75, EX_TEMPFAIL)."""


class InvalidURL(LarmspiderError, ValueError):  # noqa: N818 - the name others rely on
    """A string that is not a URL that can be fetched; says why."""


class CrawlDirError(LarmspiderError):
    """A LARM_DIR that is missing, foreign, in use or damaged."""


class NoCrawlError(CrawlDirError, ConfigError):
    """A directory that does not hold a crawl, although the user named it as a crawl's directory."""


class OtherFormatError(CrawlDirError, ConfigError):
    """A directory, a Redis or an index of a format that this larmspider does not read."""

    def __init__(self, what: str, found: object, reads: object, *, mend: str = "") -> None:
        mend = mend or "use the version that made it, or start over with -a fresh=force"
        super().__init__(f"{what} has format {found}, this larmspider reads {reads}: {mend}")


class CommittedGoneError(CrawlDirError):
    """LARM_DIR lacks committed data of a store; ``what`` is a clause that names the data."""

    def __init__(self, what: str) -> None:
        super().__init__(f"{what}: something else has cut it short; {MEND}")
        self.what = what


class SearchAwayError(CrawlDirError, TemporaryError):
    """The search engine cannot answer now: it is away, busy, too slow, or lacks a part."""


class SearchRefusedError(CrawlDirError, ConfigError):
    """The search engine denies access, or has no index of ours."""


class QueryError(LarmspiderError):
    """A search query that does not parse."""


class NoWordError(QueryError):
    """A search query without a word to look for: signs alone. It finds nothing."""


class MissingFieldError(LarmspiderError):
    """An item lacks a field that a store needs; names both."""


class HttpError(LarmspiderError):
    """A web page or action that is refused; ``status`` is the HTTP status."""

    def __init__(self, message: str, status: int = 400, **values: object) -> None:
        super().__init__(message, **values)
        self.status = status


def is_panic(error: BaseException) -> bool:
    """Whether ``error`` is a Rust panic. No except clause can name that class."""
    return type(error).__name__ == "PanicException"
