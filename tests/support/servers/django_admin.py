"""The administration of a Django application, as Debian has it: all of it is behind a login, and
signing out is a plain link.

    with DjangoAdmin(40, users={"crawler": "a secret"}) as app:
        app.url("/admin/login/")
        app.changes()             # [], until a user changes or deletes
        app.sessions()            # 1, until a user signs out

Documents are the numbers of its rows.
"""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tests.support.servers.application import Application, documents

_SETTINGS = """
SECRET_KEY, ALLOWED_HOSTS, ROOT_URLCONF, STATIC_URL = "k", ["*"], "library.urls", "/static/"
INSTALLED_APPS = ["django.contrib." + one for one in
                  ("admin", "auth", "contenttypes", "sessions", "messages", "staticfiles")]
INSTALLED_APPS.append("library")
MIDDLEWARE = ["django.contrib.sessions.middleware.SessionMiddleware",
              "django.middleware.csrf.CsrfViewMiddleware",
              "django.contrib.auth.middleware.AuthenticationMiddleware",
              "django.contrib.messages.middleware.MessageMiddleware"]
TEMPLATES = [{"BACKEND": "django.template.backends.django.DjangoTemplates", "APP_DIRS": True,
              "DIRS": ["FOLDER/templates"],
              "OPTIONS": {"context_processors": [
                  "django.template.context_processors.request",
                  "django.contrib.auth.context_processors.auth",
                  "django.contrib.messages.context_processors.messages"]}}]
DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": "FOLDER/base"}}
DEFAULT_AUTO_FIELD = "django.db.models.AutoField"
"""
_URLS = """
from django.contrib import admin
from django.urls import path
urlpatterns = [path("admin/", admin.site.urls)]
"""
_MODELS = """
from django.db import models
class Document(models.Model):
    title = models.CharField(max_length=200)
    text = models.TextField()
    def __str__(self):
        return self.title
"""
_ADMIN = "from django.contrib import admin\nfrom library.models import Document\n"
_OPEN = '{% extends "admin/base.html" %}{% block blockbots %}{% endblock %}'
"""Without its meta robots, which asks crawlers not to follow its links."""
_FILL = """
import json, sys
import django
django.setup()
from django.contrib.auth.models import User
from library.models import Document
given = json.load(sys.stdin)
Document.objects.bulk_create(Document(title=a, text=b) for a, b in given["documents"])
for name, word in given["users"].items():
    User.objects.create_superuser(name, "", word)
"""


class DjangoAdmin(Application):
    name = "Django's administration"
    packages = ("python3-django",)
    needs = ("/usr/bin/python3", "/usr/lib/python3/dist-packages/django")
    start = "/admin/"

    def __init__(
        self,
        count: int = 400,
        address: str = "127.0.0.1",
        users: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(count, address)
        self._users = dict(users or {})

    def environment(self) -> dict[str, str]:
        own = {"DJANGO_SETTINGS_MODULE": "served", "PYTHONPATH": str(self.folder)}
        return super().environment() | own

    def _prepare(self) -> list[str | Path]:
        self.write("served.py", _SETTINGS.replace("FOLDER", str(self.folder)))
        self.write("library/__init__.py", "")
        self.write("templates/admin/base_site.html", _OPEN)
        self.write("library/urls.py", _URLS)
        self.write("library/models.py", _MODELS)
        self.write("library/admin.py", f"{_ADMIN}admin.site.register(Document)\n")
        python = ["/usr/bin/python3", "-W", "ignore"]
        self.run(*python, "-m", "django", "migrate", "--run-syncdb", "-v", "0")
        rows = [(one.title, one.text) for one in documents(self.count)]
        given = json.dumps({"documents": rows, "users": self._users}).encode()
        self.run(*python, "-c", _FILL, given=given)
        where = f"{self.address}:{self.port}"
        return [*python, "-m", "django", "runserver", "--noreload", "--insecure", where]

    def _rows(self, query: str) -> list[tuple[Any, ...]]:
        with closing(sqlite3.connect(self.folder / "base", timeout=60)) as base:
            return base.execute(query).fetchall()

    def changes(self) -> list[str]:
        """Its own log of changes and deletions."""
        return [str(row) for row in self._rows("SELECT * FROM django_admin_log")]

    def sessions(self) -> int:
        """How many are signed in."""
        return len(self._rows("SELECT session_key FROM django_session"))

    def documents(self) -> frozenset[str]:
        return frozenset(str(number) for (number,) in self._rows("SELECT id FROM library_document"))

    def document_of(self, url: str) -> str:
        found = re.fullmatch(r"/admin/library/document/(\d+)/change/", urlsplit(url).path)
        return found[1] if found else ""
