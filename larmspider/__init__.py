"""larmspider: LARM, the Lucene project's intranet crawler, as a Scrapy project."""

from __future__ import annotations

import sys
import warnings
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType

__version__ = "0.1.0"

MOVED = {
    "crawl_shards": "crawl.worker_dirs",
    "extensions.allocator": "extensions.tuning",
    "extensions.garbage": "extensions.tuning",
    "extensions.monitor": "status.monitor",
    "extensions.operator": "control.operator",
    "extensions.totals": "status.totals",
    "extensions.web": "web",
    "frontier.scheduler": "scheduler",
    "log_formatter": "extensions.tuning",
    "middlewares.answers": "middlewares.fetch_outcome",
    "middlewares.seen": "middlewares.visited",
    "pipelines.append_file": "pipelines.records",
    "pipelines.chain": "pipelines.store",
    "pipelines.log_store": "pipelines.records",
    "stats_collector": "extensions.tuning",
}
"""Modules that settings and docs named before they moved, and where their contents are now."""


class _MovedModules(MetaPathFinder, Loader):
    """Imports a moved module under its old name; each name taken from it warns once.

    Scrapy compares components by class, so ``EXTENSIONS[old path] = None`` turns the new path off.
    """

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        package, _, module = fullname.partition(".")
        return ModuleSpec(fullname, self) if package == __name__ and module in MOVED else None

    def exec_module(self, module: ModuleType) -> None:
        """Names are looked up when they are asked for: nothing is imported before."""
        old = module.__name__
        new = f"{__name__}.{MOVED[old.partition('.')[2]]}"

        def get(name: str) -> Any:
            if name.startswith("__"):  # of the module itself, such as __path__
                raise AttributeError(name)
            value = getattr(import_module(new), name)
            from scrapy.exceptions import ScrapyDeprecationWarning  # urls/ does without Scrapy

            warnings.warn(
                f"{old}.{name} is deprecated, use {new}.{name}",
                ScrapyDeprecationWarning,
                stacklevel=2,
            )
            setattr(module, name, value)
            return value

        module.__dict__["__getattr__"] = get


sys.meta_path.append(_MovedModules())


def __getattr__(name: str) -> Any:
    """`from larmspider import open_crawl`, for programs that read a crawl (crawl/api.py): nothing
    is imported before it is asked for."""
    if name == "open_crawl":
        return import_module("larmspider.crawl.api").open_crawl
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
