"""Reads and checks settings; a bad value is an error that names the accepted values.

>>> size = options.integer(settings, "LARM_PAGEFILE_BYTES", minimum=1)
ConfigError: LARM_PAGEFILE_BYTES=0: expected an integer >= 1
"""

from __future__ import annotations

import errno
import importlib
import json
import logging
import os
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from difflib import get_close_matches
from functools import cache
from math import inf
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Any

from larmspider.errors import ConfigError, CrawlDirError
from larmspider.files import make_folder

if TYPE_CHECKING:
    from typing import TypeAlias

    from scrapy.settings import BaseSettings

    Settings: TypeAlias = BaseSettings

_TRUE = {"1", "true", "yes", "on"}
_FALSE = {"0", "false", "no", "off", ""}
_OPTIONAL = ("LARM_LOWERCASE_PATH",)
"""Booleans that are None if they are not set."""
_EXPRESSIONS = ("LARM_EXCLUDE",)
"""Lists of regular expressions: commas separate no entries."""
_FRACTIONS = ("_TIMEOUT", "_DELAY")
"""Endings of Scrapy's settings in seconds that may be fractions although the default is an
integer."""


def integer(settings: BaseSettings, name: str, *, minimum: int, maximum: int | None = None) -> int:
    """The setting as an integer in [minimum, maximum]."""
    return as_integer(name, _get(settings, name), minimum=minimum, maximum=maximum)


def as_integer(name: str, value: Any, *, minimum: int, maximum: int | None = None) -> int:
    """``value`` of a setting or argument called ``name`` as an integer in [minimum, maximum]."""
    wanted = f"an integer {_range(minimum, maximum)}"
    try:
        number = int(value)
    except (TypeError, ValueError, OverflowError):
        raise _refused(name, value, wanted) from None
    if number != _as_float(value) or number < minimum or (maximum is not None and number > maximum):
        raise _refused(name, value, wanted)
    return number


def seconds(
    settings: BaseSettings,
    name: str,
    *,
    minimum: float,
    maximum: float | None = None,
    of: str = "seconds",
) -> float:
    """The setting as a number ``of`` something in [minimum, maximum], never infinite."""
    value = _get(settings, name)
    number = _as_float(value)
    wanted = f"a number of {of} {_range(minimum, maximum)}"
    if number is None or not minimum <= number < inf or (maximum is not None and number > maximum):
        raise _refused(name, value, wanted)
    return number


def share(settings: BaseSettings, name: str) -> float:
    """The setting as a fraction > 0 and <= 1."""
    value = _get(settings, name)
    number = _as_float(value)
    if number is None or not 0 < number <= 1:
        raise _refused(name, value, "a fraction > 0 and <= 1")
    return number


def mapping(settings: BaseSettings, name: str) -> dict[str, Any]:
    """The setting as a mapping; on the command line a JSON object."""
    value = _get(settings, name)
    if isinstance(value, str):
        try:
            value = json.loads(value or "{}")
        except ValueError:
            value = None
    if not isinstance(value, Mapping):
        raise _refused(name, _get(settings, name), "a mapping (JSON on the command line)")
    return dict(value)


def boolean(settings: BaseSettings, name: str) -> bool:
    """The setting as a yes or no; on the command line 1/0, yes/no, true/false, on/off."""
    return as_boolean(name, _get(settings, name))


def scrapys_boolean(settings: BaseSettings, name: str) -> bool:
    """boolean() for a setting of Scrapy's, whose getbool() takes integers too."""
    value = _get(settings, name)
    with suppress(TypeError, ValueError, OverflowError):
        return bool(int(value))
    return as_boolean(name, value)


def settle_scrapys(settings: BaseSettings, prefix: str = "") -> None:
    """Check Scrapy's settings that begin with ``prefix``, and convert booleans: Scrapy knows fewer
    words for them (no "yes", no "off"). Raises ConfigError."""
    for name, value in check_scrapys(settings, prefix).items():
        if settings.get(name) is not value:
            settings.set(name, value, priority=settings.getpriority(name) or 0)


