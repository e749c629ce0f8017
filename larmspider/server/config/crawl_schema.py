"""The schema of a crawl file: one source for checks, settings, forms, API and docs.

Each field has its limits, a text for people, and the setting that it becomes. A field that is
absent leaves its setting as it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from larmspider.access.rules import MAX_RULES
from larmspider.frontier.overrides import MAX_DELAY, MAX_THREADS

MAX_SEEDS, MAX_EXPRESSIONS, MAX_HOSTS = 1_000, 500, 500
MAX_URL, MAX_EXPRESSION = 2_083, 8_192
"""Characters."""
_MANY = 1_000_000_000


def _about(text: str, setting: str = "", **limits: Any) -> Meta:
    return Meta(description=text, extra={"setting": setting}, **limits)


_Hour = Annotated[int, Meta(ge=0, le=23)]
_Window = Annotated[list[_Hour], Meta(min_length=2, max_length=2)]
_Expression = Annotated[str, Meta(min_length=1, max_length=MAX_EXPRESSION)]
_Word = Annotated[str, Meta(min_length=1, max_length=35)]


class _Table(Struct, kw_only=True, forbid_unknown_fields=True, omit_defaults=True, frozen=True):
    pass


class Schedule(_Table, frozen=True):
    run: Annotated[
        str,
        _about("When the crawl runs: a sentence, five fields of cron, or watch", max_length=100),
    ] = ""
    time_zone: Annotated[
        str, _about("The time zone of the schedule and of the window; the server's if absent")
    ] = ""
    window: Annotated[_Window, _about("Hours of the day, from and to, in which it runs")] | None = (
        None
    )
    missed: Annotated[
        Literal["run", "skip"],
        _about("A run that was missed: run it once as soon as possible, or skip it"),
    ] = "run"


class Refresh(_Table, frozen=True):
    mode: Annotated[Literal["due", "all"], _about("Which pages each later run revisits")] = "due"
    per_day: Annotated[
        int,
        _about(
            "Visits a day; 0 is a thirtieth of the pages", "LARM_REFRESH_PER_DAY", ge=0, le=_MANY
        ),
    ] | None = None  # fmt: skip


class Limits(_Table, frozen=True):
    pages: Annotated[
        int, _about("Pages of the crawl; 0 is no limit", "LARM_MAX_PAGES", ge=0, le=_MANY)
    ] | None = None  # fmt: skip
    host_pages: Annotated[
        int, _about("Pages of a host; 0 is no limit", "LARM_HOST_MAX_PAGES", ge=0, le=_MANY)
    ] | None = None  # fmt: skip
    depth: Annotated[
        int, _about("Links from a seed; 0 is no limit", "DEPTH_LIMIT", ge=0, le=10_000)
    ] | None = None  # fmt: skip
    page_bytes: Annotated[
        int, _about("Bytes of a page", "DOWNLOAD_MAXSIZE", ge=1_000, le=1 << 31)
    ] | None = None  # fmt: skip
    document_bytes: Annotated[
        int,
        _about("Bytes of a document", "LARM_DOCUMENT_MAXSIZE_BYTES", ge=1_000, le=1 << 31),
    ] | None = None  # fmt: skip
    timeout: Annotated[
        int, _about("Seconds of a fetch", "DOWNLOAD_TIMEOUT", ge=1, le=3_600)
    ] | None = None  # fmt: skip
    threads: Annotated[
        int, _about("Fetches at a time", "CONCURRENT_REQUESTS", ge=1, le=MAX_THREADS)
    ] | None = None  # fmt: skip
    connections: Annotated[
        int,
        _about(
            "Fetches from one host at a time",
            "CONCURRENT_REQUESTS_PER_DOMAIN",
            ge=1,
            le=MAX_THREADS,
        ),
    ] | None = None  # fmt: skip
    delay: Annotated[
        float,
        _about("Seconds between two requests to a host", "DOWNLOAD_DELAY", ge=0, le=MAX_DELAY),
    ] | None = None  # fmt: skip


class Host(_Table, frozen=True):
    host: Annotated[
        str, _about("host or host:port; * and ? match any characters", min_length=1, max_length=260)
    ]
    delay: Annotated[
        float, _about("Seconds between two requests", ge=0, le=MAX_DELAY)
    ] | None = None  # fmt: skip
    connections: Annotated[
        int, _about("Fetches at a time", ge=1, le=MAX_THREADS)
    ] | None = None  # fmt: skip
    budget: Annotated[int, _about("Pages of the host", ge=1, le=_MANY)] | None = None
    window: Annotated[_Window, _about("Hours of the day, from and to")] | None = None
    nofollow: Annotated[
        Literal["obey", "ignore"], _about("Links that their page asks not to follow")
    ] | None = None  # fmt: skip
    secret: Annotated[
        str, _about("The name of a password or token that the server has", max_length=64)
    ] = ""
    auth: Annotated[
        Literal["basic", "digest", "ntlm", "bearer"], _about("How the secret is sent")
    ] = "basic"
    user: Annotated[str, _about("The user of the password", max_length=200)] = ""
    scheme: Annotated[Literal["https", "http"], _about("Send the secret over this scheme only")] = (
        "https"
    )


class RunOn(_Table, frozen=True):
    workers: Annotated[
        int, _about("Processes that share the crawl through Redis, on each node", ge=1, le=64)
    ] = 1
    nodes: Annotated[
        list[Annotated[str, Meta(min_length=1, max_length=64)]],
        _about("Nodes of server.toml that run it; this machine if absent", max_length=64),
    ] = []


class Crawl(_Table, frozen=True):
    """A crawl file."""

    seeds: Annotated[
        list[Annotated[str, Meta(min_length=1, max_length=MAX_URL)]],
        _about("URLs where the crawl starts", "LARM_START", min_length=1, max_length=MAX_SEEDS),
    ] = []
    restrict: Annotated[
        str,
        _about(
            "The scope: an expression that a whole URL matches; empty is the hosts of the seeds",
            "LARM_RESTRICT",
            max_length=MAX_EXPRESSION,
        ),
    ] = ""
    exclude: Annotated[
        list[_Expression],
        _about(
            "Expressions of URLs that are not fetched", "LARM_EXCLUDE", max_length=MAX_EXPRESSIONS
        ),
    ] = []
    languages: Annotated[
        list[_Word],
        _about(
            "Follow the links of pages in these languages only",
            "LARM_FOLLOW_LANGUAGES",
            max_length=50,
        ),
    ] = []
    collection: Annotated[
        str, _about("The name in the search; the name of the crawl if absent", max_length=60)
    ] = ""
    kind: Annotated[
        Literal["crawl", "push"],
        _about("crawl: pages are fetched; push: documents are sent to the server"),
    ] = "crawl"
    schedule: Schedule = Schedule()
    refresh: Refresh = Refresh()
    limits: Limits = Limits()
    run: RunOn = RunOn()
    hosts: Annotated[list[Host], Meta(max_length=MAX_HOSTS)] = []
    access: Annotated[
        dict[str, list[str]],
        _about(
            "Who finds which pages, by URL; from the file on disk only",
            "LARM_ACCESS_RULES",
            max_length=MAX_RULES,
        ),
    ] = {}
    settings: Annotated[
        dict[str, Any], Meta(description="Further settings by name; from the file on disk only")
    ] = {}


PUSH_KEYS = frozenset({"kind", "collection", "settings"})
"""Keys that mean something for ``kind = "push"``."""
WRITABLE = frozenset(
    {
        "kind",
        "seeds",
        "restrict",
        "exclude",
        "languages",
        "collection",
        "schedule",
        "refresh",
        "limits",
        "hosts",
    }
)
"""Keys that a browser and the API may write; ``settings`` names code, commands, paths and
addresses, ``access`` who finds which pages."""


@dataclass(frozen=True, slots=True)
class Field:
    """``setting`` is the setting that the field becomes, "" for none; ``expected`` what it accepts,
    in words."""

    name: str
    type: Any
    text: str
    setting: str
    expected: str
    required: bool
    default: Any = None


@cache
def fields_of(table: type[Struct]) -> Mapping[str, Field]:
    """The fields of a table, by name."""
    found = {}
    for one in msgspec.structs.fields(table):
        info = msgspec.inspect.type_info(one.type)
        about: dict[str, Any] = {}
        for part in (info, *getattr(info, "types", ())):
            if isinstance(part, msgspec.inspect.Metadata):
                about = {**(part.extra_json_schema or {}), **(part.extra or {})}
        found[one.name] = Field(
            one.name,
            one.type,
            str(about.get("description", "")),
            str(about.get("setting", "")),
            expectation(one.type),
            one.required,
            None if one.default is msgspec.NODEFAULT else one.default,
        )
    return found


def settings_in(table: Struct) -> Iterator[tuple[str, Any]]:
    """The settings that the fields of a table become, with their values."""
    for name, field in fields_of(type(table)).items():
        value = getattr(table, name)
        if field.setting and value not in (None, "", [], {}):
            yield field.setting, value


def expectation(kind: Any) -> str:
    """The values that a field accepts, in words.

    >>> expectation(Annotated[int, Meta(ge=1, le=9)] | None)
    'a whole number from 1 to 9'
    """
    return _expected(msgspec.inspect.type_info(kind))


def _expected(info: msgspec.inspect.Type) -> str:
    match info:
        case msgspec.inspect.Metadata():
            return _expected(info.type)
        case msgspec.inspect.UnionType():
            kinds = [one for one in info.types if not isinstance(one, msgspec.inspect.NoneType)]
            return " or ".join(map(_expected, kinds))
        case msgspec.inspect.IntType() | msgspec.inspect.FloatType():
            whole = "a whole number" if isinstance(info, msgspec.inspect.IntType) else "a number"
            return whole if info.le is None else f"{whole} from {info.ge:,} to {info.le:,.15g}"
        case msgspec.inspect.StrType():
            if info.max_length is None:
                return "a string"
            least = "" if not info.min_length else f"{info.min_length} to "
            return f"a string of {least or 'at most '}{info.max_length:,} characters"
        case msgspec.inspect.LiteralType():
            return "one of " + ", ".join(map(str, info.values))
        case msgspec.inspect.ListType():
            of = f", each {_expected(info.item_type)}"
            if info.min_length and info.min_length == info.max_length:
                return f"a list of {info.min_length}{of}"
            least = f"{info.min_length or 0} to " if info.max_length is not None else ""
            most = f" of {least}{info.max_length:,}" if info.max_length is not None else ""
            return f"a list{most}{of}"
        case msgspec.inspect.DictType() | msgspec.inspect.StructType():
            return "a table"
        case _:
            return "another value"
