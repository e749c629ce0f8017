"""Real applications of an intranet, of Debian or PyPI, each with content that it can list itself.

    with APPLICATIONS["gitweb"](400) as app:      # RuntimeError: what to install
        crawl(app.seed, ...)
        app.documents()                           # names of all that it has
        app.document_of(url)                      # which one the page of a URL shows, or ""

They run on a free port of a loopback address, in a temporary folder, and end by their pid.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from email.utils import formatdate
from functools import cached_property, partial
from pathlib import Path
from typing import ClassVar
from urllib.parse import parse_qs, unquote, urlsplit

from tests.support.servers.application import SECTIONS, Application, Document, documents
from tests.support.servers.django_admin import DjangoAdmin
from tests.support.servers.python_applications import Datasette, Trac
from tests.support.servers.wikis import DokuWiki, MediaWiki, UseModWiki

_BEGIN, _DAY = 1_700_000_000, 86_400
COMMITS, THREAD = 40, 40


def _history(every: list[Document]) -> bytes:
    """For git fast-import: files in folders, in COMMITS commits; every fourth file is changed once
    more, the last ones in a commit of their own each."""
    lines: list[bytes] = []
    size = -(-len(every) // COMMITS)
    for at in range(COMMITS):
        new = [(one, one.lines + "\n") for one in every[size * at : size * at + size]]
        old = every[max(0, size * (at - 3)) : max(0, size * (at - 2)) : 4]
        said = f"Part {at + 1}: {', '.join(one.title for one, _ in new[:3])}\n".encode()
        lines.append(b"commit refs/heads/main")
        lines.append(
            f"committer Writer <writer@wiki.example> {_BEGIN + 86_400 * at} +0000".encode()
        )
        lines.append(b"data %d\n%s" % (len(said), said))
        for one, text in [*new, *((one, one.lines + "Checked again.\n") for one in old)]:
            data = text.encode()
            lines.append(f"M 100644 inline {path_of(one)}".encode())
            lines.append(b"data %d\n%s" % (len(data), data))
    return b"\n".join([*lines, b""])


def path_of(document: Document) -> str:
    """The path of a document's file."""
    return f"{document.section}/{document.name}.txt"


class _Repository(Application):
    """A git repository of documents as files."""

    def _git(self, *words: str, given: bytes = b"") -> str:
        directory = ["--git-dir", str(self.folder / "works.git")]
        return self.run("git", *directory, *words, given=given).decode()

    def _make_repository(self) -> None:
        self._git("init", "--quiet", "--bare", "--initial-branch=main")
        self._git("fast-import", "--quiet", given=_history(documents(self.count)))

    def _blobs(self, commit: str = "HEAD") -> dict[str, str]:
        """Hash of each file as of a commit."""
        rows = (line.split() for line in self._git("ls-tree", "-r", commit).splitlines())
        return {path: blob for _, _, blob, path in rows}

    @cached_property
    def _as_of(self) -> dict[str, dict[str, str]]:
        commits = self._git("rev-list", "HEAD").split()
        return {one: self._blobs(one) for one in ("HEAD", "refs/heads/main", *commits)}


class GitWeb(_Repository):
    """Documents are paths of files at HEAD."""

    name = "gitweb"
    packages = ("gitweb", "lighttpd", "git")
    needs = ("git", "lighttpd", "/usr/share/gitweb/index.cgi")

    def environment(self) -> dict[str, str]:
        return super().environment() | {"GITWEB_CONFIG": f"{self.folder}/gitweb.conf"}

    def _prepare(self) -> list[str | Path]:
        self._make_repository()
        self.write("works.git/description", "What the works are about\n")
        self.write("gitweb.conf", f'$projectroot = "{self.folder}"; @git_base_url_list = ();\n')
        return self.lighttpd(
            "/usr/share/gitweb",
            'server.modules = ( "mod_cgi", "mod_setenv" )',
            'index-file.names = ( "index.cgi" )',
            'cgi.assign = ( ".cgi" => "/usr/bin/perl" )',
            f'setenv.add-environment = ( "GITWEB_CONFIG" => "{self.folder}/gitweb.conf" )',
        )

    def documents(self) -> frozenset[str]:
        return frozenset(self._blobs())

    def document_of(self, url: str) -> str:
        """As of now, or of a commit that had the file as it is now."""
        asked = parse_qs(urlsplit(url).query, separator=";")
        (action,), (path,) = asked.get("a", [""]), asked.get("f", [""])
        if action not in ("blob", "blob_plain"):
            return ""
        now, (of,) = self._as_of["HEAD"], asked.get("hb", [""])
        (blob,) = asked.get("h", [self._as_of.get(of, {}).get(path, "")])
        return path if blob and now.get(path) == blob else ""


