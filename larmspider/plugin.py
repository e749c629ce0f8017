"""Loads plugins, the optional parts in larmspider/plugins/, by name (docs/internals/plugins.md).

plugin.load("versions.versions").history(crawl, url)

The core imports no plugin. It loads a plugin when a setting or a command needs it.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from functools import cache
from importlib import import_module
from typing import Any

from larmspider.errors import ConfigError
from larmspider.moved import moved_to

logger = logging.getLogger(__name__)

PACKAGE = "larmspider.plugins"


def load(name: str) -> Any:
    """The module ``larmspider.plugins.<name>``. Raises ConfigError if it cannot be imported."""
    folder = name.partition(".")[0]
    try:
        return import_module(f"{PACKAGE}.{name}")
    except ModuleNotFoundError as error:
        missing = error.name or ""
        if missing.partition(".")[0] == "larmspider":
            raise ConfigError(f"the plugin {folder} is not installed: {error}") from error
        raise ConfigError(
            f"the plugin {folder} needs {missing}: pip install 'larmspider[{folder}]'"
        ) from error
    except Exception as error:
        raise ConfigError(
            f"the plugin {folder} cannot be imported: {type(error).__name__}: {error}"
        ) from error


def load_class(path: str) -> Any:
    """The class at a path as the settings have it, of a plugin or of another package. Raises
    ConfigError."""
    module, _, name = path.rpartition(".")
    try:
        found = (
            load(module.removeprefix(f"{PACKAGE}."))
            if module.startswith(f"{PACKAGE}.")
            else import_module(module)
        )
        return getattr(found, name)
    except (ImportError, AttributeError, ValueError) as error:
        raise ConfigError(f"{path} cannot be imported: {error}") from error


def check(components: Iterable[object]) -> None:
    """Import the plugins whose classes these are, by their paths in the settings. Raises
    ConfigError."""
    for component in components:
        if isinstance(component, str):
            module = moved_to(component.rpartition(".")[0])
            if module.startswith(f"{PACKAGE}."):
                load(module.removeprefix(f"{PACKAGE}."))


@cache
def find(name: str) -> Any | None:
    """The module; None if it cannot be imported, and the log says so once. For features that need
    no setting."""
    try:
        return load(name)
    except ConfigError as error:
        logger.warning("%s; the rest works without it", error)
        return None
