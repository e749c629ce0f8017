"""Documents of Debian packages that ``dpkg -x`` has unpacked, a folder a package.

The words come from pdftotext, unzip, man, col and an HTML parser of Python; manuals in info and
texts are their own words. `PACKAGES` are those of docs/documents.md.
"""

from __future__ import annotations

import gzip
import re
import subprocess
import tempfile
import zipfile
from collections import Counter
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

from benchmarks.valid_documents.libreoffice import without_tags
from benchmarks.valid_documents.made import Made

PACKAGES = (
    "asymptote-doc", "bash-doc", "coreutils", "dblatex-doc", "debian-policy", "debian-reference-de",
    "developers-reference", "erlang-doc", "gnuplot-doc", "groff", "info",
    "libspreadsheet-parseexcel-perl", "maint-guide-fr", "nasm", "octave-doc", "python3-docx",
    "python3-odf", "tcllib",
)  # fmt: skip
_MOST = 15
"""Files of a format and package, the first by name."""
_FORMATS = {
    ".pdf": "pdf", ".docx": "docx", ".odt": "odt", ".epub": "epub", ".html": "html", ".txt": "text",
    ".info": "info", ".md": "Markdown", ".csv": "csv", ".xls": "xls",
}  # fmt: skip
_TEXTS = ("word/document.xml", "content.xml")
_BLOCK_ENDS = re.compile(rb"</(?:w:p|text:p|text:h|p|h\d|li|td|div|tr|dt|dd|pre|title)>|<br ?/>")


def files(folder: Path, wanted: set[str]) -> Iterator[Made]:
    """``wanted``: formats, all if empty."""
    for package in PACKAGES:
        seen: Counter[str] = Counter()
        for path in sorted((folder / package).rglob("*")):
            kind = _format_of(path)
            if (
                not kind
                or path.is_symlink()
                or not path.is_file()
                or (wanted and kind not in wanted)
            ):
                continue
            seen[kind] += 1
            if seen[kind] <= _MOST and (text := _text_of(path, kind)) is not None:
                yield Made(kind, f"{package}-{path.name}", path.read_bytes(), text)


def _format_of(path: Path) -> str:
    name = path.name.removesuffix(".gz")
    if "/man/" in str(path) and re.search(r"\.\d\w*$", name):
        return "man"
    return _FORMATS.get(Path(name).suffix, "")


def _text_of(path: Path, kind: str) -> str | None:
    """None where no other program knows its words."""
    body = path.read_bytes()
    if path.suffix == ".gz":
        body = gzip.decompress(body)
    if kind == "pdf":
        return _said_by("pdftotext", "-", "-", body=body)
    if kind == "man":
        return _without_border(_said_by("man", "--nh", "--nj", "-l", "-", body=body))
    if kind == "xls":
        return _said_by("xls2csv", "-", body=body)
    if kind in ("docx", "odt", "epub"):
        with tempfile.TemporaryFile() as file:
            file.write(body)
            with zipfile.ZipFile(file) as archive:
                names = [
                    name for name in archive.namelist() if name in _TEXTS or name.endswith("html")
                ]
                return "\n".join(
                    without_tags(_BLOCK_ENDS.sub(b"\n", archive.read(name))) for name in names
                )
    if b"\b" in body and kind == "text":  # bold letters are struck twice
        body = (_said_by("col", "-b", "-x", body=body) or "").encode()
    text = body.decode("utf-8", "replace")
    if kind == "html" or text.startswith("<?xml"):
        page = _Page()
        page.feed(text)
        return "".join(page.pieces)
    return None if "\ufffd" in text else text


def _said_by(*command: str, body: bytes) -> str | None:
    done = subprocess.run(command, input=body, capture_output=True, check=False)
    return done.stdout.decode("utf-8", "replace") if done.returncode == 0 else None


def _without_border(page: str | None) -> str | None:
    """Without the first and the last line, in which man names the section of the manual."""
    return None if page is None else "\n".join(page.strip("\n").split("\n")[1:-1])


class _Page(HTMLParser):
    """The text of a page, but for scripts, styles, and divisions that are not shown."""

    _INLINE = frozenset(("a", "b", "i", "em", "strong", "code", "tt", "span", "sup", "sub", "font"))

    def __init__(self) -> None:
        super().__init__()
        self.pieces: list[str] = []
        self._skipped = 0
        self._hidden = 0  # open <div> from one that is not shown on

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._skipped += tag in ("script", "style")
        is_hidden = "display: none" in (dict(attrs).get("style") or "")
        self._hidden += tag == "div" and (bool(self._hidden) or is_hidden)
        self._part(tag)

    def handle_endtag(self, tag: str) -> None:
        self._skipped -= tag in ("script", "style")
        self._hidden -= tag == "div" and self._hidden > 0
        self._part(tag)

    def handle_data(self, data: str) -> None:
        if self._skipped <= 0 and not self._hidden:
            self.pieces.append(data)

    def _part(self, tag: str) -> None:
        if tag not in self._INLINE:
            self.pieces.append("\n")
