"""Changes a crawl file as a browser or the API may: comments, order and other keys stay.

edited(text, {"limits": {"pages": 100}})        # the new text
new_text({"seeds": ["http://wiki/"]})           # of a crawl that begins
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, MutableMapping
from contextlib import suppress
from typing import Any

import tomlkit
from tomlkit.exceptions import TOMLKitError
from tomlkit.items import AoT, Array

from larmspider.errors import ConfigError


def edited(text: str, changes: Mapping[str, Any]) -> str:
    """``text`` with the ``changes``; a value of None takes a key out. A table changes key by key,
    a list item by item. Raises ConfigError for text that is not TOML, and for values that TOML
    does not have."""
    try:
        document = tomlkit.parse(text)
    except TOMLKitError as error:
        raise ConfigError(f"is not TOML: {error}") from None
    try:
        _merge(document, changes)
        return document.as_string()
    except (TOMLKitError, RecursionError) as error:
        raise ConfigError(f"cannot be written as TOML: {error}") from None


def new_text(values: Mapping[str, Any]) -> str:
    """The text of a file with these values."""
    return edited("", values)


def _merge(into: MutableMapping[str, Any], changes: Mapping[str, Any]) -> None:
    for key, value in changes.items():
        before = into.get(key)
        if value is None:
            into.pop(key, None)
        elif isinstance(value, Mapping):
            if not isinstance(before, MutableMapping):
                into[key] = tomlkit.table()
            _merge(into[key], value)
            if not into[key]:
                del into[key]
        elif isinstance(value, list) and value and all(isinstance(x, Mapping) for x in value):
            into[key] = _tables(before, value)
        elif isinstance(before, Array) and isinstance(value, list):
            if not _merge_list(before, value):
                into[key] = _item(value)
        elif before is None or _plain(before) != value:
            into[key] = _item(value)


def _merge_list(array: Array, values: list[Any]) -> bool:
    """Take items out and append others: the comments of all other items stay. False if the array
    does not become ``values`` so: they are in another order, or commas begin its lines."""
    for position in reversed(range(len(array))):
        if _plain(array[position]) not in values:
            del array[position]
    for value in values[len(array) :]:
        array.append(value)
    with suppress(tomllib.TOMLDecodeError):
        return bool(tomllib.loads(f"array = {array.as_string()}\n")["array"] == values)
    return False


def _tables(before: Any, values: list[Mapping[str, Any]]) -> AoT:
    """An array of tables. A table keeps its comments if it is the same, or of the same host."""
    kept = list(before) if isinstance(before, AoT) else []
    free = [one for one in kept if _plain(one) not in values]
    found = tomlkit.aot()
    for value in values:
        equal = (one for one in kept if _plain(one) == dict(value))
        of_host = (one for one in free if one.get("host") == value.get("host"))
        table = next(equal, None) or next(of_host, None) or tomlkit.table()
        kept = [one for one in kept if one is not table]
        free = [one for one in free if one is not table]
        _merge(table, {key: None for key in table if key not in value} | dict(value))
        found.append(table)
    return found


def _item(value: Any) -> Any:
    if isinstance(value, list):
        array = tomlkit.array()
        array.extend(value)
        return array.multiline(multiline=len(value) > 1)
    return tomlkit.item(value)


def _plain(item: Any) -> Any:
    return item.unwrap() if hasattr(item, "unwrap") else item
