"""Small pictures of documents beside their hits."""

from __future__ import annotations

import io
import os
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
from PIL import Image

from larmspider.crawl.reader import CrawlDir, StoredPage
from larmspider.web.auth import Guard
from larmspider.web.previews import MOST_BYTES, WIDTH, Previews
from larmspider.web.readers import Readers
from tests.support.documents.pdf_file import one_page
from tests.support.web.browser import Browser
from tests.support.web.serving import TOKEN, Served

PDF = "application/pdf"


def png(width: int, height: int) -> bytes:
    out = io.BytesIO()
    Image.new("RGBA", (width, height), (200, 0, 0, 128)).save(out, "PNG")
    return out.getvalue()


class OneBody(CrawlDir):
    """A crawl that has one body."""

    def __init__(self, path: Path, body: bytes) -> None:
        self.path, self._body = path, body
        self.read = 0

    def body(self, page: StoredPage) -> bytes:
        self.read += 1
        return self._body


def page(mime: str = PDF, size: int = 10, offset: int = 0) -> StoredPage:
    return StoredPage("", "http://h/a", "http://h/a", 0, 200, mime, size, "", 0, offset)


@pytest.fixture
def previews() -> Iterator[Previews]:
    made = Previews()
    yield made
    made.close()


@pytest.mark.parametrize("mime, body, size", [
    (PDF, one_page(), (184, 260)),
    (PDF, one_page().replace(b"[0 0 595 842]", b"[0 0 842 595]"), (184, 130)),
    (PDF, one_page().replace(b"[0 0 595 842]", b"[0 0 100 842]"), (33, 276)),
    ("image/png", png(1000, 500), (184, 92)),
    ("image/png", png(10, 5), (10, 5)),
])  # fmt: skip
def test_a_picture_fits_its_place(
    previews: Previews, tmp_path: Path, mime: str, body: bytes, size: tuple[int, int]
) -> None:
    drawn = previews.picture(OneBody(tmp_path, body), page(mime))
    assert drawn is not None
    with Image.open(io.BytesIO(drawn)) as image:
        assert image.format == "JPEG"
        assert abs(image.width - size[0]) <= 1
        assert abs(image.height - size[1]) <= 1
        assert image.getpixel((0, 0)) != (0, 0, 0), "the ground is white, not black"


HOSTILE = {
    "empty": (PDF, b""),
    "no PDF": (PDF, b"hello" * 100),
    "cut short": (PDF, one_page()[:200]),
    "no page": (PDF, one_page().replace(b"/Count 1/Kids[3 0 R]", b"/Count 0/Kids[     ]")),
    "a page without an end": (PDF, one_page().replace(b"[0 0 595 842]", b"[0 0 1e38 1e38]")),
    "a page of no size": (PDF, one_page().replace(b"[0 0 595 842]", b"[0 0 nan -5e99]")),
    "an image that is none": ("image/png", png(10, 10)[:40]),
    "a JPEG that is a PNG": ("image/jpeg", png(10, 10)),
    "an image of 10^10 pixels": (
        "image/png", png(10, 10).replace(b"\0\0\0\x0a\0\0\0\x0a", b"\0\1\x86\xa0\0\1\x86\xa0")),
    "a page that has a picture of another type": ("text/html", b"<html>"),
}  # fmt: skip


@pytest.mark.parametrize("mime, body", HOSTILE.values(), ids=HOSTILE)
def test_what_cannot_be_drawn_has_no_picture(
    previews: Previews, tmp_path: Path, mime: str, body: bytes
) -> None:
    """Or a small one; the next document has its own preview. It is tried once."""
    crawl = OneBody(tmp_path, body)
    drawn = [previews.picture(crawl, page(mime)) for _ in range(3)]
    assert len(set(drawn)) == 1
    assert crawl.read <= 1
    assert drawn[0] is None or len(drawn[0]) < 10_000
    assert previews.picture(OneBody(tmp_path, one_page()), page(offset=1)) is not None


@pytest.mark.acceptance
def test_a_page_that_takes_for_ever_is_given_up(previews: Previews, tmp_path: Path) -> None:
    """After the seconds of CPU that a picture may take; the process is another one then."""
    squares = b"0 0 m 500 800 l 500 0 l 0 800 l f* " * 200
    form = b"<</Type/XObject/Subtype/Form/BBox[0 0 600 850]/Resources<</XObject<</N %d 0 R>>>>"
    forms = {
        f"o{n}": (form + b"/Length %d>>stream\n%b\nendstream")
        % (n + 1, 9 * 12 + len(squares), b"/N Do /N Do " * 9 + squares)
        for n in range(6, 16)
    }
    forms["o16"] = form.partition(b"/Resources")[0] + b"/Length %d>>stream\n%b\nendstream" % (
        len(squares),
        squares,
    )
    endless = (
        one_page(page=b"", **forms)
        .replace(b"/Font<</F1 5 0 R>>", b"/XObject<</N 6 0 R>>", 1)
        .replace(b"BT /F1 12 Tf 60 780 Td (drawn) Tj ET", b"/N Do".ljust(36), 1)
    )
    began = time.monotonic()
    assert previews.picture(OneBody(tmp_path, endless), page()) is None
    assert time.monotonic() - began < 60
    assert previews.picture(OneBody(tmp_path, one_page()), page(offset=1)) is not None


