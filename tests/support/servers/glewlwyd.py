"""Debian's glewlwyd, a provider of OpenID Connect written in C, on a free port.

with Glewlwyd() as server:
    server.register(f"{url}/oidc/callback")
    location = server.sign_in(url)        # of anna, whose groups are hr and staff
"""

from __future__ import annotations

import http.cookiejar
import json
import shutil
import sqlite3
import subprocess
import tempfile
import urllib.request
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from tests.support.servers.oidc import SECRET, Browser
from tests.support.servers.processes import end, free_port, listens, wait_for

_TABLES = Path("/usr/share/dbconfig-common/data/glewlwyd/install/sqlite3")
_CONFIGURATION = """
port={port}
bind_address="127.0.0.1"
external_url="http://127.0.0.1:{port}"
login_url="login.html"
api_prefix="api"
cookie_secure=0
session_key="GLEWLWYD2_SESSION_ID"
session_expiration=2419200
admin_scope="g_admin"
profile_scope="g_profile"
user_module_path="/usr/lib/glewlwyd/user"
user_middleware_module_path="{folder}/none"
client_module_path="/usr/lib/glewlwyd/client"
user_auth_scheme_module_path="/usr/lib/glewlwyd/scheme"
plugin_module_path="/usr/lib/glewlwyd/plugin"
hash_algorithm="SHA512"
log_mode="console"
log_level="INFO"
database = {{ type = "sqlite3"; path = "{folder}/db"; }};
static_files_path="/usr/share/glewlwyd/webapp"
static_files_mime_types = ( {{ extension = ".html"; mime_type = "text/html"; compress = 0; }} )
"""


class Glewlwyd:
    def __enter__(self) -> Self:
        program = shutil.which("glewlwyd")
        if program is None or not _TABLES.exists():
            pytest.skip("not installed: Debian's glewlwyd")
        self._temporary = tempfile.TemporaryDirectory(prefix="larm-glewlwyd-")
        folder = Path(self._temporary.name)
        (folder / "none").mkdir()
        self.port = free_port("127.0.0.1")
        self.url = f"http://127.0.0.1:{self.port}"
        self.issuer = f"{self.url}/api/oidc"
        _fill(folder / "db")
        text = _CONFIGURATION.format(port=self.port, folder=folder)
        (folder / "glewlwyd.conf").write_text(text)
        with (folder / "log").open("wb") as log:
            self._process = subprocess.Popen(
                [program, f"--config-file={folder / 'glewlwyd.conf'}"],
                stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip
        wait_for(self._process, folder / "log", lambda: listens("127.0.0.1", self.port))
        self._jar = http.cookiejar.CookieJar()
        self._call("POST", "/auth/", {"username": "admin", "password": "password"})
        anna = {
            "username": "anna", "name": "anna@corp", "email": "a@corp.example", "enabled": True,
            "password": "password of anna", "scope": ["openid"], "groups": ["hr", "staff"],
        }  # fmt: skip
        self._call("POST", "/user/", anna)
        self._call("POST", "/mod/plugin/", _plugin(self.issuer))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        end(self._process)
        self._temporary.cleanup()

    def _call(self, method: str, path: str, body: dict[str, Any], jar: Any = None) -> None:
        processor = urllib.request.HTTPCookieProcessor(self._jar if jar is None else jar)
        asked = urllib.request.Request(
            f"{self.url}/api{path}", json.dumps(body).encode(),
            {"Content-Type": "application/json"}, method=method,
        )  # fmt: skip
        urllib.request.build_opener(processor).open(asked, timeout=30).close()

    def register(self, callback: str) -> None:
        """Make the client that is sent back there."""
        self._call("POST", "/client/", {
            "client_id": "larmspider", "name": "larmspider", "client_secret": SECRET,
            "confidential": True, "enabled": True, "redirect_uri": [callback],
            "authorization_type": ["code"], "scope": ["openid"],
            "token_endpoint_auth_method": ["client_secret_basic"],
        })  # fmt: skip

    def sign_in(self, url: str) -> str:
        """What its sign-in page does, which is a script: password, consent, and back to the URL."""
        browser = Browser(self.url)
        person = {"username": "anna", "password": "password of anna"}
        self._call("POST", "/auth/", person, browser.cookies)
        self._call("PUT", "/auth/grant/larmspider", {"scope": "openid"}, browser.cookies)
        return browser.ask(f"{url}&g_continue").location

    @property
    def settings(self) -> dict[str, Any]:
        return {
            "issuer": self.issuer, "client_id": "larmspider", "client_secret": "oidc",
            "name": "Glewlwyd", "scopes": "openid", "name_claim": "name",
        }  # fmt: skip


def _fill(database: Path) -> None:
    """The tables as Debian fills them, and a property of users with several values."""
    with sqlite3.connect(database) as connection:
        connection.executescript(_TABLES.read_text())
        table = "g_user_module_instance"
        [(text,)] = connection.execute(f"SELECT gumi_parameters FROM {table}").fetchall()
        parameters = json.loads(text)
        parameters["data-format"]["groups"] = {"multiple": True, "read": True, "write": True}
        connection.execute(f"UPDATE {table} SET gumi_parameters = ?", (json.dumps(parameters),))
    connection.close()


def _plugin(issuer: str) -> dict[str, Any]:
    key = rsa.generate_private_key(65_537, 2_048)
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.TraditionalOpenSSL,
        serialization.NoEncryption(),
    )
    public = key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    kinds = ("client", "implicit", "password", "refresh", "token", "none", "device")
    groups = {
        "name": "groups", "user-property": "groups", "type": "string", "mandatory": True,
        "scope": [],
    }  # fmt: skip
    parameters = {
        "iss": issuer, "jwt-type": "rsa", "jwt-key-size": "256", "key": private.decode(),
        "cert": public.decode(), "access-token-duration": 3_600, "refresh-token-duration": 3_600,
        "code-duration": 600, "refresh-token-rolling": True, "allow-non-oidc": False,
        "auth-type-code-enabled": True, **{f"auth-type-{kind}-enabled": False for kind in kinds},
        "subject-type": "public", "pkce-allowed": True, "pkce-method-plain-allowed": False,
        "pkce-required": True, "oauth-as-iss-id": True, "claims": [groups],
        "name-claim": "mandatory", "name-claim-scope": [], "scope-claim": "no",
        "email-claim": "no", "additional-parameters": [], "scope": [],
    }  # fmt: skip
    return {"module": "oidc", "name": "oidc", "display_name": "oidc", "parameters": parameters}
