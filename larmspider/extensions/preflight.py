"""Looks at settings and LARM_DIR before anything is opened, so that a refusal changes nothing."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, NoReturn

from scrapy.exceptions import NotConfigured

from larmspider import options
from larmspider.directory import CrawlDirectory
from larmspider.errors import ConfigError, CrawlDirError
from larmspider.fetch.curl_setup import setup_from_settings
from larmspider.fetch.deny_addresses import DenyAddresses
from larmspider.fetch.limits import Limits
from larmspider.fetch.sites import Sites
from larmspider.frontier.backend import FormatError
from larmspider.frontier.build import check_settings
from larmspider.frontier.lmdb_reader import FrontierReader

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

logger = logging.getLogger(__name__)


class PreflightExtension:
    """Checks and is gone."""

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> NoReturn:
        """Raises ConfigError or CrawlDirError for what is to be refused, else NotConfigured."""
        options.check_names(crawler.settings)
        check_settings(crawler.settings)
        limits = Limits.from_settings(crawler.settings)
        DenyAddresses.from_settings(crawler.settings)
        setup_from_settings(crawler.settings, limits)
        for warning in Sites.from_settings(crawler.settings).warnings:
            logger.warning("%s", warning)
        if not options.text(crawler.settings, "USER_AGENT").strip():
            raise ConfigError("USER_AGENT is empty: a crawler says who it is")
        directory = CrawlDirectory.from_crawler(crawler)
        directory.check()
        frontier = directory.path / "frontier"
        if not directory.fresh and (frontier / "data.mdb").exists():
            try:
                FrontierReader(frontier).close()
            except FormatError:
                raise
            except CrawlDirError:
                pass  # killed while it was made: it is made now; else the scheduler complains
        raise NotConfigured