class CGit(_Repository):
    """Documents are paths of files at HEAD."""

    name = "cgit"
    packages = ("cgit", "lighttpd", "git")
    needs = ("git", "lighttpd", "/usr/lib/cgit/cgit.cgi")

    def environment(self) -> dict[str, str]:
        return super().environment() | {"CGIT_CONFIG": f"{self.folder}/cgitrc"}

    def _prepare(self) -> list[str | Path]:
        self._make_repository()
        lines = ["virtual-root=/", "enable-blame=1", "enable-commit-graph=1", "snapshots="]
        lines += ["repo.url=works", f"repo.path={self.folder}/works.git", "repo.desc=The works"]
        self.write("cgitrc", "\n".join(lines) + "\n")
        return self.lighttpd(
            "/usr/lib/cgit",
            'server.modules = ( "mod_rewrite", "mod_cgi", "mod_setenv" )',
            r'url.rewrite-once = ( "^/([^?]*)(\?.*)?$" => "/cgit.cgi/$1$2" )',
            'cgi.assign = ( ".cgi" => "" )',
            f'setenv.add-environment = ( "CGIT_CONFIG" => "{self.folder}/cgitrc" )',
        )

    def documents(self) -> frozenset[str]:
        return frozenset(self._blobs())

    def document_of(self, url: str) -> str:
        """As of now, or of a commit that had the file as it is now."""
        parts = urlsplit(url)
        repository, _, rest = unquote(parts.path).strip("/").partition("/")
        view, _, path = rest.partition("/")
        if repository != "works" or view not in ("tree", "plain"):
            return ""
        asked = parse_qs(parts.query)
        (of,) = asked.get("id", asked.get("h", ["HEAD"]))
        blob = self._as_of.get("refs/heads/main" if of == "main" else of, {}).get(path, "")
        return path if blob and self._as_of["HEAD"].get(path) == blob else ""


class HgWeb(_Repository):
    """Documents are paths of files at the tip."""

    name = "hgweb"
    packages = ("mercurial", "git")
    needs = ("hg", "git")

    def _prepare(self) -> list[str | Path]:
        self._make_repository()
        patches = self._git("format-patch", "--root", "--stdout", "--no-signature", "main")
        self.run("hg", "init", "works")
        self.run("hg", "-R", "works", "import", "-", given=patches.encode())
        where = ["-a", self.address, "-p", str(self.port)]
        return ["hg", "serve", "-R", "works", *where]

    def documents(self) -> frozenset[str]:
        return frozenset(self.run("hg", "-R", "works", "manifest", "-r", "tip").decode().split())

    def document_of(self, url: str) -> str:
        """As of the tip, or of a commit behind which the file was not changed."""
        numbers, changed = self._log
        parts = urlsplit(url)
        view, _, rest = parts.path.strip("/").partition("/")
        node, _, path = rest.partition("/")
        if view not in ("file", "raw-file") or parts.query or path not in changed:
            return ""
        return path if numbers.get(node, -1) >= changed[path] else ""

    @cached_property
    def _log(self) -> tuple[dict[str, int], dict[str, int]]:
        """Number of each commit, and of the last one that changed each file."""
        said = self.run("hg", "-R", "works", "log", "-T", "{node|short} {rev}\t{files}\n").decode()
        numbers, changed = {"tip": 1 << 30}, dict[str, int]()
        for line in said.splitlines():
            commit, _, files = line.partition("\t")
            node, number = commit.split()
            numbers[node] = int(number)
            for path in files.split():
                changed.setdefault(path, int(number))
        return numbers, changed


class _Listing(Application):
    """Folders that the server lists. Documents are paths of files."""

    def _make_files(self) -> Path:
        for one in documents(self.count):
            part = one.number // SECTIONS % 3 + 1
            self.write(f"files/{one.section}/part-{part}/{one.name}.txt", one.text)
        return self.folder / "files"

    def documents(self) -> frozenset[str]:
        root = self.folder / "files"
        return frozenset(str(one.relative_to(root)) for one in root.rglob("*") if one.is_file())

    def document_of(self, url: str) -> str:
        parts = urlsplit(url)
        return "" if parts.query else unquote(parts.path).strip("/")


class LighttpdListing(_Listing):
    name = "lighttpd listing"
    packages = ("lighttpd",)
    needs = ("lighttpd",)

    def _prepare(self) -> list[str | Path]:
        return self.lighttpd(self._make_files(), 'dir-listing.activate = "enable"')


class ApacheListing(_Listing):
    """Each folder in eight orders."""

    name = "Apache listing"
    packages = ("apache2-bin",)
    needs = ("apache2",)
    _MODULES: ClassVar = ("mpm_event", "authz_core", "dir", "mime", "autoindex")

    def _prepare(self) -> list[str | Path]:
        modules = "/usr/lib/apache2/modules"
        lines = [f"LoadModule {one}_module {modules}/mod_{one}.so" for one in self._MODULES]
        lines += [f"ServerName {self.address}", f"Listen {self.address}:{self.port}"]
        lines += [f"PidFile {self.folder}/pid", f"DefaultRuntimeDir {self.folder}"]
        lines += ["ErrorLog /dev/stderr", "TypesConfig /dev/null", "AddType text/plain .txt"]
        lines += [f"DocumentRoot {self._make_files()}", "IndexOptions FancyIndexing NameWidth=*"]
        lines += [f"<Directory {self.folder}/files>", "Options +Indexes", "</Directory>"]
        return ["apache2", "-X", "-f", self.write("apache.conf", "\n".join(lines) + "\n")]


