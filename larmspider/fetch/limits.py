"""Every limit of a fetch, read from the settings once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from larmspider import options
from larmspider.errors import ConfigError
from larmspider.fetch import errors
from larmspider.files import raise_open_files

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.settings import BaseSettings


LONGEST_MS = 2**31 - 1
"""25 days: the longest time that every option of libcurl takes."""

OTHER_FILES = 200
"""Open files besides connections: logs, frontier, index, look-ups of names, Redis."""
WEB_FILES = 264
"""Connections of the web pages, and connections that are about to be refused."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Seconds, bytes; 0 means no limit for ``low_speed_bytes``, ``max_bytes``, ``warn_bytes``, and
    no blobs for ``blob_bytes``."""

    connect_secs: float = 10.0
    total_secs: float = 30.0
    low_speed_bytes: int = 100
    low_speed_secs: int = 20
    max_bytes: int = 16 * 1024 * 1024
    document_bytes: int = 16 * 1024 * 1024
    blob_bytes: int = 0
    warn_bytes: int = 0
    header_bytes: int = 65_536
    header_lines: int = 500
    dns_secs: int = 300
    kept_connections: int = 128

    @classmethod
    def from_settings(cls, settings: BaseSettings) -> Self:
        """Raises ConfigError for a bad value."""
        dns_secs = options.integer(settings, "LARM_DNS_CACHE_SECS", minimum=0)
        max_bytes = options.integer(settings, "DOWNLOAD_MAXSIZE", minimum=0)
        return cls(
            connect_secs=options.seconds(settings, "LARM_CONNECT_TIMEOUT_SECS", minimum=0.1),
            total_secs=options.seconds(settings, "DOWNLOAD_TIMEOUT", minimum=0.1),
            low_speed_bytes=options.integer(settings, "LARM_LOW_SPEED_BYTES", minimum=0),
            low_speed_secs=options.integer(settings, "LARM_LOW_SPEED_SECS", minimum=1),
            max_bytes=max_bytes,
            document_bytes=max_bytes and max(max_bytes, document_bytes(settings)),
            blob_bytes=blob_bytes(settings),
            warn_bytes=options.integer(settings, "DOWNLOAD_WARNSIZE", minimum=0),
            header_bytes=options.integer(
                settings, "LARM_HEADER_BYTES", minimum=1024, maximum=300 * 1024
            ),
            header_lines=options.integer(settings, "LARM_HEADER_LINES", minimum=10, maximum=5000),
            dns_secs=dns_secs if options.scrapys_boolean(settings, "DNSCACHE_ENABLED") else 0,
            kept_connections=options.integer(settings, "LARM_KEPT_CONNECTIONS", minimum=1),
        )

    def total_of(self, request: Request) -> float:
        """Seconds by meta download_timeout, or by DOWNLOAD_TIMEOUT. Raises BadUrl."""
        value = request.meta.get("download_timeout") or self.total_secs
        try:
            secs = float(value)
        except (ValueError, TypeError):
            secs = 0.0
        if not secs > 0:  # nor nan
            raise errors.BadUrl("no download_timeout: expected seconds > 0")
        return secs


def document_bytes(settings: BaseSettings) -> int:
    """LARM_DOCUMENT_MAXSIZE_BYTES; its default is no more than a page file holds, and no less than
    a page may have. Raises ConfigError."""
    name, files, pages = "LARM_DOCUMENT_MAXSIZE_BYTES", "LARM_PAGEFILE_BYTES", "DOWNLOAD_MAXSIZE"
    largest = options.integer(settings, files, minimum=1)
    least = options.integer(settings, pages, minimum=0)
    wanted = options.integer(settings, name, minimum=1)
    if wanted == options.defaults()[name]:
        return min(max(wanted, least), largest)
    if not least <= wanted <= largest:
        raise ConfigError(
            f"{name}={wanted} does not fit {files}={largest} and {pages}={least}: a document lies"
            f" in one page file, so {name} must be between {max(1, least)} and {largest}"
        )
    return wanted


def blob_bytes(settings: BaseSettings) -> int:
    """LARM_BLOB_BYTES. Raises ConfigError if bodies in memory may be as large."""
    wanted = options.integer(settings, "LARM_BLOB_BYTES", minimum=0)
    for name in ("DOWNLOAD_MAXSIZE", "LARM_DOCUMENT_MAXSIZE_BYTES") if wanted else ():
        in_memory = options.integer(settings, name, minimum=0)
        if not 0 < in_memory < wanted:
            raise ConfigError(
                f"LARM_BLOB_BYTES={wanted}: expected 0, for none, or more than"
                f" {name}={in_memory or '0 (no limit)'}"
            )
    return wanted


def check_open_files(settings: BaseSettings, threads: int, name: str) -> None:
    """Raise the soft limit of open files to the hard one. Raises ConfigError about ``name``, a
    setting or argument, if the hard limit is too low for ``threads`` fetches at a time."""
    needed = threads + OTHER_FILES
    needed += options.integer(settings, "LARM_KEPT_CONNECTIONS", minimum=1)
    web = options.boolean(settings, "LARM_WEB")
    needed += WEB_FILES if web else 0
    limit = raise_open_files()
    if needed > limit:
        others, instead = "the index and LARM_KEPT_CONNECTIONS", ", or lower these"
        if web:
            others = "the index, the web pages and LARM_KEPT_CONNECTIONS"
            instead = ", lower these, or do without the pages (LARM_WEB=no)"
        raise ConfigError(
            f"{name}={threads}: {needed:,} open files are needed, including {others}, and this"
            f" process may have {limit:,}: raise the hard limit (ulimit -n, LimitNOFILE= of"
            f" systemd, --ulimit of containers){instead}"
        )


@dataclass(frozen=True, slots=True)
class RenderLimits:
    """Limits for one page that Chromium renders; ``secs`` include the waits by its host's pace."""

    requests: int = 50
    secs: float = 20.0
    max_bytes: int = 20_000_000

    @classmethod
    def from_settings(cls, settings: BaseSettings) -> RenderLimits:
        return cls(
            options.integer(settings, "LARM_RENDER_REQUESTS", minimum=0),
            options.seconds(settings, "LARM_RENDER_SECS", minimum=1),
            options.integer(settings, "LARM_RENDER_BYTES", minimum=1),
        )
