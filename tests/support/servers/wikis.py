"""Real wikis, as Debian has them: DokuWiki, MediaWiki, UseModWiki.

    with DokuWiki(users={"crawler": "a secret"}) as wiki:      # other users see nothing
        wiki.url("/doku.php?id=start&do=login")
        wiki.set_password("crawler", "another")
        wiki.changes()                                         # [], until a user edits or deletes

Some pages have old versions, and some name pages that do not exist. With ``users`` (name to
password) pages are for these alone, who may edit and delete all.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import re
import sqlite3
import time
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

from tests.support.servers.application import Application, Document, documents

_BEGIN = 1_700_000_000
"""Seconds since the epoch: the first version of the first page."""
_DAY = 86_400


def _versions(document: Document) -> list[str]:
    """Texts of a page, the last one is what it says now: every third page has two or three."""
    sentences = document.text.split(". ")
    count = 1 if document.number % 3 else 2 + document.number % 2
    return [". ".join(sentences[: len(sentences) - left]) for left in range(count - 1, 0, -1)] + [
        document.text
    ]


class DokuWiki(Application):
    """``sessions`` are in its URLs, for want of cookies. Pages are ``section:name``."""

    name = "DokuWiki"
    packages = ("dokuwiki", "php-cli", "php-xml", "php-mbstring")
    needs = ("php", "/usr/share/dokuwiki/doku.php")
    start = "/doku.php"

    def __init__(
        self,
        count: int = 400,
        address: str = "127.0.0.1",
        users: Mapping[str, str] | None = None,
        *,
        sessions: bool = False,
    ) -> None:
        super().__init__(count, address)
        self._users, self._sessions = dict(users or {}), sessions

    def environment(self) -> dict[str, str]:
        return super().environment() | {"PHP_CLI_SERVER_WORKERS": "2"}

    def _prepare(self) -> list[str | Path]:
        settings = ["<?php", "$conf['title'] = 'The wiki';", "$conf['useacl'] = 1;"]
        settings += ["$conf['indexdelay'] = 0;", "$conf['auth_security_timeout'] = 1;"]
        settings += [f"$conf['savedir'] = '{self.folder}/data';", "$conf['superuser'] = '@admin';"]
        self.write("conf/local.php", "\n".join(settings))
        rights = "*\t@ALL\t0\n*\t@user\t16\n" if self._users else "*\t@ALL\t1\n"
        self.write("conf/acl.auth.php", "# <?php exit()?>\n" + rights)
        self._write_users()
        for name in ("pages", "attic", "cache", "index", "locks", "log", "media", "media_attic"):
            (self.folder / "data" / name).mkdir(parents=True)
        for name in ("data/media_meta", "data/meta", "data/tmp", "sessions"):
            (self.folder / name).mkdir()
        self._write_pages()
        own = f"<?php define('DOKU_CONF', '{self.folder}/conf/');"
        options = [f"auto_prepend_file={self.write('own.php', own)}"]
        options += [f"session.save_path={self.folder}/sessions", "display_errors=0"]
        if self._sessions:
            options += ["session.use_only_cookies=0", "session.use_cookies=0"]
            options += ["session.use_trans_sid=1"]
        given = [word for option in options for word in ("-d", option)]
        root = "/usr/share/dokuwiki"
        return ["php", *given, "-S", f"{self.address}:{self.port}", "-t", root]

    def _write_users(self) -> None:
        lines = ["# <?php exit()?>"]
        for name, password in self._users.items():
            digest = hashlib.sha1(password.encode()).hexdigest()  # one of the forms that it takes
            lines.append(f"{name}:{digest}:{name}:{name}@wiki.example:user")
        new = self.write("conf/users.new", "\n".join(lines) + "\n")
        new.replace(self.folder / "conf/users.auth.php")

    def _write_pages(self) -> None:
        every = documents(self.count)
        names = [f"{one.section}:{one.name}" for one in every]
        changes = []
        for one, name in zip(every, names, strict=True):
            links = "".join(f"  * [[{names[to]}]]\n" for to in one.related)
            if one.number % 40 == 0:
                links += f"  * [[{one.section}:planned-{one.name}]]\n"
            lines = []
            for at, text in enumerate(versions := _versions(one)):
                then = _BEGIN + (one.number + 100 * at) * _DAY
                page = f"====== {one.title} ======\n\n{text}\n\n{links}"
                kind = "E" if at else "C"
                lines.append(
                    f"{then}\t127.0.0.1\t{kind}\t{name}\t\tversion {at + 1}\t\t{len(page)}"
                )
                path = "data/" + "{}/" + name.replace(":", "/")
                old = self.folder / f"{path.format('attic')}.{then}.txt.gz"
                old.parent.mkdir(parents=True, exist_ok=True)
                old.write_bytes(gzip.compress(page.encode(), 1))
                if at == len(versions) - 1:
                    os.utime(self.write(f"{path.format('pages')}.txt", page), (then, then))
            self.write(f"{path.format('meta')}.changes", "\n".join(lines) + "\n")
            changes += lines
        sections = sorted({one.section for one in every})
        lists = {"start": [f"{section}:start" for section in sections]}
        for section in sections:
            lists[f"{section}/start"] = [one for one in names if one.startswith(f"{section}:")]
        for name, members in lists.items():
            links = "".join(f"  * [[{one}]]\n" for one in members)
            path = self.write(f"data/pages/{name}.txt", f"====== {name} ======\n\n{links}")
            os.utime(path, (_BEGIN, _BEGIN))  # newer pages are noindex
        self.write("data/meta/_dokuwiki.changes", "\n".join(sorted(changes)) + "\n")
        self._begun = len(changes)

    def set_password(self, user: str, password: str) -> None:
        self._users[user] = password
        self._write_users()

    def changes(self) -> list[str]:
        """Its own log of edited, created and deleted pages since it runs."""
        log = self.folder / "data/meta/_dokuwiki.changes"
        return log.read_text("utf-8").splitlines()[self._begun :]

    def documents(self) -> frozenset[str]:
        """As its search for all pages finds them: files of the data folder."""
        pages = self.folder / "data/pages"
        found = (str(path.relative_to(pages))[:-4] for path in pages.rglob("*.txt"))
        return frozenset(name.replace("/", ":") for name in found)

    def document_of(self, url: str) -> str:
        parts = urlsplit(url)
        asked = parse_qs(parts.query)
        view = {*asked} - {"id", "DokuWiki", "idx"}
        (name,) = asked.get("id", ["start"])
        return "" if parts.path != "/doku.php" or view else name.lower()


class MediaWiki(Application):
    """With SQLite. ``users`` besides Admin, whose password is ADMIN_PASSWORD."""

    name = "MediaWiki"
    packages = ("mediawiki", "php-cli", "php-sqlite3", "php-intl", "php-mbstring", "php-xml")
    needs = ("php", "/usr/share/mediawiki/index.php", "/usr/lib/php/*/pdo_sqlite.so")
    start = "/index.php"
    ADMIN_PASSWORD = "Tea-kettle-and-siren-4"

    def __init__(
        self,
        count: int = 400,
        address: str = "127.0.0.1",
        users: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(count, address)
        self._users = dict(users or {})

    def environment(self) -> dict[str, str]:
        own = {"MW_CONFIG_FILE": f"{self.folder}/LocalSettings.php"}
        return super().environment() | {"PHP_CLI_SERVER_WORKERS": "2"} | own

    def _maintain(self, script: str, *options: str, given: bytes = b"") -> bytes:
        path = f"/usr/share/mediawiki/maintenance/{script}.php"
        return self.run("php", path, *options, given=given)

    def _prepare(self) -> list[str | Path]:
        (self.folder / "data").mkdir()
        where = ["--confpath", str(self.folder), "--dbpath", f"{self.folder}/data"]
        where += ["--dbtype", "sqlite", "--server", self.url("").rstrip("/"), "--scriptpath", ""]
        self._maintain("install", *where, "--pass", self.ADMIN_PASSWORD, "The wiki", "Admin")
        settings = self.folder / "LocalSettings.php"
        more = "$wgPasswordPolicy['policies']['default'] = [];\n$wgJobRunRate = 0;\n"
        more += f"$wgCacheDirectory = '{self.folder}/cache';\n"
        more += (
            "$wgDBservers = [['type' => 'sqlite', 'dbname' => 'my_wiki', 'load' => 1, 'flags' => 0,"
            " 'dbDirectory' => $wgSQLiteDataDir, 'variables' => ['synchronous' => 'OFF']]];\n"
        )
        if self._users:
            more += "$wgGroupPermissions['*']['read'] = false;\n"
            more += "$wgGroupPermissions['user']['delete'] = true;\n"
        settings.write_text(settings.read_text("utf-8") + more, "utf-8")
        self._maintain("importDump", given=self._dump().encode())
        self._maintain("edit", "Main Page", given=self._start.encode())
        self._maintain("rebuildrecentchanges")
        for name, password in self._users.items():
            self._maintain("createAndPromote", name, password)
        self._begun = self._last()
        listen = f"{self.address}:{self.port}"
        options = [f"session.save_path={self.folder}", "display_errors=0"]
        given = [word for option in options for word in ("-d", option)]
        return ["php", *given, "-S", listen, "-t", "/usr/share/mediawiki"]

    def _dump(self) -> str:
        """Special:Export of another wiki would give the same."""
        every = documents(self.count)
        pages = {}
        for one in every:
            links = "".join(f"* [[{every[to].title}]]\n" for to in one.related)
            if one.number % 40 == 0:
                links += f"* [[Planned {one.title}]]\n"
            pages[one.title] = [f"{text}\n\n{links}" for text in _versions(one)]
        sections = sorted({one.section for one in every})
        for section in sections:
            links = "".join(f"* [[{one.title}]]\n" for one in every if one.section == section)
            pages[f"Section {section}"] = [links]
        links = "".join(f"* [[Section {section}]]\n" for section in sections)
        self._start = f"Welcome.\n\n{links}"
        text = "".join(
            f"<page><title>{escape(title)}</title><ns>0</ns>"
            + "".join(_revision(at, version) for at, version in enumerate(versions))
            + "</page>"
            for title, versions in pages.items()
        )
        return f'<mediawiki xmlns="http://www.mediawiki.org/xml/export-0.11/">{text}</mediawiki>'

    def _rows(self, query: str) -> list[tuple[str | int, ...]]:
        with closing(sqlite3.connect(self.folder / "data/my_wiki.sqlite", timeout=60)) as base:
            return base.execute(query).fetchall()

    def _last(self) -> tuple[int, int]:
        (found,) = self._rows(
            "SELECT (SELECT max(rev_id) FROM revision), (SELECT max(log_id) FROM logging)"
        )
        return int(found[0]), int(found[1] or 0)

    def set_password(self, user: str, password: str) -> None:
        self._users[user] = password
        self._maintain("changePassword", "--user", user, "--password", password)

    def changes(self) -> list[str]:
        """Its own log of edited, created and deleted pages since it runs."""
        revision, logged = self._begun
        edits = self._rows(f"SELECT rev_id, rev_page FROM revision WHERE rev_id > {revision}")
        acts = self._rows(f"SELECT log_action, log_title FROM logging WHERE log_id > {logged}")
        return [f"{one} {other}" for one, other in edits + acts]

    def documents(self) -> frozenset[str]:
        found = self._rows("SELECT page_title FROM page WHERE page_namespace = 0")
        return frozenset(str(title) for (title,) in found)

    def document_of(self, url: str) -> str:
        parts = urlsplit(url)
        asked = parse_qs(parts.query)
        if parts.path.startswith("/index.php/") and not asked:
            name = unquote(parts.path.removeprefix("/index.php/"))
        elif parts.path == "/index.php" and {*asked} <= {"title"}:
            (name,) = asked.get("title", ["Main_Page"])
        else:
            return ""
        return name.replace(" ", "_")


def _revision(at: int, text: str) -> str:
    return (
        f"<revision><timestamp>2025-0{at + 1}-01T00:00:00Z</timestamp>"
        "<contributor><username>Writer</username></contributor><model>wikitext</model>"
        f'<format>text/x-wiki</format><text xml:space="preserve">{escape(text)}</text></revision>'
    )


class UseModWiki(Application):
    """A wiki of one CGI script in Perl. Pages are ``Two_Words``."""

    name = "UseModWiki"
    packages = ("usemod-wiki", "lighttpd", "libcgi-pm-perl")
    needs = ("lighttpd", "perl", "/usr/lib/cgi-bin/wiki.pl")
    start = "/wiki.pl"

    def _prepare(self) -> list[str | Path]:
        config = Path("/etc/usemod-wiki/config").read_text("latin-1")
        config = re.sub(r'(?m)^(\$DataDir +=) "[^"]*"', rf'\1 "{self.folder}/data"', config)
        (self.folder / "config").write_text(config, "latin-1")
        lines = ['local $_ = "nocgi"; do "/usr/lib/cgi-bin/wiki.pl";']
        lines += [f'$UseModWiki::ConfigFile = "{self.folder}/config";']
        self.write("cgi/wiki.pl", "\n".join([*lines, "UseModWiki::DoWikiRequest();", ""]))
        now, texts = int(time.time()), self._texts()
        log = []
        for at, (name, versions) in enumerate(texts.items()):
            then = now - _DAY - 600 * at
            folder = f"data/{{}}/{name[0]}/{name}"
            old = [_usemod_section(n, then, text) for n, text in enumerate(versions, 1)]
            page = {"version": "3", "revision": str(len(old)), "tscreate": str(then - _DAY)}
            page |= {"ts": str(then), "text_default": old[-1]}
            self._put(f"{folder.format('page')}.db", _joined(1, page))
            if old[:-1]:
                kept = f"{_SEPARATOR}2keepts{_SEPARATOR}2{then}"
                kept = "".join(f"{_SEPARATOR}1{one}{kept}" for one in old[:-1])
                self._put(f"{folder.format('keep')}.kp", kept)
            log.append(f"{_SEPARATOR}3".join((str(then), name, "", "0", "127.0.0.1", "0", "")))
        self._put("data/rclog", "\n".join(sorted(log)) + "\n")
        return self.lighttpd(
            self.folder / "cgi",
            'server.modules = ( "mod_cgi" )',
            'cgi.assign = ( ".pl" => "/usr/bin/perl" )',
        )

    def _put(self, name: str, text: str) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode("latin-1"))

    def _texts(self) -> dict[str, list[str]]:
        """The versions of each page, by its name."""
        every = documents(self.count)
        names = [one.title.title() for one in every]
        texts = {}
        for one, name in zip(every, names, strict=True):
            links = "".join(f"* [[{names[to]}]]\n" for to in one.related)
            if one.number % 40 == 0:
                links += f"* [[Planned {name}]]\n"
            texts[name.replace(" ", "_")] = [f"{text}\n\n{links}" for text in _versions(one)]
        sections = sorted({one.section.title() for one in every})
        for section in sections:
            own = (one.title.title() for one in every if one.section.title() == section)
            texts[f"Section_{section}"] = ["".join(f"* [[{name}]]\n" for name in own)]
        texts["HomePage"] = ["".join(f"* [[Section {section}]]\n" for section in sections)]
        return texts

    def documents(self) -> frozenset[str]:
        """As action=index lists them: the files of its pages."""
        return frozenset(path.stem for path in (self.folder / "data/page").rglob("*.db"))

    def document_of(self, url: str) -> str:
        parts = urlsplit(url)
        if parts.path.lower() != "/wiki.pl" or "=" in parts.query:
            return ""
        return unquote(parts.query).replace(" ", "_") or "HomePage"


_SEPARATOR = "\x1e\xff\xfe\x1e"


def _joined(level: int, fields: Mapping[str, str]) -> str:
    return f"{_SEPARATOR}{level}".join(word for pair in fields.items() for word in pair)


def _usemod_section(revision: int, then: int, text: str) -> str:
    data = {"text": text, "minor": "0", "newauthor": "1", "summary": ""}
    fields = {"name": "text_default", "version": "1", "revision": str(revision), "id": "0"}
    fields |= {"tscreate": str(then), "ts": str(then), "ip": "127.0.0.1", "host": ""}
    return _joined(2, fields | {"username": "", "data": _joined(3, data)})
