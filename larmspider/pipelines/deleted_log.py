"""deleted.log: which pages were taken out of the crawl, when and why; one line each."""

from __future__ import annotations

from larmspider.formatting import utc
from larmspider.items import Page, Removed
from larmspider.pipelines.records import LogStore
from larmspider.urls.syntax import without_userinfo

DELETED_LOG_COLUMNS = ("time", "url", "url-exact", "reason")


class DeletedLogPipeline(LogStore):
    """Writes deleted.log."""

    file_name = "deleted.log"
    files = (file_name,)
    columns = DELETED_LOG_COLUMNS

    def write(self, page: Page) -> None:
        """A page that is stored is not deleted."""

    def remove(self, removed: Removed) -> None:
        url = without_userinfo(removed.url)
        self.log.append(utc(removed.time), url, removed.exact, removed.reason)