class PublicInbox(Application):
    """The archive of a mailing list: what a tracker sends about its issues, each note an answer to
    the issue, which opens at midnight. Documents are Message-IDs."""

    name = "public-inbox"
    packages = ("public-inbox", "libdbd-sqlite3-perl", "libplack-perl", "git")
    needs = ("git", "public-inbox-httpd", "/usr/lib/*/perl5/*/DBD/SQLite.pm")
    start = "/works/"

    def environment(self) -> dict[str, str]:
        return super().environment() | {"PI_CONFIG": f"{self.folder}/config"}

    def _prepare(self) -> list[str | Path]:
        inbox = self.folder / "works.git"
        where = [inbox, self.url(self.start), "works@wiki.example"]
        self.run("public-inbox-init", "-V1", "-L", "basic", "works", *where)
        self.deliver(documents(self.count))
        return ["public-inbox-httpd", "-W0", "-l", f"{self.address}:{self.port}"]

    def deliver(self, every: Sequence[Document], begin: int = 0) -> None:
        """The mails from number ``begin`` on arrive."""
        inbox, lines = self.folder / "works.git", list[bytes]()
        for one in every[begin:]:
            mail = self._mail(one, every[one.number - one.number % THREAD]).encode()
            digest = hashlib.sha1(_message_id(one.number).encode()).hexdigest()
            lines.append(b"commit refs/heads/master")
            sent = b"committer Writer <writer@wiki.example> %d +0000"
            lines.append(sent % _time_of(one.number))
            lines.append(b"data 4\nmail")
            lines += [b"from refs/heads/master^0"] * (0 < begin == one.number)
            lines.append(f"M 100644 inline {digest[:2]}/{digest[2:]}".encode())
            lines.append(b"data %d\n%s" % (len(mail), mail))
        given = b"\n".join([*lines, b""])
        self.run("git", "--git-dir", inbox, "fast-import", "--quiet", given=given)
        self.run("public-inbox-index", "-L", "basic", inbox)

    def _mail(self, one: Document, first: Document) -> str:
        """The first one of a thread, or an answer in it."""
        head = [f"From: Writer {one.number % 7} <writer{one.number % 7}@wiki.example>"]
        head += ["To: works@wiki.example", f"Message-ID: <{_message_id(one.number)}>"]
        head += [f"Date: {formatdate(_time_of(one.number))}"]
        if one is first:
            head += [f"Subject: {one.title}"]
        else:
            head += [f"Subject: Re: {first.title}"]
            head += [f"In-Reply-To: <{_message_id(first.number)}>"]
        return "\n".join([*head, "", one.lines])

    def documents(self) -> frozenset[str]:
        """The documents of all mails in its repository."""
        where = ["--git-dir", self.folder / "works.git"]
        mails = self.run("git", *where, "grep", "-h", "^Message-ID:", "HEAD").decode()
        return frozenset(line.partition("<")[2].rstrip(">") for line in mails.splitlines())

    def document_of(self, url: str) -> str:
        """The document of a mail's own page; "" for its thread's page."""
        parts = urlsplit(url)
        words = unquote(parts.path).strip("/").split("/")
        return words[1] if len(words) == 2 and words[0] == "works" and not parts.query else ""


def _message_id(number: int) -> str:
    issue, note = divmod(number, THREAD)
    return f"issue-{1_000 + issue}.note-{note}@wiki.example"


def _time_of(number: int) -> int:
    """A note every two hours and a minute, an issue every fourth day at midnight."""
    issue, note = divmod(number, THREAD)
    return _BEGIN - _BEGIN % _DAY + 4 * _DAY * issue + 7_260 * note


APPLICATIONS: dict[str, Callable[[int], Application]] = {
    "dokuwiki": DokuWiki,
    "dokuwiki-sessions": lambda count: DokuWiki(count, sessions=True),
    "mediawiki": MediaWiki,
    "usemod": UseModWiki,
    "gitweb": GitWeb,
    "cgit": CGit,
    "hgweb": HgWeb,
    "apache": ApacheListing,
    "lighttpd": LighttpdListing,
    "public-inbox": PublicInbox,
    "datasette": Datasette,
    "trac": Trac,
}
USERS = {"crawler": "Tea-kettle-and-siren-4"}
BEHIND_A_LOGIN: dict[str, Callable[[int], Application]] = {
    "django": partial(DjangoAdmin, users=USERS),
    "dokuwiki-private": partial(DokuWiki, users=USERS),
    "mediawiki-private": partial(MediaWiki, users=USERS),
}
"""For those who sign in alone."""
