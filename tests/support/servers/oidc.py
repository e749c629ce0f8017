"""npm's oidc-provider, a real provider of OpenID Connect, on a free port (.ci/run installs it).

with OidcServer() as server:
    server.settings                       # for ServerSettings
    location = server.sign_in(url, "anna")    # from its first page to the redirect back
"""

from __future__ import annotations

import http.cookiejar
import re
import shutil
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self
from urllib.parse import urlencode, urljoin

import pytest

from tests.support.servers.processes import end, free_port, listens, wait_for

SECRET = "client-secret"
SCRIPT = Path(__file__).with_name("oidc_provider.mjs")


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *arguments: Any) -> None:
        return None


class OidcServer:
    def __enter__(self) -> Self:
        modules, node = Path(sys.prefix) / "lib" / "node_modules", shutil.which("node")
        beside = Path(sys.prefix) / "bin" / "node"
        node = node or (str(beside) if beside.exists() else None)
        if node is None or not (modules / "oidc-provider").exists():
            pytest.skip("not installed: oidc-provider, by .ci/run")
        self.port = free_port("127.0.0.1")
        self.issuer = f"http://127.0.0.1:{self.port}"
        self._folder = tempfile.TemporaryDirectory(prefix="larm-oidc-")
        self._log = Path(self._folder.name) / "log"
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [node, str(SCRIPT), str(modules), str(self.port)],
                stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip
        wait_for(self._process, self._log, lambda: listens("127.0.0.1", self.port))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        end(self._process)
        self._folder.cleanup()

    @property
    def settings(self) -> dict[str, Any]:
        """The table [oidc]; its secret is a file of the home, which secret_in() writes."""
        return {
            "issuer": self.issuer, "client_id": "larmspider", "client_secret": "oidc",
            "name": "Corp", "scopes": "openid profile groups",
        }  # fmt: skip

    def secret_in(self, home: Path) -> None:
        folder = home / "secrets"
        folder.mkdir(exist_ok=True)
        (folder / "oidc").write_text(f"hosts: 127.0.0.1:*\n{SECRET}\n")
        (folder / "oidc").chmod(0o600)

    def control(self, path: str) -> None:
        urllib.request.urlopen(f"{self.issuer}/-/{path}", timeout=30).close()

    def browser(self) -> Browser:
        return Browser(self.issuer)

    def sign_in(self, url: str, person: str) -> str:
        return self.browser().sign_in(url, person)


class Page(NamedTuple):
    """``location``: where a redirect leads, "" for none."""

    status: int
    location: str
    text: str


class Browser:
    """The cookies of a browser at one server, which follows no redirect by itself."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.cookies = http.cookiejar.CookieJar()
        jar = urllib.request.HTTPCookieProcessor(self.cookies)
        self._opener = urllib.request.build_opener(jar, _NoRedirect())

    def ask(self, url: str, form: dict[str, str] | None = None) -> Page:
        data = None if form is None else urlencode(form).encode()
        asked = urllib.request.Request(urljoin(self.url, url), data, {"Accept": "text/html"})
        try:
            with self._opener.open(asked, timeout=30) as response:
                return Page(response.status, "", response.read().decode())
        except urllib.error.HTTPError as error:
            with error:
                return Page(error.code, error.headers.get("Location", ""), error.read().decode())

    def sign_in(self, url: str, person: str) -> str:
        """Type the name, consent, and return the URL of the redirect back."""
        form: dict[str, str] | None = None
        for _ in range(10):
            _, location, text = self.ask(url, form)
            if location:
                url, form = urljoin(url, location), None
                if not url.startswith(self.url):
                    return url
                continue
            action = re.search(r'<form[^>]* action="([^"]+)"', text)
            prompt = re.search(r'name="prompt" value="([^"]+)"', text)
            assert action, text
            assert prompt, text
            url, form = urljoin(url, action[1]), {"prompt": prompt[1]}
            if prompt[1] == "login":
                form |= {"login": person, "password": "any"}
        raise AssertionError(f"no redirect back after 10 pages: {url}")