def check_scrapys(settings: BaseSettings, prefix: str = "") -> dict[str, bool]:
    """Check that Scrapy's settings have the types of their defaults (number, boolean, log level),
    as Scrapy itself would end with a traceback. Returns the booleans. Raises ConfigError."""
    found = {}
    for name, default in _scrapys_defaults().items():
        if not name.startswith(prefix) or settings.get(name) is None:
            continue
        if isinstance(default, bool) or name.endswith("_ENABLED"):
            found[name] = scrapys_boolean(settings, name)
        elif isinstance(default, float) or name.endswith(_FRACTIONS):
            seconds(settings, name, minimum=0)
        elif isinstance(default, int):
            integer(settings, name, minimum=-(1 << 31) if "PRIORITY" in name else 0)
        else:
            log_level(settings, name)
    return found


@cache
def _scrapys_defaults() -> Mapping[str, Any]:
    """Numbers, booleans and log levels; reading some of the others makes Scrapy warn."""
    module = importlib.import_module("scrapy.settings.default_settings")
    found = {name: getattr(module, name) for name in dir(module) if name.isupper()}
    return {
        name: value
        for name, value in found.items()
        if isinstance(value, int | float) or name.endswith("LOG_LEVEL")
    }


def as_boolean(name: str, value: Any) -> bool:
    """``value`` of a setting or argument called ``name`` as a boolean."""
    word = str(value if value is not None else "").strip().lower()
    if word in _TRUE:
        return True
    if word in _FALSE:
        return False
    raise _refused(name, value, "yes or no (1/0, true/false, on/off)")


def strings(settings: BaseSettings, name: str) -> list[str]:
    """The setting as a list of strings; on the command line separated by commas, or JSON."""
    value = given = _get(settings, name)
    if isinstance(value, str) and value.strip().startswith("["):
        with suppress(ValueError):  # [::1] is not JSON
            value = json.loads(value)
    if isinstance(value, str):
        return [part.strip() for part in value.split(",") if part.strip()]
    if isinstance(value, Iterable) and all(isinstance(part, str) for part in value):
        return list(value)
    wanted = "a list of strings (separated by commas, or JSON, on the command line)"
    raise _refused(name, given, wanted)


def words(settings: BaseSettings, name: str) -> list[str]:
    """The setting as a list of strings. A string has no blanks, but may have commas. On the command
    line the strings are separated by white space, or are a JSON list."""
    value = given = _get(settings, name)
    if isinstance(value, str) and value.strip().startswith("["):
        with suppress(ValueError):  # an expression may begin so, too
            listed = json.loads(value)
            value = listed if all(isinstance(part, str) for part in listed) else value
    if isinstance(value, str):
        return value.split()
    if isinstance(value, list | tuple) and all(
        isinstance(part, str) and part.split() == [part] for part in value
    ):
        return list(value)
    raise _refused(
        name, given, "a list of expressions without blanks (JSON, or separated by blanks)"
    )


def text(settings: BaseSettings, name: str) -> str:
    """The setting as a string; None is the empty string."""
    value = _get(settings, name)
    if value is None or isinstance(value, str):
        return value or ""
    raise _refused(name, value, "a string")


def raw(settings: BaseSettings, name: str) -> Any:
    """The setting as it was given."""
    return _get(settings, name)


def choice(settings: BaseSettings, name: str, accepted: Collection[str]) -> str:
    """The setting as one of ``accepted``."""
    value = text(settings, name)
    if value not in accepted:
        raise _refused(name, value, _one_of(accepted))
    return value


def log_level(settings: BaseSettings, name: str = "LOG_LEVEL") -> int | str:
    """The setting as logging takes it: a number, or a name in capitals."""
    level = str(settings.get(name)).upper()
    if not level.isdecimal() and level not in logging.getLevelNamesMapping():
        raise _refused(name, level, "DEBUG, INFO, WARNING, ERROR or CRITICAL")
    return int(level) if level.isdecimal() else level


def typed(settings: BaseSettings, name: str) -> Any:
    """The setting converted to the type of its default, as the command line gives strings. A value
    that cannot be converted stays as it is; the reader of the setting refuses it."""
    value, default = _get(settings, name), defaults().get(name)
    with suppress(ConfigError, TypeError, ValueError):
        if isinstance(default, bool) or (name in _OPTIONAL and value is not None):
            return as_boolean(name, value)
        if isinstance(default, int | float):
            number = float(value)
            return int(number) if isinstance(default, int) and number.is_integer() else number
        if isinstance(default, list):
            return (words if name in _EXPRESSIONS else strings)(settings, name)
        if isinstance(default, dict):
            return mapping(settings, name)
    return value


