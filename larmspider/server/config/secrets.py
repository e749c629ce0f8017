"""Secrets by name: where they are kept, which hosts get them, and what the crawl gets of them.

    HOME/secrets/wiki, mode 0600:       hosts: wiki.example *.docs.example
                                        the password
    server.toml:                        [secrets]
                                        WIKI_PASSWORD = ["wiki.example"]

A crawl names a secret; it cannot name a path. A secret goes only to the hosts that its own line
names. A crawl gets its secrets by the environment, and a sites file that names the variables.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path

from larmspider.errors import ConfigError
from larmspider.fetch.sites.model import Secret
from larmspider.files import read_plain
from larmspider.server.config.crawl_edit import new_text
from larmspider.server.config.crawl_file import Problem
from larmspider.server.config.crawl_schema import Crawl, Host

FOLDER = "secrets"
MAX_BYTES = 65_536
"""Limit of a file; a Kerberos token has 12,000 bytes."""
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}")
_HOSTS = re.compile(r"hosts:\s*(.*)")
_EXPECTED = "expected 'hosts: wiki.example' in its first line and the secret in the second"


@dataclass(frozen=True, slots=True)
class NamedSecret:
    """``hosts`` are patterns; the secret goes to no other host."""

    name: str
    hosts: tuple[str, ...]
    secret: Secret

    def may_go_to(self, pattern: str) -> bool:
        """Whether all hosts of a pattern get it. A pattern with wildcards must be one of the
        secret's own."""
        wanted = pattern.lower()
        if "*" in wanted or "?" in wanted:
            return wanted in self.hosts
        host = wanted.rpartition("://")[2].rpartition("@")[2]
        bare = host.rpartition(":")[0] or host
        return any(fnmatchcase(one, own) for own in self.hosts for one in {host, bare})


@dataclass(frozen=True, slots=True)
class Secrets:
    """``listed``: environment variables of server.toml, with the hosts that get them."""

    home: Path
    listed: Mapping[str, list[str]] = field(default_factory=dict)

    def names(self) -> list[str]:
        """Sorted; what a form offers."""
        folder = self.home / FOLDER
        kept = [path.name for path in folder.glob("*")] if folder.is_dir() else []
        return sorted({name for name in kept if _NAME.fullmatch(name)} | set(self.listed))

    def of(self, name: str) -> NamedSecret:
        """Raises ConfigError, which shows no secret."""
        if not _NAME.fullmatch(name):
            raise ConfigError(
                f"secret {name[:64]!r}: expected a name of letters, digits, '-', '_' and '.'"
            )
        path = self.home / FOLDER / name
        if name in self.listed and not path.exists():
            if not (value := os.environ.get(name)):
                raise ConfigError(f"secret {name}: the server has no such environment variable")
            return NamedSecret(name, _patterns(self.listed[name]), Secret(value))
        return self._read(name, path)

    def _read(self, name: str, path: Path) -> NamedSecret:
        try:
            found = path.lstat()
            if stat.S_ISLNK(found.st_mode):
                raise ConfigError(f"secret {name}: {path} is a symbolic link: expected a file")
            if found.st_mode & 0o077:
                raise ConfigError(f"secret {name}: others may read {path}: run chmod 600 {path}")
            if found.st_size > MAX_BYTES:
                raise ConfigError(f"secret {name}: {path} has more than {MAX_BYTES:,} bytes")
            text = read_plain(path).decode("utf-8")
        except FileNotFoundError:
            names = ", ".join(self.names())
            known = f"one of {names}" if names else f"a file in the folder {FOLDER} of the home"
            raise ConfigError(
                f"secret {name}: there is none of that name: expected {known}"
            ) from None
        except OSError as error:
            why = error.strerror or error
            raise ConfigError(f"secret {name}: {path} cannot be read: {why}") from None
        except UnicodeDecodeError:
            raise ConfigError(f"secret {name}: {path} is not UTF-8") from None
        first, _, rest = text.partition("\n")
        value = rest.strip("\r\n")
        given = _HOSTS.fullmatch(first.strip())
        if given is None or not given[1].split() or not value or "\n" in value:
            raise ConfigError(f"secret {name}: {path}: {_EXPECTED}")
        return NamedSecret(name, _patterns(given[1].replace(",", " ").split()), Secret(value))


def _patterns(hosts: Iterable[str]) -> tuple[str, ...]:
    return tuple(host.lower() for host in hosts)


def variable_of(name: str) -> str:
    """The environment variable in which a crawl gets a secret."""
    return (
        "LARMSPIDER_SECRET_" + re.sub(r"[^A-Z0-9]", "_", name.upper()) + f"_{name.encode().hex()}"
    )


def problems_of(crawl: Crawl, secrets: Secrets) -> list[Problem]:
    """Secrets that are not there, or that may not go to their hosts."""
    found = []
    for number, host in enumerate(crawl.hosts):
        try:
            _checked(host, secrets)
        except ConfigError as error:
            found.append(Problem(f"hosts[{number}].secret", str(error)))
    return found


def _checked(host: Host, secrets: Secrets) -> NamedSecret | None:
    """The secret of a host. Raises ConfigError for one that is not there, or not for the host."""
    if not host.secret:
        return None
    found = secrets.of(host.secret)
    if not found.may_go_to(host.host):
        raise ConfigError(
            f"{host.secret} does not go to {host.host}: its own line names {' '.join(found.hosts)}"
        )
    return found


def sites_of(crawl: Crawl, secrets: Secrets) -> tuple[str, dict[str, str]]:
    """The sites file of a crawl and the environment that it names; "" without a secret. Raises
    ConfigError for a secret that is not there, or that may not go to its host."""
    tables, environment = [], {}
    for number, host in enumerate(crawl.hosts):
        try:
            found = _checked(host, secrets)
        except ConfigError as error:
            raise ConfigError(f"hosts[{number}].secret: {error}") from None
        if found is None:
            continue
        environment[variable_of(host.secret)] = found.secret.reveal()
        tables.append(_table(host))
    return (new_text({"site": tables}) if tables else ""), environment


def _table(host: Host) -> dict[str, object]:
    table: dict[str, object] = {"hosts": host.host, "scheme": host.scheme, "auth": host.auth}
    if host.auth == "bearer":
        return table | {"token_env": variable_of(host.secret)}
    return table | {"user": host.user, "password_env": variable_of(host.secret)}
