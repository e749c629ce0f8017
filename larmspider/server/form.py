"""A crawl in the fields of a form: `limits.pages`, `hosts.0.delay`; the schema names them all.

    values_of({"seeds": "http://wiki/", "hosts.0.host": "wiki", "hosts.0.delay": "2"})
    # {"seeds": ["http://wiki/"], "hosts": [{"host": "wiki", "delay": 2}]}

Text that is not a number stays text, so that the check of the crawl file (crawl_file.py) names it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.inspect import FloatType, IntType, ListType, LiteralType, Metadata, StrType, UnionType

from larmspider.server.config.crawl_file import Problem
from larmspider.server.config.crawl_schema import (
    MAX_HOSTS,
    Crawl,
    Host,
    Limits,
    Refresh,
    Schedule,
    fields_of,
)
from larmspider.server.config.schedule import EXAMPLES

TABLES: Mapping[str, type[Struct]] = {"schedule": Schedule, "refresh": Refresh, "limits": Limits}
"""Tables of a crawl file whose keys are fields."""
SPARE_HOSTS = 2
"""Empty rows for further hosts."""
_HINTS = {
    "seeds": "One a line.",
    "restrict": r"Example: https?://[^/]*\.wiki\.example/.* ",
    "exclude": r"One a line, such as https?://wiki\.example/archive/.* ",
    "languages": "Example: de en. Empty: all.",
    "schedule.run": f"Examples: {'; '.join(EXAMPLES)}; watch; five fields of cron. Empty: by hand.",
    "schedule.time_zone": "Example: Europe/Berlin.",
    "schedule.window": "Example: 22-6. Empty: the whole day.",
    "window": "Example: 22-6.",
    "host": "Example: wiki.example, or *.example.",
}
_LINES = {"seeds": 3, "exclude": 2}
_TOP = ("seeds", "restrict", "exclude", "languages", "collection")
_HOST_FIELD = re.compile(r"hosts\.(\d{1,3})\.(\w+)")
_HOST_KEY = re.compile(r"hosts\[(\d+)\]\.?(\w*)")


@dataclass(frozen=True, slots=True)
class FormField:
    """A field of the page. ``choices``: the values of a choice. ``lines``: whether the field takes
    several lines."""

    key: str
    label: str
    value: str
    hint: str = ""
    choices: Sequence[str] = ()
    lines: int = 0
    required: bool = False


@dataclass(frozen=True, slots=True)
class Group:
    """Fields under a title. ``folded``: the group is folded, because none of its fields has a
    value."""

    title: str
    fields: Sequence[FormField]
    folded: bool = False


def groups(
    crawl: Crawl | None, typed: Mapping[str, str] | None = None, secrets: Sequence[str] = ()
) -> list[Group]:
    """The form of a crawl. ``typed`` is a form that was refused; it says how many hosts there
    are."""
    typed = typed or {}
    found = [Group("", [_field(Crawl, name, name, crawl) for name in _TOP])]
    for table, kind in TABLES.items():
        values = getattr(crawl, table) if crawl is not None else None
        fields = [_field(kind, name, f"{table}.{name}", values) for name in fields_of(kind)]
        used = any(one.key in typed and typed[one.key].strip() for one in fields)
        used = used or any(f"error {one.key}" in typed for one in fields)
        folded = table != "schedule" and not used and values in (None, kind())
        found.append(Group(table.capitalize(), fields, folded))
    hosts = list(crawl.hosts) if crawl is not None else []
    rows = max([len(hosts), *(row + 1 for row in host_rows(typed))]) + SPARE_HOSTS
    for row in range(min(rows, MAX_HOSTS)):
        host = hosts[row] if row < len(hosts) else None
        fields = [
            _field(Host, name, f"hosts.{row}.{name}", host, secrets) for name in fields_of(Host)
        ]
        folded = host is None and row not in host_rows(typed)
        found.append(
            Group(f"Host {row + 1}" if not folded else "Settings for one more host", fields, folded)
        )
    return found


def _field(
    table: type[Struct], name: str, key: str, values: Any, secrets: Sequence[str] = ()
) -> FormField:
    about, value = fields_of(table)[name], shown(getattr(values, name, None))
    possible: Sequence[str] = choices(table, name)
    if table is Host and name == "secret":
        possible = ["", *dict.fromkeys([*([value] if value else []), *secrets])]
    elif possible and about.default in (None, ""):
        possible = ["", *possible]
    return FormField(
        key,
        about.text or name,
        value if values is not None or not possible else shown(about.default),
        _HINTS.get(key) or (_HINTS.get(name, "") if table is Host else ""),
        possible,
        _LINES.get(key, 0),
        key == "seeds",
    )


def values_of(form: Mapping[str, str], *, given: bool = False) -> dict[str, Any]:
    """The keys of a crawl file that a form names. An empty field takes the key out where the crawl
    is ``given``."""
    found: dict[str, Any] = {}
    for name in _TOP:
        _put(found, name, Crawl, name, form, given=given)
    for table, kind in TABLES.items():
        into: dict[str, Any] = {}
        for name in fields_of(kind):
            _put(into, name, kind, f"{table}.{name}", form, given=given)
        if into:
            found[table] = into
    rows = host_rows(form)
    hosts = [_host(form, row) for row in rows]
    if hosts or (given and any(_HOST_FIELD.fullmatch(key) for key in form)):
        found["hosts"] = hosts or None
    return found


def host_rows(form: Mapping[str, str]) -> list[int]:
    """The rows of hosts in which anything was typed; a choice alone is nothing."""
    texts = {name for name in fields_of(Host) if not choices(Host, name)}
    found = {
        int(key[1])
        for name, value in form.items()
        if (key := _HOST_FIELD.fullmatch(name)) and key[2] in texts and value.strip()
    }
    return sorted(row for row in found if row < MAX_HOSTS + SPARE_HOSTS)


def errors_of(form: Mapping[str, str], problems: Iterable[Problem]) -> dict[str, str]:
    """The text of each problem as ``error FIELD``, which the form shows beside the field."""
    rows, found = host_rows(form), dict[str, str]()
    for one in problems:
        key = one.key
        if (host := _HOST_KEY.fullmatch(key)) and int(host[1]) < len(rows):
            key = f"hosts.{rows[int(host[1])]}.{host[2] or 'host'}"
        found.setdefault(f"error {key.partition('[')[0]}", one.text)
    return found


def choices(table: type[Struct], name: str) -> tuple[str, ...]:
    """The values that a field accepts if it is a choice; empty for other fields."""
    kind = _kind(table, name)
    return tuple(map(str, kind.values)) if isinstance(kind, LiteralType) else ()


def shown(value: Any) -> str:
    """A value as the field shows it."""
    if value is None:
        return ""
    if isinstance(value, list):
        if len(value) == 2 and all(isinstance(one, int) for one in value):
            return "{}-{}".format(*value)
        return "\n".join(map(str, value))
    return f"{value:.15g}" if isinstance(value, float) else str(value)


def _put(
    into: dict[str, Any],
    name: str,
    table: type[Struct],
    key: str,
    form: Mapping[str, str],
    *,
    given: bool,
) -> None:
    if key not in form:
        return
    value = _value(_kind(table, name), form[key].strip())
    if value is not None or given:
        into[name] = value


def _host(form: Mapping[str, str], row: int) -> dict[str, Any]:
    found = {}
    for name in fields_of(Host):
        value = _value(_kind(Host, name), form.get(f"hosts.{row}.{name}", "").strip())
        if value is not None:
            found[name] = value
    if "secret" not in found:
        found = {name: one for name, one in found.items() if name not in ("auth", "scheme")}
    return found


def _kind(table: type[Struct], name: str) -> msgspec.inspect.Type:
    found = msgspec.inspect.type_info(fields_of(table)[name].type)
    while isinstance(found, (Metadata, UnionType)):
        found = found.type if isinstance(found, Metadata) else found.types[0]
    return found


def _value(kind: msgspec.inspect.Type, text: str) -> Any:
    if not text:
        return None
    if isinstance(kind, (IntType, FloatType)):
        return _number(text, whole=isinstance(kind, IntType))
    if isinstance(kind, ListType):
        item = kind.item_type
        while isinstance(item, Metadata):
            item = item.type
        if isinstance(item, StrType):
            return text.split()
        hours = re.fullmatch(r"(\d{1,2})\s*[-, ]\s*(\d{1,2})", text)
        return [int(hours[1]), int(hours[2])] if hours else text
    return text


def _number(text: str, *, whole: bool) -> int | float | str:
    with suppress(ValueError):
        return int(text)
    if not whole:
        with suppress(ValueError):
            return float(text)
    return text
