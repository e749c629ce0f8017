"""Acts on the crawls of a home, as the browser and the API do them: each is in the audit log.

acts = Crawls(manager, audit)
acts.create("wiki", {"seeds": ["http://wiki/"]}, by)      # ConfigError, CrawlFileError
"""

from __future__ import annotations

import hashlib
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from larmspider.crawl.state import RunState, State
from larmspider.crawl.worker_dirs import open_crawl
from larmspider.errors import ConfigError, HttpError, InvalidURL, LarmspiderError
from larmspider.frontier.shared_gaps import EVERY_HOST
from larmspider.server.api.api_types import ChangeAnswer
from larmspider.server.audit import Audit
from larmspider.server.config.changes import changes
from larmspider.server.config.crawl_edit import edited
from larmspider.server.config.crawl_file import (
    CrawlFileError,
    not_writable,
    parse_crawl,
    table_of,
)
from larmspider.server.config.crawl_schema import Crawl
from larmspider.server.config.scope_check import scope_problems, scope_warnings
from larmspider.server.config.secrets import Secrets, problems_of
from larmspider.server.home import CrawlEntry
from larmspider.server.runs.gaps import shared_hosts
from larmspider.server.runs.manager import Manager
from larmspider.urls.canonical import canonicalize
from larmspider.urls.patterns import compile_pattern
from larmspider.web.auth import OPERATE


@dataclass(frozen=True, slots=True)
class By:
    """The person who acts, and the address of the request."""

    who: str
    address: str = ""
    scope: str = OPERATE


