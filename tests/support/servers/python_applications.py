"""Applications of PyPI, in a virtual environment of their own (FOLDER), which ``.ci/run`` fills.

    with Trac(300) as app:
        app.documents()        # {"wiki/WikiStart", "ticket/7", ...}

They are no dependencies of larmspider, and need none of it.
"""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import ClassVar
from urllib.parse import unquote, urlsplit

from tests.support.servers.application import Application, documents
from tests.support.servers.processes import PROJECT

FOLDER = PROJECT / ".applications"


class PythonApplication(Application):
    """``pinned`` is what pip installs in FOLDER."""

    pinned: ClassVar[str]

    @classmethod
    def wanted(cls) -> str:
        return f"python3 -m venv .applications && .applications/bin/pip install {cls.pinned}"


class Datasette(PythonApplication):
    """A browser of databases. Documents are rows of a table: each has a page, and a ``.json``."""

    name = "Datasette"
    pinned = "datasette==0.65.5"
    packages = ("python3-venv",)
    needs = (f"{FOLDER}/bin/datasette",)

    def _prepare(self) -> list[str | Path]:
        every = documents(self.count)
        names = [one.name for one in every]
        rows = [
            (one.name, one.title, one.section, names[one.related[0]], one.text) for one in every
        ]
        path = self.folder / "works.db"
        with closing(sqlite3.connect(path)) as base, base:
            base.execute("CREATE TABLE sections (name TEXT PRIMARY KEY)")
            base.execute(
                "CREATE TABLE documents (name TEXT PRIMARY KEY, title TEXT, section TEXT REFERENCES"
                " sections (name), see_also TEXT REFERENCES documents (name), text TEXT)"
            )
            sections = sorted({(one.section,) for one in every})
            base.executemany("INSERT INTO sections VALUES (?)", sections)
            base.executemany("INSERT INTO documents VALUES (?, ?, ?, ?, ?)", rows)
        return [FOLDER / "bin/datasette", path, "-h", self.address, "-p", str(self.port)]

    def documents(self) -> frozenset[str]:
        with closing(sqlite3.connect(self.folder / "works.db")) as base:
            return frozenset(name for (name,) in base.execute("SELECT name FROM documents"))

    def document_of(self, url: str) -> str:
        """The row whose own page it is: a table shows none."""
        parts = urlsplit(url)
        words = unquote(parts.path).split("/")
        is_row = words[1:3] == ["works", "documents"] and len(words) == 4 and not parts.query
        return words[3] if is_row and "." not in words[3] else ""


_FILL = """
import io, json, sys
from datetime import datetime, timedelta, timezone
from trac.attachment import Attachment
from trac.env import Environment
from trac.ticket.model import Ticket
from trac.wiki.model import WikiPage
env, now = Environment(sys.argv[1]), datetime(2025, 1, 1, tzinfo=timezone.utc)
with env.db_transaction as base:
    base("DELETE FROM wiki")
    for one in json.load(sys.stdin):
        kind, _, name = one["name"].partition("/")
        now += timedelta(hours=5)
        if kind == "wiki":
            page = WikiPage(env, name)
            for at, text in enumerate(one["versions"]):
                page.text = text
                page.save("writer", "version %d" % (at + 1), t=now + timedelta(days=at))
        else:
            ticket = Ticket(env)
            ticket["summary"], ticket["description"] = one["title"], one["versions"][-1]
            ticket["reporter"], ticket["status"], ticket["type"] = "writer", "new", "task"
            name = ticket.insert(when=now)
            ticket.save_changes("writer", "Seen by the keeper.", when=now + timedelta(days=1))
        if one["attached"]:
            data = one["attached"].encode()
            Attachment(env, kind, name).insert("note.txt", io.BytesIO(data), len(data), now)
"""


class Trac(PythonApplication):
    """A tracker and a wiki. Documents are pages, with their history, tickets, and attachments."""

    name = "Trac"
    pinned = "Trac==1.6"
    packages = ("python3-venv",)
    needs = (f"{FOLDER}/bin/tracd",)
    start = "/wiki"

    def _prepare(self) -> list[str | Path]:
        env = self.folder / "works"
        self.run(FOLDER / "bin/trac-admin", env, "initenv", "The works", "sqlite:db/trac.db")
        fill = self.write("fill.py", _FILL)
        given = json.dumps(self._given()).encode()
        self.run(FOLDER / "bin/python", fill, env, given=given)
        where = [f"--hostname={self.address}", f"--port={self.port}"]
        return [FOLDER / "bin/tracd", "--single-env", *where, env]

    def _given(self) -> list[dict[str, object]]:
        """Every second document is a ticket; two of three pages have an older version."""
        every, attached = documents(self.count), documents(self.count, seed=2)
        names = [
            f"ticket/{one.number // 2 + 1}" if one.number % 2 else f"wiki/{one.section}/{one.name}"
            for one in every
        ]
        given: list[dict[str, object]] = []

        def page(name: str, text: str, *versions: str, title: str = "", note: str = "") -> None:
            every = [*versions, text]
            given.append({"name": name, "title": title, "versions": every, "attached": note})

        for one, name in zip(every, names, strict=True):
            links = "".join(f" * [/{names[to]} {every[to].title}]\n" for to in one.related)
            text = f"{one.text}\n\n{links}"
            old = [f"{text}\nTo be checked."] if one.number % 3 else []
            note = attached[one.number].text if one.number % 12 == 0 else ""
            page(name, text, *old, title=one.title, note=note)
        sections = sorted({one.section for one in every})
        page("wiki/WikiStart", "".join(f" * [/wiki/{one} {one}]\n" for one in sections))
        for section in sections:
            own = [one for one in every if one.section == section]
            page(
                f"wiki/{section}",
                "".join(f" * [/{names[one.number]} {one.title}]\n" for one in own),
            )
        return given

    def documents(self) -> frozenset[str]:
        with closing(sqlite3.connect(self.folder / "works/db/trac.db")) as base:
            found = [f"wiki/{name}" for (name,) in base.execute("SELECT name FROM wiki")]
            found += [f"ticket/{number}" for (number,) in base.execute("SELECT id FROM ticket")]
            rows = base.execute("SELECT type, id, filename FROM attachment")
            found += [f"raw-attachment/{kind}/{one}/{name}" for kind, one, name in rows]
        return frozenset(found)

    def document_of(self, url: str) -> str:
        """The page that shows an attachment counts as it."""
        parts = urlsplit(url)
        path = unquote(parts.path).strip("/")
        if path.startswith("attachment/") and path.endswith(".txt"):
            path = f"raw-{path}"
        if path in ("", "wiki"):
            path = "wiki/WikiStart"
        return "" if parts.query else path
