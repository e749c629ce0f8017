"""Changes a crawl file as a browser or the API may: comments, order and other keys stay.

edited(text, {"limits": {"pages": 100}})        # the new text
new_text({"seeds": ["http://wiki/"]})           # of a crawl that begins
"""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from typing import Any

import tomlkit
from tomlkit.exceptions import TOMLKitError
from tomlkit.items import AoT

from larmspider.errors import ConfigError


def edited(text: str, changes: Mapping[str, Any]) -> str:
    """``text`` with the ``changes``; a value of None takes a key out. A table changes key by key,
    a list as a whole. Raises ConfigError for text that is not TOML."""
    try:
        document = tomlkit.parse(text)
    except TOMLKitError as error:
        raise ConfigError(f"is not TOML: {error}") from None
    _merge(document, changes)
    return document.as_string()


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
        elif before is None or _plain(before) != value:
            into[key] = _item(value)


def _tables(before: Any, values: list[Mapping[str, Any]]) -> AoT:
    """An array of tables. Unchanged tables keep their comments."""
    kept = list(before) if isinstance(before, AoT) else []
    found = tomlkit.aot()
    for value in values:
        same = next((one for one in kept if _plain(one) == dict(value)), None)
        if same is not None:
            kept.remove(same)
            found.append(same)
            continue
        table = tomlkit.table()
        for key, one in value.items():
            if one is not None:
                table.add(key, _item(one))
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
