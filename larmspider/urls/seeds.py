"""Seeds: where a crawl starts. One or more URLs separated by white space, or ``@file``.

>>> read_seeds("http://wiki/ http://docs.example/start")
['http://wiki/', 'http://docs.example/start']
>>> read_seeds("@seeds.txt")          # one URL a line, # begins a comment
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from larmspider.errors import ConfigError, InvalidURL
from larmspider.urls.canonical import canonicalize
from larmspider.urls.file_urls import is_file
from larmspider.urls.resolve import resolve

# Up to the last "@" before path, query and fragment; WHATWG takes any number of slashes.
_USERINFO = re.compile(r"((?:[a-z][a-z0-9+.-]*:[/\\]+|https?:)?)[^/\\?#]*@", re.IGNORECASE)

# other words before a colon may be a host: localhost:80
_NOT_CRAWLED = re.compile(r"(mailto|javascript|data|tel):", re.IGNORECASE)


def read_seeds(start: str) -> list[str]:
    """The seeds in order, as they will be fetched: ``http:wiki`` is ``http://wiki/``.

    Raises ConfigError, naming file and line, for a text that cannot be a seed.
    """
    start = start.strip()
    if start.startswith("@"):
        return _read_file(Path(start[1:]).expanduser())
    return [_checked(seed, "start") for seed in start.split()]


def _read_file(path: Path) -> list[str]:
    try:
        text = path.read_text("utf-8-sig")
    except OSError as error:
        raise ConfigError(f"start=@{path}: {error.strerror or error}") from None
    except UnicodeDecodeError as error:
        raise ConfigError(f"start=@{path}: not UTF-8 at byte {error.start}") from None
    seeds = list(_seeds_of(text.splitlines(), path))
    if not seeds:
        raise ConfigError(
            f"start=@{path}: no URL in it; expected one URL a line, # begins a comment"
        )
    return seeds


def _seeds_of(lines: Iterable[str], path: Path) -> Iterable[str]:
    for number, line in enumerate(lines, 1):
        seed = line.strip()
        if seed.startswith("#"):
            continue
        seed = seed.split(" #", 1)[0].split("\t#", 1)[0].strip()
        if seed:
            yield _checked(seed, f"{path}:{number}")


def _checked(seed: str, where: str) -> str:
    if other := _NOT_CRAWLED.match(seed):
        raise ConfigError(
            f"{where}: {seed!r} is not a seed: {other[1]} is not crawled;"
            " expected an absolute http or https URL"
        )
    if not is_file(seed) and _USERINFO.match(seed):
        shown = _USERINFO.sub(r"\1***@", seed, count=1)
        raise ConfigError(
            f"{where}: {shown!r} is not a seed: it holds a user name"
            " or password, which belong in LARM_SITES_FILE (docs/sign-in.md);"
            " expected an absolute http or https URL without them"
        )
    try:
        canonicalize(seed)
    except InvalidURL as error:
        if "@" in seed:  # it may hold a password
            raise ConfigError(f"{where}: '***@{seed.rpartition('@')[2]}' is not a seed") from None
        hint = "" if "://" in seed else f"; write {_as_url(seed)}"
        why = str(error).partition(": ")[0]  # the URL follows
        if is_file(seed):
            raise ConfigError(
                f"{where}: {seed!r} is not a seed: {why}; expected a folder or file of this"
                " machine, such as file:///srv/share/ (docs/files.md)"
            ) from None
        raise ConfigError(
            f"{where}: {seed!r} is not a seed: {why}; expected an absolute http or https URL{hint}"
        ) from None
    url = resolve(seed, "")
    assert url is not None  # it has a canonical form
    return url


def _as_url(seed: str) -> str:
    r"""A host, a host with a path, or a share as ``\\nas\share``."""
    if seed.startswith("\\\\"):
        return "smb:" + seed.replace("\\", "/")
    return f"http://{seed.lstrip('/')}"
