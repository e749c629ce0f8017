"""A small application behind a form, which really deletes and signs out by GET, as too many do."""

from __future__ import annotations

import secrets
from urllib.parse import parse_qs

from tests.support.servers.scripted import Reply, Request

FORM = """<title>Sign in</title><form action="/login" method="post">
<input type="hidden" name="token" value="{token}"><input name="user"><input type="password"
name="word"><button name="go" value="1">Sign in</button></form>"""


class SignedInSite:
    """``answer`` is the route of a ScriptedServer. ``pages`` are for those who are signed in;
    ``changed`` is what was done to them. ``forms`` counts attempts, ``sessions`` the cookies that
    count; to clear it signs everybody out."""

    def __init__(self, pages: dict[str, str], user: str = "joe", word: str = "canary-41aa") -> None:
        self.pages, self.user, self.word = dict(pages), user, word
        self.tokens: dict[str, str] = {}
        """The tokens of the shown forms, by the cookie that came with each."""
        self.sessions: set[str] = set()
        self.given: list[str] = []
        """All cookies that were ever given, and tokens."""
        self.changed: list[str] = []
        self.forms = 0

    @property
    def toml(self) -> str:
        """For a [[site]] table."""
        return (
            f'login = "/login"\nlogin_check = "Signed in as {self.user}"\n'
            f'login_fields = {{ user = "{self.user}", word = "{self.word}" }}\n'
        )

    def answer(self, request: Request) -> Reply:
        cookie = dict(
            pair.strip().partition("=")[::2]
            for pair in request.headers.get("cookie", "").split(";")
        ).get("id", "")
        html = {"Content-Type": "text/html; charset=utf-8"}
        if request.path == "/robots.txt":
            return Reply(404)
        if request.path == "/login" and request.method == "GET":
            cookie, token = secrets.token_hex(8), secrets.token_hex(8)
            self.tokens[cookie] = token
            self.given += [cookie, token]
            cookies = {"Set-Cookie": f"id={cookie}; HttpOnly; Path=/"}
            return Reply(200, html | cookies, FORM.format(token=token).encode())
        if request.path == "/login":
            return self._sign_in(cookie, parse_qs(request.body.decode()))
        if cookie not in self.sessions:
            return Reply(302, {"Location": f"/login?next={request.path}"})
        words = request.target.strip("/").replace("?", "/").split("/")
        if {"logout", "delete", "edit", "action=remove"} & set(words):
            self.changed.append(request.target)
            if "logout" in words:
                self.sessions.discard(cookie)
            else:
                self.pages.pop(f"/{words[0]}", None)
        if request.target not in self.pages:
            return Reply(404)
        fresh = secrets.token_hex(8)  # a new cookie with each page, as careful applications do
        self.sessions.add(fresh)
        self.given.append(fresh)
        body = f"<p>Signed in as {self.user}</p>{self.pages[request.target]}"
        return Reply(200, html | {"Set-Cookie": f"id={fresh}; Path=/"}, body.encode())

    def _sign_in(self, cookie: str, form: dict[str, list[str]]) -> Reply:
        self.forms += 1
        expected = {"user": [self.user], "word": [self.word], "go": ["1"]}
        expected["token"] = [self.tokens.pop(cookie, "-")]
        if form != expected:
            body = FORM.format(token="none").encode()
            return Reply(200, {"Content-Type": "text/html"}, body)
        fresh = secrets.token_hex(8)
        self.sessions.add(fresh)
        self.given.append(fresh)
        return Reply(303, {"Location": "/", "Set-Cookie": f"id={fresh}; Path=/"})
