"""Modules that settings name by their path before they became plugins."""

from __future__ import annotations

import logging
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType

logger = logging.getLogger(__name__)

MOVED = {
    "larmspider.middlewares.render": "larmspider.middlewares.rendering",
    "larmspider.pipelines.outbox.dynamodb": "larmspider.plugins.dynamodb.receiver",
    "larmspider.pipelines.outbox.objects": "larmspider.plugins.objects.receiver",
    "larmspider.pipelines.outbox.opensearch": "larmspider.plugins.opensearch.receiver",
    "larmspider.pipelines.outbox.streams": "larmspider.plugins.streams.receiver",
    "larmspider.pipelines.warc": "larmspider.plugins.warc.pipeline",
}
"""Where the classes of a module are now."""


def moved_to(module: str) -> str:
    """Where the contents of a module are: ``module`` itself, unless they have moved."""
    return MOVED.get(module, module)


class MovedModules(MetaPathFinder, Loader):
    """Imports a moved module by its old path. Each class taken from it is logged once.

    Scrapy compares components by class, so ``ITEM_PIPELINES[old path] = None`` turns the new path
    off.
    """

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        return ModuleSpec(fullname, self) if fullname in MOVED else None

    def exec_module(self, module: ModuleType) -> None:
        old = module.__name__
        new = MOVED[old]

        def get(name: str) -> Any:
            if name.startswith("__"):  # of the module itself, such as __path__
                raise AttributeError(name)
            value = getattr(import_module(new), name)
            logger.warning("%s.%s has moved: name %s.%s in its place", old, name, new, name)
            setattr(module, name, value)
            return value

        module.__dict__["__getattr__"] = get
