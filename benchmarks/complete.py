"""Whether a crawl stores every page: manuals are crawled, and their files are walked beside that.

    python -m benchmarks.complete                       # those of MANUALS that are installed
    python -m benchmarks.complete /srv/manual/index.html --root /srv/manual

Each folder is served by nginx, or by Python's http.server where that is not installed, and crawled
without delay by the spider with its default rules. The walk knows nothing of the crawler: it parses
the files by html.parser, resolves links by urllib, and follows those that name a file below the
folder, from the same start page, but for links that say nofollow. Every file that the walk reaches
has to be stored, byte for byte. A copy that is byte for byte another stored file may be left out: a
page of two names is one page.

Prints what is missing, with the pages that link there and what the crawl has to say about it. Exit
status 0: nothing is missing; 1: something is; 2: nothing to crawl.
"""

from __future__ import annotations

import argparse
import mimetypes
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from itertools import islice
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote, unquote, urljoin, urlsplit

from larmspider.crawl.reader import CrawlDir
from tests.support.servers.nginx import NGINX, Nginx

ADDRESS = "127.21.0.2"
SETTINGS = {
    "DOWNLOAD_DELAY": "0",
    "LARM_DELAY_RESPONSE_FACTOR": "0",
    "CONCURRENT_REQUESTS_PER_DOMAIN": "16",
    "LARM_WEB": "no",
    "LARM_PROGRESS": "no",
    "LOG_LEVEL": "WARNING",
    "LARM_DENY_ADDRESSES": "0.0.0.0/0,::/0",
    "LARM_ALLOW_ADDRESSES": "127.0.0.0/8",
}
_NO_PATH = re.compile("%00|%(?![0-9A-Fa-f]{2})")
_INDEX = ("index.html", "index.htm")
_NAMED, _EXPLAINED = 50, 10
"""Missing files of a manual that are named, and of these how many the crawl is asked about."""


class Manual(NamedTuple):
    """The folder that is served, and the page in it that the crawl starts with."""

    root: Path
    start: str

    @property
    def installed(self) -> bool:
        return (self.root / self.start).is_file()


MANUALS = {
    "python-django-doc": Manual(Path("usr/share/doc/python-django-doc/html"), "index.html"),
    "sqlite3-doc": Manual(Path("usr/share/doc/sqlite3"), "index.html"),
    "git-doc": Manual(Path("usr/share/doc/git-doc"), "index.html"),
    "cmake-doc": Manual(Path("usr/share/doc/cmake-data/html"), "index.html"),
    "octave-doc": Manual(Path("usr/share/doc/octave/octave.html"), "index.html"),
    "ffmpeg-doc": Manual(Path("usr/share/doc/ffmpeg/api"), "index.html"),
    "apache2-doc": Manual(Path("usr/share/doc/apache2-doc/manual"), "en/index.html"),
    "valgrind": Manual(Path("usr/share/doc/valgrind/html"), "index.html"),
    "libboost1.74-doc": Manual(Path("usr/share/doc/libboost1.74-doc"), "doc/html/index.html"),
    "postgresql-doc-15": Manual(Path("usr/share/doc/postgresql-doc-15/html"), "index.html"),
    "lilypond-doc-html-fr": Manual(
        Path("usr/share/doc/lilypond/html/Documentation"), "web/index.fr.html"
    ),
    "libgtk-3-doc": Manual(Path("usr/share/gtk-doc/html"), "gtk3/index.html"),
    "libglib2.0-doc": Manual(Path("usr/share/gtk-doc/html"), "gio/index.html"),
    "postfix-doc": Manual(Path("usr/share/doc/postfix/html"), "index.html"),
}
"""Debian package -> its manual, below the root directory or --under."""


