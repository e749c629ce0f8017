"""larmspider: LARM, the Lucene project's intranet crawler, as a Scrapy project."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any

from larmspider.moved import MovedModules

__version__ = "1.0.0rc1"

sys.meta_path.append(MovedModules())


def __getattr__(name: str) -> Any:
    """`from larmspider import open_crawl`, for programs that read a crawl (crawl/api.py). The
    import happens on access."""
    if name == "open_crawl":
        return import_module("larmspider.crawl.api").open_crawl
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
