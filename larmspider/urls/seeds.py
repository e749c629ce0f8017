"""Seeds: where a crawl starts. One or more URLs separated by white space, or ``@file``.

>>> read_seeds("http://wiki/ http://docs.example/start")
['http://wiki/', 'http://docs.example/start']
>>> read_seeds("@seeds.txt")          # one URL a line, # begins a comment
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from larmspider.errors import ConfigError, InvalidURL
from larmspider.urls.canonical import canonicalize


def read_seeds(start: str) -> list[str]:
    """The seeds in order. Raises ConfigError, naming file and line, for what cannot be a seed."""
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
            f"start=@{path}: no URL in it; one a line is expected, # begins a comment"
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
    try:
        canonicalize(seed)
    except InvalidURL as error:
        hint = "" if "://" in seed else f"; write http://{seed}"
        raise ConfigError(
            f"{where}: {seed!r} is no seed: {error}; an absolute http or https URL is{hint}"
        ) from None
    return seed
