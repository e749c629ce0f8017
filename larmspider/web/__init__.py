"""The web application: what a crawl does, seen and steered from the browser (docs/operations.md).

extension.py      starts it in a crawl; ``scrapy serve`` does without one
application.py    an aiohttp.web.Application from a Source and a Guard
source.py         all data: the crawl's directory, and the crawl itself where it runs here
ask.py            one request as a page sees it, and its reply
work.py           pages are made in threads, few at a time, none for long
guard.py          who may ask: Host, Origin, token; which headers every answer has
pages.py          what a page is: path, function, place in the navigation
views/            one file a page; templates/ and static/ are what they show
"""

from larmspider.web.extension import WebExtension

__all__ = ["WebExtension"]