class Crawls:
    def __init__(self, manager: Manager, audit: Audit) -> None:
        self.manager, self.audit = manager, audit
        self.home = manager.home

    def create(self, name: str, given: Mapping[str, Any] | str, by: By) -> None:
        """Create a crawl by the keys of its file, or by its text. Raises ConfigError."""
        text = given if isinstance(given, str) else edited("", given)
        values = table_of(text, "crawl")
        _refuse_secrets(values, None, by)
        self._checked(values, text=text)
        self.home.write(name, text, new=True)
        self._note(by, "create", name, "created")

    def change(self, name: str, changes: Mapping[str, Any], seen: str, by: By) -> None:
        """Raises ConfigError, also where the file was changed since it was ``seen``."""
        entry = self._entry(name)
        self._refuse_foreign_keys(changes)
        _refuse_secrets(changes, entry.crawl, by)
        text = self.home.text_of(name)
        if seen and seen != version_of(text):
            raise HttpError(f"{name} was changed meanwhile: load it again, and change that.", 409)
        self._checked(changes, name)
        self.home.write(name, edited(text, changes), new=False)
        self._note(by, "change", name, f"changed: {', '.join(sorted(changes))}")

    def check(self, values: Mapping[str, Any], name: str = "") -> Crawl:
        """The crawl that these values are, or that they make of the crawl ``name``, to look at it.
        Raises ConfigError."""
        crawl = self._checked(values, name)
        if crawl.kind == "push":
            raise ConfigError('kind = "push": there is nothing to look at before documents come')
        return crawl

    def _checked(self, values: Mapping[str, Any], name: str = "", text: str = "") -> Crawl:
        self._refuse_foreign_keys(values)
        before = self.home.text_of(self._entry(name).name) if name else ""
        crawl = parse_crawl(text or edited(before, values), "crawl")
        secrets = Secrets(self.home.path, self.manager.settings.secrets)
        if problems := [*problems_of(crawl, secrets), *scope_problems(crawl)]:
            raise CrawlFileError("crawl", problems)
        return crawl

    def changes(self, name: str, values: Mapping[str, Any]) -> ChangeAnswer:
        """Preview a change of a crawl to ``values``. Raises ConfigError."""
        entry, after = self._entry(name), self.check(values, name)
        if entry.crawl is None:
            raise ConfigError(entry.problem)
        try:
            directory = open_crawl(self.manager.directory_of(entry))
        except LarmspiderError:
            directory = None  # it has not begun
        return changes(entry.crawl, after, directory)

    def warnings(self, crawl: Crawl, name: str = "") -> list[str]:
        """Doubts about the scope, and the hosts that other crawls reach."""
        return [*scope_warnings(crawl), *self.shared(crawl, name)]

    def shared(self, crawl: Crawl, name: str = "") -> list[str]:
        """The hosts that other crawls reach, too, a sentence each."""
        found: dict[str, list[str]] = {}
        for entry in self.manager.entries().values():
            if entry.crawl is not None and entry.name != name:
                hosts = shared_hosts(crawl, entry.crawl)
                for host in {re.sub(r":(80|443)$", "", one) for one in hosts}:
                    found.setdefault(host, []).append(entry.name)
        return [
            f"{'Any host' if host == EVERY_HOST else host} may be crawled by"
            f" {', '.join(sorted(others))}, too: their requests to it share one delay"
            for host, others in sorted(found.items())
        ]

    def delete(self, name: str, typed: str, by: By, *, pages: bool) -> str:
        """Delete a crawl that does not run, with its runs and, with ``pages``, its directory.
        Raises ConfigError."""
        entry = self._entry(name)
        if typed != name:
            raise ConfigError(f"the name that was typed is not {name}: nothing is deleted")
        directory = self.manager.directory_of(entry)
        if name in self.manager.running or RunState.of(directory).state is State.RUNNING:
            raise HttpError(f"{name} runs: stop it first.", 409)
        inside = directory == self.home.path / "data" / name
        if pages and not inside:
            raise HttpError(f"{directory} lies outside of the home: delete it by hand.", 409)
        self._note(by, "delete", name, "with its directory" if pages else "without its directory")
        try:
            entry.path.unlink(missing_ok=True)
        except OSError as error:
            raise HttpError(f"{entry.path}: {error.strerror}; delete it by hand.", 500) from None
        self.manager.forget(name)
        for folder in (self.home.runs_of(name), *([directory] if pages else [])):
            if why := _remove(folder):
                raise HttpError(
                    f"{name} is deleted, but not all of {folder}: {why}; delete it by hand.", 500
                )
        return f"{name} is deleted" + (", with its pages" if pages else f"; {directory} stays")

    def start(self, name: str, by: By) -> str:
        """Raises ConfigError."""
        return self._act(by, "start", name, self.manager.start(self._entry(name).name, by.who))

    def stop(self, name: str, by: By) -> str:
        """Raises ConfigError."""
        return self._act(by, "stop", name, self.manager.stop(self._entry(name).name))

    def visit(self, name: str, what: str, value: str, by: By) -> str:
        """Visit pages again: all pages, one URL, or the pages that match a pattern. Raises
        ConfigError."""
        entry = self._entry(name)
        if entry.crawl is not None and entry.crawl.kind == "push":
            raise ConfigError(f"{name} is pushed to: nothing is fetched, so nothing is visited")
        refresh = "all"
        if what == "url":
            try:
                refresh = re.escape(canonicalize(value))
            except InvalidURL as error:
                raise ConfigError(f"value: {error}") from None
        elif what == "pattern":
            refresh = compile_pattern(value, name="value").text
            if not refresh.strip() or refresh.strip() in ("all", "due", "watch", "index"):
                raise ConfigError(f"value {refresh!r}: expected an expression that URLs match")
        done = self.manager.start(name, by.who, refresh, "visit")
        return self._act(by, "visit", name, done, f" {refresh}")

    async def tell(self, name: str, act: str, by: By) -> str:
        """Pause or resume a run. Raises HttpError."""
        entry = self._entry(name)
        if name not in self.manager.running:
            raise HttpError(f"{name} does not run.", 409)
        if entry.crawl is not None and entry.crawl.run.nodes:
            raise HttpError(f"{name} runs on nodes, which cannot pause it: stop it.", 409)
        await self.manager.tell(self.manager.directory_of(entry), act)
        return self._act(by, act, name, f"{name} is {act}d")

    def _entry(self, name: str) -> CrawlEntry:
        found = self.manager.entries().get(name)
        if found is None:
            raise HttpError(f"There is no crawl {name[:64]!r}.", 404)
        return found

    @staticmethod
    def _refuse_foreign_keys(values: Mapping[str, Any]) -> None:
        if problems := not_writable(values):
            raise CrawlFileError("crawl", problems)

    def _act(self, by: By, act: str, name: str, done: str, more: str = "") -> str:
        self._note(by, act, name + more, done)
        return done

    def _note(self, by: By, act: str, what: str, result: str) -> None:
        try:
            self.audit.note(by.who, by.address, act, what, result)
        except OSError as error:
            raise HttpError(f"The audit log cannot be written: {error.strerror}.", 500) from None


RIGHTS = "access"
"""The table of a crawl file with the rights of documents."""
_SENT = {"host": "", "secret": "", "user": "", "auth": "basic", "scheme": "https"}
"""Keys of a host that say where a secret goes, and how, with their defaults."""


def _refuse_secrets(changes: Mapping[str, Any], crawl: Crawl | None, by: By) -> None:
    """Editors set no rights, and name no secret for a host that does not have it. Raises
    HttpError."""
    if by.scope == OPERATE:
        return
    if RIGHTS in changes:
        raise HttpError("Only an operator says who may see which documents.", 403)
    has = [] if crawl is None else [tuple(getattr(one, k) for k in _SENT) for one in crawl.hosts]
    hosts = changes.get("hosts")
    for host in hosts if isinstance(hosts, list) else ():
        if not isinstance(host, dict) or not host.get("secret"):
            continue
        if tuple(host.get(key, default) for key, default in _SENT.items()) not in has:
            raise HttpError("Only an operator says which host gets a secret.", 403)


def version_of(text: str) -> str:
    """A short hash of a crawl file."""
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:16]


def _remove(folder: Path) -> str:
    """Remove all of a folder that can be removed: why some of it is left, "" if nothing is."""
    left: list[str] = []

    def note(*failed: Any) -> None:
        error = failed[2][1]
        if not isinstance(error, FileNotFoundError):  # which another process has removed
            left.append(error.strerror or str(error))

    shutil.rmtree(folder, onerror=note)
    return left[0] if left else ""
