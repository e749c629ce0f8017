"""A site whose pages are empty without JavaScript, and what its scripts try besides."""

from __future__ import annotations

import json

from tests.support.servers.scripted import Reply, Request

SHELL = (
    "<title>App</title><link rel=stylesheet href=/app.css><div id=app></div><img src=/logo.png>"
    "<noscript>This application needs JavaScript.</noscript><script src=/app.js></script>"
)
SCRIPT = """
async function show() {
  const data = await (await fetch('/data' + location.pathname)).json();
  document.title = data.title;
  document.getElementById('app').innerHTML =
    '<p>' + data.text + '</p>' + data.links.map(to => `<a href="${to}">${to}</a>`).join(' ');
  for (const url of data.tries) fetch(url).catch(() => 0);
  fetch('/changed', {method: 'POST', body: 'x'}).catch(() => 0);
  navigator.sendBeacon('/changed', 'x');
}
show();
"""


class ScriptedPages:
    """``answer`` is the route of a ScriptedServer. ``tries`` are what each page's script asks for
    besides."""

    def __init__(self, count: int = 5, tries: tuple[str, ...] = ()) -> None:
        self.count, self.tries = count, list(tries)
        self.script = SCRIPT

    @property
    def titles(self) -> dict[str, str]:
        return {"/": "Page 0"} | {f"/page/{n}": f"Page {n}" for n in range(1, self.count)}

    def answer(self, request: Request) -> Reply:
        path = request.path
        html = {"Content-Type": "text/html; charset=utf-8"}
        if path == "/robots.txt":
            return Reply(200, {}, b"User-agent: *\nDisallow: /secret\n")
        if path == "/app.js":
            return Reply(200, {"Content-Type": "text/javascript"}, self.script.encode())
        if path.startswith("/data/"):
            number = int(path.rpartition("/")[2] or 0)
            links = [f"/page/{n}" for n in range(1, self.count)]
            said = f"What the script of page {number} has written, déjà vu."
            body = {"title": f"Page {number}", "text": said, "links": links, "tries": self.tries}
            return Reply(200, {"Content-Type": "application/json"}, json.dumps(body).encode())
        if path in self.titles:
            return Reply(200, html, SHELL.encode())
        return Reply(404)