def crawl_root(settings: BaseSettings) -> Path:
    """The directory of the crawl, LARM_DIR, as an absolute path; it need not exist."""
    name = text(settings, "LARM_DIR")
    if not name.strip() or "\0" in name:
        raise _refused("LARM_DIR", name, "the path of a directory")
    return Path(name).expanduser().absolute()


def clock(settings: BaseSettings) -> Callable[[], float]:
    """The clock of the frontier: FRONTIER_CLOCK of tests and benchmarks, else time.time. The times
    of visits and approvals are compared with no other clock."""
    found: Callable[[], float] = settings.get("FRONTIER_CLOCK") or time.time
    return found


def many_workers(settings: BaseSettings) -> bool:
    """Whether the crawl is shared by workers, with its frontier in Redis."""
    return any(text(settings, name).strip() for name in ("REDIS_URL", "REDIS_HOST"))


def larm_dir(settings: BaseSettings) -> Path:
    """The directory to which this process writes: LARM_DIR or, with many workers, this worker's
    directory in it. Readers of a crawl begin at `crawl_root`."""
    root = crawl_root(settings)
    return root / text(settings, "LARM_WORKER") if many_workers(settings) else root


def writable_dir(path: Path) -> Path:
    """``path``, made if missing. Raises ConfigError if files cannot be written there."""
    with _writing(path):
        make_folder(path)
        _try_to_write(path)
    return path


def check_writable(path: Path) -> None:
    """Raise ConfigError if ``path`` could not be made or written, judged by its nearest existing
    parent. Nothing is made: to remove it again could disturb a worker that is starting."""
    with _writing(path):
        _try_to_write(next(folder for folder in (path, *path.parents) if _is_there(folder)))


def _is_there(path: Path) -> bool:
    try:
        path.lstat()
    except FileNotFoundError:
        return False
    return True


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise CrawlDirError(
                f"LARM_DIR={path} cannot be written: {error.strerror}; make room, and run the same"
                " command again"
            ) from None
        raise ConfigError(
            f"LARM_DIR={path} cannot be written: {error.strerror or error};"
            " name a directory that this user may write, with -s LARM_DIR=..."
        ) from None


def _try_to_write(folder: Path) -> None:
    """Try with an unnamed file: others may be looking at the directory, or remove it.

    TemporaryFile() makes a named file where the directory is gone for a moment.
    """
    if hasattr(os, "O_TMPFILE"):
        try:
            os.close(os.open(folder, os.O_RDWR | os.O_TMPFILE, 0o600))
            return
        except OSError as error:
            if error.errno not in (errno.EISDIR, errno.EOPNOTSUPP, errno.EINVAL):
                raise
    with TemporaryFile(dir=folder):
        pass


@cache
def defaults() -> Mapping[str, Any]:
    """Every setting that larmspider/settings.py sets, by name."""
    module = importlib.import_module("larmspider.settings")
    return {name: getattr(module, name) for name in dir(module) if name.isupper()}


def check_names(settings: BaseSettings) -> None:
    """Raise ConfigError for an unknown setting that begins with LARM_ (a typo)."""
    known = [name for name in defaults() if name.startswith("LARM_")]
    for name in settings:
        if name.startswith("LARM_") and name not in known:
            near = get_close_matches(name, known, n=1)
            hint = f"; did you mean {near[0]}?" if near else ""
            raise ConfigError(f"{name} is not a setting of larmspider{hint} (docs/settings.md)")


def _get(settings: BaseSettings, name: str) -> Any:
    """The setting, or our default: a foreign project need not repeat the LARM_ settings."""
    return settings.get(name) if name in settings else defaults().get(name)


def _range(minimum: float, maximum: float | None) -> str:
    return f">= {minimum:.15g}" if maximum is None else f"from {minimum:.15g} to {maximum:.15g}"


def _one_of(accepted: Iterable[str]) -> str:
    """``"" or anyway``; ``one of backlinks, breadth-first, pagerank``."""
    words = [word or '""' for word in sorted(accepted)]
    return " or ".join(words) if len(words) < 3 else f"one of {', '.join(words)}"


def _as_float(value: Any) -> float | None:
    try:
        return float(value)
    except (TypeError, ValueError):
        return None


def _refused(name: str, value: Any, wanted: str) -> ConfigError:
    between = " " if name.startswith("-") else "="
    return ConfigError(f"{name}{between}{value}: expected {wanted}")
