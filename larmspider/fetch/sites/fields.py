"""Reads one table of the sites file: each key once, of the right type, errors with file and key.

table = SiteTable(values, "sites.toml [[site]] 2 (wiki.example)", folder)
table.text("tls_min")           # or None
table.secret("password")        # from password, password_env or password_file
table.check_names()             # a key that nobody asked for is an error

No message shows the value of a key that may hold a secret.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from larmspider.errors import ConfigError
from larmspider.fetch.sites.secret import Secret

_FORMS = 'a string, { env = "NAME" } or { file = "PATH" } is'


class SiteTable:
    """``where`` begins each message; paths are relative to ``folder``, that of the sites file."""

    def __init__(self, values: Mapping[str, Any], where: str, folder: Path) -> None:
        self.where = where
        self.has_inline_secret = False
        self.secret_files: list[Path] = []
        """Files that were read for a secret."""
        self._values = values
        self._folder = folder
        self._asked: set[str] = set()

    def refuse(self, key: str, what: str) -> ConfigError:
        """The error for a key: ``what`` says what is wrong and what is accepted."""
        return ConfigError(f"{self.where}: {key} {what}")

    def has(self, key: str) -> bool:
        return key in self._values

    def text(self, key: str, accepted: Collection[str] = ()) -> str | None:
        """A string, one of ``accepted`` where that is not empty."""
        value = self._get(key)
        if value is None:
            return None
        if not isinstance(value, str) or (accepted and value not in accepted):
            wanted = f"one of {', '.join(accepted)}" if accepted else "a string"
            shown = f"= {value!r} " if isinstance(value, str) else ""  # a table may hold secrets
            raise self.refuse(key, f"{shown}is not accepted: {wanted} is")
        return value

    def boolean(self, key: str) -> bool | None:
        value = self._get(key)
        if value is None or isinstance(value, bool):
            return value
        raise self.refuse(key, f"= {value!r} is not accepted: true or false is")

    def texts(self, key: str) -> list[str] | None:
        """A string or a list of them."""
        value = self._get(key)
        if isinstance(value, str):
            return [value]
        if value is None or (isinstance(value, list) and all(isinstance(x, str) for x in value)):
            return value
        raise self.refuse(key, "is not accepted: a string or a list of strings is")

    def file(self, key: str) -> Path | None:
        """A file that can be read, as an absolute path."""
        name = self.text(key)
        if name is None:
            return None
        path = self._path(key, name)
        self._read(key, path, f"= '{path}'")
        return path

    def secret(self, key: str) -> Secret | None:
        """From ``key``, ``key``_env or ``key``_file, at most one of them."""
        keys = [name for name in (key, f"{key}_env", f"{key}_file") if name in self._values]
        self._asked.update(keys)
        if not keys:
            return None
        if len(keys) > 1:
            raise self.refuse(" and ".join(keys), "are given: one of them is accepted")
        kind = keys[0].removeprefix(key).removeprefix("_")
        value = self._values[keys[0]]
        return self._secret(keys[0], {kind: value} if kind else value)

    def secrets(self, key: str) -> tuple[tuple[str, Secret], ...] | None:
        """A table from names to secrets, each a string or { env = ... } or { file = ... }."""
        value = self._get(key)
        if value is None:
            return None
        if not isinstance(value, dict) or not value:
            raise self.refuse(key, "is not accepted: a table from names to values is")
        return tuple((name, self._secret(f"{key}.{name}", given)) for name, given in value.items())

    def check_names(self) -> None:
        """Raises ConfigError for keys that nobody has asked for."""
        for key in self._values:
            if key not in self._asked:
                near = get_close_matches(key, self._asked, n=1)
                hint = f"; did you mean {near[0]}?" if near else ""
                raise self.refuse(repr(key), f"is not known{hint} (docs/sites.md)")

    def _get(self, key: str) -> Any:
        self._asked.add(key)
        return self._values.get(key)

    def _secret(self, key: str, given: object) -> Secret:
        if isinstance(given, str):
            self.has_inline_secret = True
            return Secret(given)
        if isinstance(given, dict) and len(given) == 1:
            kind, name = next(iter(given.items()))
            if isinstance(name, str) and kind == "env":
                return self._from_environment(key, name)
            if isinstance(name, str) and kind == "file":
                return self._from_file(key, name)
        raise self.refuse(key, f"is not accepted: {_FORMS}")

    def _from_environment(self, key: str, name: str) -> Secret:
        value = os.environ.get(name)
        if not value:  # the name is not shown: it may be the secret, put in the wrong place
            raise self.refuse(key, "names an environment variable that is not set, or empty")
        return Secret(value)

    def _from_file(self, key: str, name: str) -> Secret:
        path = self._path(key, name)
        try:
            value = self._read(key, path).decode("utf-8-sig").rstrip("\r\n")
        except UnicodeDecodeError:
            raise self.refuse(key, "names a file that is not UTF-8") from None
        if not value or "\n" in value:
            raise self.refuse(key, "names a file that is not one line, the secret")
        self.secret_files.append(path)
        return Secret(value)

    def _path(self, key: str, name: str) -> Path:
        if not name or "\0" in name:
            raise self.refuse(key, "is not accepted: the path of a file is")
        return (self._folder / Path(name).expanduser()).absolute()

    def _read(self, key: str, path: Path, shown: str = "") -> bytes:
        try:
            return path.read_bytes()
        except OSError as error:
            reason = error.strerror or error
            raise self.refuse(
                key,
                f"{shown or 'names a file that'} cannot be read: {reason};"
                f" paths are relative to {self._folder}",
            ) from None
