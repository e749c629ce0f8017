"""A site whose every text is an attack on a page that would show it: titles, link texts, URLs,
headers, bodies. What runs says so in ``window.ran`` or makes an element that has ``data-ran``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape
from urllib.parse import quote

from tests.support.servers.scripted import Reply, Request, Route

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