class _Links(HTMLParser):
    """The links of a page as they stand there, and its base element."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.hrefs: list[str] = []
        self.base: str | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(reversed(attrs))
        if "nofollow" in (values.get("rel") or "").lower().split():
            return
        if tag in ("a", "area"):
            self.hrefs.append(values.get("href") or "")
        elif tag in ("frame", "iframe"):
            self.hrefs.append(values.get("src") or "")
        elif tag == "base" and self.base is None:
            self.base = values.get("href")
        elif tag == "link" and {"next", "prev"} & set((values.get("rel") or "").lower().split()):
            self.hrefs.append(values.get("href") or "")


def walk(root: Path, start: str, origin: str) -> dict[Path, str]:
    """The files that links lead to from ``start``, each with the first page that links there."""
    root = root.resolve()
    first = _file_of(root, "/" + quote(start))
    assert first is not None
    found = {first: ""}
    queue = deque([(first, urljoin(origin, quote(start)))])
    while queue:
        file, url = queue.popleft()
        if mimetypes.guess_type(file.name)[0] not in ("text/html", "application/xhtml+xml"):
            continue
        links = _Links()
        links.feed(file.read_text("utf-8", "replace"))
        base = urljoin(url, links.base.strip()) if links.base else url
        for href in links.hrefs:
            try:
                target = urljoin(base, href.strip())
                same = target.startswith(origin)
                linked = _file_of(root, urlsplit(target).path) if same else None
            except ValueError:
                continue
            if linked is not None and linked not in found:
                found[linked] = url
                path = urlsplit(target).path
                if linked.name in _INDEX and not path.endswith(linked.name):
                    path = path.rstrip("/") + "/"  # where the server redirects to
                queue.append((linked, urljoin(origin, path)))
    return found


def _file_of(root: Path, path: str) -> Path | None:
    """The file that a server answers a path with; symbolic links are followed. None for a path with
    a percent sign that begins no escape, which nginx answers with 400."""
    file = Path(os.path.normpath(f"{root}/{unquote(path)}"))
    if "\0" in path or _NO_PATH.search(path) or not file.is_relative_to(root):
        return None
    if file.is_dir():
        return next(((file / name).resolve() for name in _INDEX if (file / name).is_file()), None)
    return file.resolve() if file.is_file() and not path.endswith("/") else None


class Result(NamedTuple):
    """``missing`` maps a file to the page that links there first; ``differing`` are stored, but not
    as they are on disk; ``copies`` are missing, but equal to a file that is stored."""

    reached: int
    missing: dict[Path, str]
    differing: list[Path]
    copies: list[Path]
    seconds: float


def compare(root: Path, crawl: CrawlDir, reached: dict[Path, str], seconds: float) -> Result:
    """What a crawl of ``root`` lacks of what the walk has reached."""
    root = root.resolve()
    stored, differing, bodies = set(), [], set()
    for page in crawl.pages():
        file = _file_of(root, urlsplit(page.url).path)
        if page.status != 200 or file is None:
            continue
        body = crawl.body(page)
        stored.add(file)
        bodies.add(body)
        if body != file.read_bytes():
            differing.append(file)
    missing = {file: page for file, page in reached.items() if file not in stored}
    copies = [file for file in missing if file.read_bytes() in bodies]
    lost = {file: page for file, page in missing.items() if file not in copies}
    return Result(len(reached), lost, differing, copies, seconds)


@contextmanager
def served(root: Path) -> Iterator[str]:
    """The origin by which the folder is reached meanwhile."""
    if NGINX is not None:
        with Nginx({ADDRESS: root}) as nginx:
            yield nginx.url()
        return
    quiet = type("Quiet", (SimpleHTTPRequestHandler,), {"log_message": lambda *_: None})
    with ThreadingHTTPServer((ADDRESS, 0), partial(quiet, directory=str(root))) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://{ADDRESS}:{server.server_port}/"
        finally:
            server.shutdown()
            thread.join()


def _scrapy(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "scrapy", *words],
        env=os.environ | {"SCRAPY_SETTINGS_MODULE": "larmspider.settings"},
        capture_output=True,
        text=True,
        check=False,
    )


def check(manual: Manual, directory: Path, say: Callable[[str], object] = print) -> Result:
    """Crawl a manual into ``directory``, walk it, and say what is missing."""
    with served(manual.root) as origin:
        began = time.monotonic()
        ran = _scrapy(
            *("crawl", "intranet", "-a", f"start={origin}{quote(manual.start)}"),
            *(f"-s{name}={value}" for name, value in SETTINGS.items()),
            f"-sLARM_DIR={directory}",
        )
        seconds = time.monotonic() - began
        if ran.returncode:
            raise SystemExit(f"{manual.root}: the crawl ended with {ran.returncode}: {ran.stderr}")
        reached = walk(manual.root, manual.start, origin)
        result = compare(manual.root, CrawlDir(directory), reached, seconds)
        for number, (file, page) in enumerate(islice(result.missing.items(), _NAMED)):
            say(f"  missing: {file}, linked from {page or 'nowhere: the start page'}")
            if number < _EXPLAINED:
                url = origin + quote(str(file.relative_to(manual.root.resolve())))
                told = _scrapy("explain", url, "--dir", str(directory))
                say("    " + (told.stdout + told.stderr).strip().replace("\n", "\n    "))
        for file in result.differing:
            say(f"  stored, but not as it is on disk: {file}")
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("start", nargs="*", type=Path, help="a start page; default: MANUALS")
    parser.add_argument("--root", type=Path, help="the folder to serve; default: the start page's")
    parser.add_argument(
        "--under", type=Path, default=Path("/"), help="where the packages are unpacked (dpkg -x)"
    )
    parser.add_argument("--only", nargs="+", choices=MANUALS, help="some of MANUALS")
    options = parser.parse_args()
    manuals = {str(start): _manual(parser, start, options.root) for start in options.start}
    for package in () if manuals else options.only or MANUALS:
        root, start = MANUALS[package]
        folders = (options.under / root, options.under / package / root)
        found = [Manual(folder, start) for folder in folders if Manual(folder, start).installed]
        if found:
            manuals[package] = found[0]
        else:
            print(f"{package}: not installed, left out")
    if not manuals:
        parser.exit(2, "no manual to crawl: apt install python-django-doc, or name a start page\n")
    lost = 0
    print(f"{'':24} {'reached':>8} {'missing':>8} {'differ':>8} {'copies':>8} {'seconds':>8}")
    for name, manual in manuals.items():
        with tempfile.TemporaryDirectory(prefix="complete-") as folder:
            reached, missing, differing, copies, seconds = check(manual, Path(folder, "crawl"))
        lost += len(missing) + len(differing)
        print(
            f"{name:24} {reached:8,} {len(missing):8,} {len(differing):8,} {len(copies):8,}"
            f" {seconds:8.1f}",
            flush=True,
        )
    parser.exit(1 if lost else 0)


def _manual(parser: argparse.ArgumentParser, start: Path, root: Path | None) -> Manual:
    root = root or start.parent
    if not start.is_file() or not start.resolve().is_relative_to(root.resolve()):
        parser.error(f"{start}: expected a page below {root}")
    return Manual(root, str(start.absolute().relative_to(root.absolute())))


if __name__ == "__main__":
    main()
