"""Settings for commands that fetch a URL or two and are no crawl: fetch, parse, shell, view."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy.exceptions import UsageError

from larmspider import options
from larmspider.errors import ConfigError

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

_OURS = "larmspider."
_STOCK = {
    "SCHEDULER": "scrapy.core.scheduler.Scheduler",
    "DOWNLOADER": "scrapy.core.downloader.Downloader",
    "LARM_FILTER_LOGS": False,
}


def leave_no_crawl(settings: BaseSettings, url: str = "", *, filters: bool = False) -> None:
    """Scrapy's own scheduler and middlewares, none of our extensions and stores: LARM_DIR is not
    touched. With ``filters`` the spider middlewares stay.

    ``url`` stands for the seeds, where the spider asks for them. Raises UsageError.
    """
    try:
        options.settle_scrapys(settings)
    except ConfigError as error:
        raise UsageError(str(error), print_help=False) from None
    for name, value in _STOCK.items():
        settings.set(name, value, priority="cmdline")
    for name in ("EXTENSIONS", "ITEM_PIPELINES", "DOWNLOADER_MIDDLEWARES", "SPIDER_MIDDLEWARES"):
        if name != "SPIDER_MIDDLEWARES" or not filters:
            settings.set(name, _without_ours(settings, name), priority="cmdline")
    if url:
        settings.set("LARM_START", url, priority="cmdline")


def _without_ours(settings: BaseSettings, name: str) -> dict[str, int]:
    """What a user added; what we turned off is on again."""
    return {
        path: order
        for path, order in settings.getdict(name).items()
        if order is not None and not str(path).startswith(_OURS)
    }
