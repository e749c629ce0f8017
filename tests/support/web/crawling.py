"""A crawl that runs in another process and serves its own pages, and the site that it crawls.

with Crawling(tmp_path, server.url("/")) as crawl:
    crawl.get("/stats.json").json["numbers"]["pages"]
"""

from __future__ import annotations

import re
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from html import escape
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote

from tests.support.crawling import begin
from tests.support.servers.scripted import Reply, Request, Route
from tests.support.web.serving import Got, request

WAIT_SECS = 120.0
SETTINGS = {
    "DOWNLOAD_DELAY": "0.05",
    "LARM_SITEMAPS": "no",
    "LARM_TRAPS": "off",
    "LARM_DELAY_RESPONSE_FACTOR": "0",
    "LARM_BACKOFF_SECS": "0.1",
    "LARM_MONITOR_SECS": "0.2",
    "LARM_CHECKPOINT_SECS": "0.3",
    "LARM_WEB_PORT": "0",
}


def endless(links: int = 3) -> Callable[[Request], Reply]:
    """A page at any path, with some links to pages that were not linked before."""

    def page(asked: Request) -> Reply:
        number = int(re.sub(r"\D", "", asked.target) or 0)
        to = "".join(f"<a href=/{number * links + n + 1}>page</a>" for n in range(links))
        return Reply(200, {"Content-Type": "text/html"}, f"<title>{number}</title>{to}".encode())

    return page


class Crawling:
    """``settings`` over SETTINGS; ends with SIGINT unless it has ended. ``settings_module`` may lie
    in ``folder``."""

    def __init__(
        self,
        folder: Path,
        start: str,
        *,
        settings_module: str = "larmspider.settings",
        **settings: str,
    ) -> None:
        self.folder, self.directory = folder, folder / "crawl"
        arguments = ["crawl", "intranet", "-a", f"start={start}"]
        for name, value in ({**SETTINGS} | settings).items():
            arguments += ["-s" if name.isupper() else "-a", f"{name}={value}"]
        self._arguments, self._settings_module = arguments, settings_module
        self.url = ""

    def __enter__(self) -> Self:
        self._said = (self.folder / "said").open("w+")
        self.process = begin(
            *self._arguments,
            cwd=self.folder,
            out=self._said,
            settings_module=self._settings_module,
        )
        found = self.until(
            lambda: re.search(r"Web pages of this crawl: (http://\S+)/\n", self.said),
            "its address",
        )
        self.url = found[1]
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            if self.process.poll() is None:
                self.process.send_signal(signal.SIGINT)
                self.process.wait(WAIT_SECS)
        finally:
            self.process.kill()
            self.process.wait()
            self._said.close()

    @property
    def said(self) -> str:
        return (self.folder / "said").read_text("utf-8", "replace")

    @property
    def token(self) -> str:
        return (self.directory / "web.token").read_text().strip()

    def get(self, target: str, **headers: str) -> Got:
        return request(
            self.url + target, headers={name.replace("_", "-"): v for name, v in headers.items()}
        )

    def act(self, name: str, form: Mapping[str, str] | None = None) -> Got:
        """As a script does it, with the token."""
        headers = {"Authorization": f"Bearer {self.token}"}
        return request(f"{self.url}/control/{name}", "POST", headers, form or {"x": ""})

    @property
    def gauges(self) -> Any:
        return self.get("/stats.json").json["numbers"]

    def until(self, true: Callable[[], Any], what: str) -> Any:
        """The first true value."""
        end = time.monotonic() + WAIT_SECS
        while time.monotonic() < end:
            if value := true():
                return value
            if self.process.poll() is not None:
                raise AssertionError(f"ended before {what}: {self.said[-3000:]}")
            time.sleep(0.05)
        raise AssertionError(f"not in {WAIT_SECS:g} s: {what}; {self.said[-2000:]}")


# A site whose every text is an attack on a page that would show it: titles, link texts, URLs,
# headers, bodies. Code that runs sets ``window.ran`` or makes an element with ``data-ran``.


RUN = "window.ran=1;document.title='ran'"
LONG = "a" * 200
PAYLOADS = (
    f"<script>{RUN}</script>",
    f"</title><script>{RUN}</script>",
    f"</textarea></style></noscript><script>{RUN}</script>",
    f"<img src=x onerror={RUN}>",
    f"\"><img src=x onerror={RUN}>",
    f"'><svg onload={RUN}>",
    f"\" autofocus onfocus=\"{RUN}\" x=\"",
    f"' onmouseover='{RUN}",
    f"<svg><script>{RUN}</script></svg>",
    f"<iframe srcdoc='<script>parent.{RUN}</script>'></iframe>",
    f"<details open ontoggle={RUN}>",
    f"<a href=javascript:{RUN}>x</a>",
    "<base href=http://127.0.0.1:9/>",
    "<meta http-equiv=refresh content='0;url=data:text/html,ran'>",
    "<form action=http://127.0.0.1:9/><button>Sign in</button></form>",
    "<link rel=stylesheet href=data:text/css,*{display:none}>",
    "<b data-ran>bold</b>",
    "{{ 7*'7' }}{% raw %}${7*7}#{7*7}<%= 7*7 %>",
    f"javascript:{RUN}//",
    "data:text/html,<script>window.ran=1</script>",
    "\u202egnp.exe\u202c \u2066\u2028\u2029\ufeff",
    "\x1b[31mred\x1b[0m \x08\x7f \x9b31m",
    "<!--", "]]>", "-->", "*/", "\\", "%00", "&lt;script&gt;", "＜script＞",
    "../../../../etc/passwd", "..%2f..%2f", "//evil.example/", "file:///etc/passwd",
)  # fmt: skip


def hostile_routes(texts: Sequence[str]) -> dict[str, Route]:
    """One page for each text, all linked from /."""

    def page(number: int, text: str) -> Callable[[Request], Reply]:
        link = f"/p/{number + 1}/{quote(text, safe='')}?q={quote(text, safe='')}"
        body = (
            f"<html lang='{escape(text)}'><head><title>{escape(text)}</title>"
            f"<meta name=description content='{escape(text)}'></head><body>"
            f"<h1>{escape(text)}</h1><p>common {escape(text)}</p>{text}"
            f"<a href='{escape(link)}'>{escape(text)}</a>"
            f"<a href='{escape(text)}'>{escape(text)}</a></body></html>"
        )
        plain = "".join(char for char in text if 32 <= ord(char) < 127)
        headers = [("Content-Type", "text/html; charset=utf-8"), ("X-Note", plain)]
        headers += [("Content-Language", plain), ("ETag", f'"{plain}"'), ("Last-Modified", plain)]
        status = (200, 200, 404, 500, 302)[number % 5]
        if status == 302:
            headers.append(("Location", quote(f"/r/{text}", safe="/")))
        return Reply(status, headers, body.encode("utf-8", "replace"))  # type: ignore[return-value]

    pages = {f"/p/{number}": page(number, text) for number, text in enumerate(texts)}
    links = f"<a href='/p/0'>{LONG}</a>" + "".join(
        f"<a href='/p/{n}'>{escape(text)}</a>" for n, text in enumerate(texts)
    )
    robots = "".join(f"Disallow: /r/{quote(text, safe='')}\n" for text in texts[:50])
    return {
        "/robots.txt": f"User-agent: *\n{robots}",
        "/": f"<title>Index</title>common {links}".encode("utf-8", "replace"),
        **pages,
        "*": (
            404,
            {"Content-Type": "text/html"},
            b"<title></textarea><script>window.ran=1</script>",
        ),
    }  # type: ignore[dict-item]