def test_the_process_may_die(previews: Previews, tmp_path: Path) -> None:
    assert previews.picture(OneBody(tmp_path, one_page()), page()) is not None
    assert previews._process is not None
    os.kill(previews._process.started().pid, 9)
    previews._process.started().wait()
    assert previews.picture(OneBody(tmp_path, one_page()), page(offset=1)) is not None


def test_the_oldest_give_way_on_the_disk(tmp_path: Path) -> None:
    """And none is left when the server ends."""
    previews = Previews(kept_bytes=3_000)
    crawl = OneBody(tmp_path, one_page())
    for offset in range(20):
        assert previews.picture(crawl, page(offset=offset)) is not None
    assert previews._folder is not None
    folder = Path(previews._folder.name)
    kept = list(folder.iterdir())
    assert 0 < sum(file.stat().st_size for file in kept) <= 3_000
    assert folder.stat().st_mode & 0o077 == 0
    assert previews.picture(crawl, page(offset=19)) is not None
    assert crawl.read == 20, "the last one is read from the disk"
    kept[0].unlink()
    assert all(previews.picture(crawl, page(offset=offset)) is not None for offset in range(20))
    previews.close()
    assert not folder.exists()


def test_a_folder_that_was_tidied_away_is_made_again(previews: Previews, tmp_path: Path) -> None:
    """As systemd-tmpfiles does after ten days."""
    crawl = OneBody(tmp_path, one_page())
    assert previews.picture(crawl, page()) is not None
    assert previews._folder is not None
    shutil.rmtree(previews._folder.name)
    assert previews.picture(crawl, page()) is None  # it was known
    assert all(previews.picture(crawl, page()) is not None for _ in range(3))
    assert crawl.read == 2, "it is kept again"


def test_pictures_are_drawn_without_a_folder(
    previews: Previews, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "none"))
    assert previews.picture(OneBody(tmp_path, one_page()), page()) is not None


def test_a_body_that_cannot_be_read_has_no_picture(previews: Previews, tmp_path: Path) -> None:
    class Gone(OneBody):
        def body_file(self, page: StoredPage) -> Path:
            return tmp_path / "gone"

    assert previews.picture(Gone(tmp_path, b""), page()) is None


def test_a_document_that_is_too_large_is_not_read(previews: Previews, tmp_path: Path) -> None:
    crawl = OneBody(tmp_path, one_page())
    assert previews.picture(crawl, page(size=MOST_BYTES + 1)) is None
    assert previews.picture(crawl, page(size=0)) is None
    assert crawl.read == 0


def of_pdf(site: Served) -> str:
    """The URL of a PDF of the demo crawl."""
    hits = site.get("/search?q=siren&type=pdf&format=json").json["hits"]
    return str(hits[0]["normalized"] if "normalized" in hits[0] else hits[0]["url"])


def test_a_hit_has_the_picture_of_its_document(
    served: Callable[..., Served], demo_crawl: Path
) -> None:
    site = served(demo_crawl)
    text = site.get("/search?q=siren&type=pdf").text
    assert '<img class="first" src="/search/preview?u=' in text
    assert 'loading="lazy"' in text
    assert '<img class="first"' not in site.get("/search?q=siren&type=html").text
    got = site.get(f"/search/preview?u={quote(of_pdf(site), safe='')}")
    assert (got.status, got.headers["Content-Type"]) == (200, "image/jpeg")
    with Image.open(io.BytesIO(got.body)) as image:
        assert image.width <= WIDTH
    assert got.headers["Cache-Control"] == "private, max-age=300"
    html = quote(CrawlDir(demo_crawl).seeds[0], safe="")
    for target in (f"u={html}", "u=http://nowhere/", "", "u=http://[", "u=x&collection=y"):
        assert site.get(f"/search/preview?{target}").status == 404, target


def test_readers_see_the_pictures_of_what_they_may_see(
    served: Callable[..., Served], demo_crawl: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As with the cached copy: who may not see a document learns not even that it is there."""
    open_site = served(demo_crawl)
    url = of_pdf(open_site)
    host = url.split("/")[2].split(":")[0]
    site = served(
        demo_crawl,
        guard=Guard(TOKEN, closed=True, open_paths=("/search",)),
        readers=Readers({"staff": (host,)}),
    )
    monkeypatch.setattr("larmspider.status.crawl_view.Source.restricted", (host,))
    target = f"u={quote(url, safe='')}"
    for path in ("copy", "preview"):
        got = site.get(f"/search/{path}?{target}")
        assert got.status == 404, path
        assert "not in the index" in got.text
        allowed = site.get(f"/search/{path}?{target}", Authorization=f"Bearer {TOKEN}")
        assert allowed.status == 200, path


@pytest.mark.acceptance
def test_nothing_is_shown_where_there_is_no_picture(
    served: Callable[..., Served],
    demo_crawl: Path,
    browser: Browser,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """No frame, no sign of a broken picture; with scripts and without."""
    shown = "return [...document.querySelectorAll('img.first')].map(e => e.naturalWidth)"
    site = served(demo_crawl)
    browser.look()
    browser.open(f"{site.url}/search?q=siren&type=pdf")
    browser.until(lambda: any(browser.script(shown)), "a picture")
    monkeypatch.setattr(Previews, "picture", lambda *_: None)
    browser.open(f"{site.url}/search?q=siren&type=pdf&lang=en")
    browser.until(
        lambda: not browser.script("return document.querySelectorAll('img.first').length"),
        "pictures that are taken away",
    )
