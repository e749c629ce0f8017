"""How many documents are read, and for how much CPU: all files of a folder, as a crawl reads them.

    python -m benchmarks.documents FOLDER            # such as packages unpacked by dpkg -x
    python -m benchmarks.documents                   # a docx of 50 KB in a warm reader

Every file with a name of a format goes through the documents' process and into an index. A valid
PDF is one in which pdftotext (poppler-utils) finds text; of the others all count that have 100
bytes.
"""

from __future__ import annotations

import argparse
import gzip
import resource
import shutil
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random

from larmspider.extraction.formats import media_type
from larmspider.extraction.processes.process import Readers
from larmspider.index.writer import IndexWriter
from larmspider.urls.media_types import is_read_apart
from tests.support.documents import corpus

_READ = (".pdf", ".odt", ".docx", ".epub", ".info")
_TEXT_BYTES = 100


def files(folder: Path) -> Iterator[tuple[Path, bytes]]:
    """Documents, info files and manual pages; those that the package has compressed unpacked."""
    for path in sorted(folder.rglob("*")):
        name = path.name.removesuffix(".gz")
        is_man = "/man/" in str(path) and name[-2:-1] == "."
        if (
            path.is_symlink()
            or not path.is_file()
            or not (name.endswith(_READ) or is_man or ".info-" in name)
        ):
            continue
        yield path, path.read_bytes()


def has_text(name: str, body: bytes) -> bool:
    """Whether a document is valid and has a text layer, as pdftotext says."""
    if body.startswith(b"\x1f\x8b"):
        body = gzip.decompress(body)
    if not name.removesuffix(".gz").endswith(".pdf"):
        return len(body) > _TEXT_BYTES
    done = subprocess.run(["pdftotext", "-", "-"], input=body, capture_output=True, check=False)
    return bool(done.stdout.strip(b"\f\n "))


def cpu() -> float:
    """Seconds of this process and of those that have ended."""
    both = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(used.ru_utime + used.ru_stime for used in both)


def read_all(folder: Path, *, check: bool) -> None:
    outcomes: Counter[str] = Counter()
    lost: list[str] = []
    pages = size = valid = 0
    checking = 0.0
    began = cpu()
    with (
        tempfile.TemporaryDirectory() as directory,
        Readers() as readers,
        IndexWriter(Path(directory) / "index") as index,
    ):
        for number, (path, body) in enumerate(files(folder)):
            mime = media_type("", body, path.name)
            page = readers.read_again(mime, body, f"http://h/{number}/{path.name}")
            page.mime, page.fetched = mime, time.time()
            index.add(page)
            texts = [part.text for part in page.parts] or [page.text]
            outcomes[page.unread.partition(":")[0] or "read"] += 1
            pages += sum(text.count("\f") + 1 for text in texts if "\f" in text)
            size += len(body)
            spent = cpu()
            if check and has_text(path.name, body):
                valid += 1
                lost += [f"{path.name} ({page.unread})"] * (not any(texts))
            checking += cpu() - spent
    used = cpu() - began - checking
    print(f"{outcomes.total()} documents, {size / 1e6:.0f} MB: {dict(outcomes)}")
    print(f"{pages:,} PDF pages in {used:.1f} CPU s of all processes: {pages / used:.0f} a CPU s")
    if valid:
        read = valid - len(lost)
        print(f"text from {read} of {valid} that have some: {read / valid:.1%}; not from {lost}")


def warm_docx() -> None:
    words = iter(Random(1).choices([f"{n:x}word" for n in range(4_000)], k=30_000))
    text = "".join(
        f"<w:p><w:r><w:t>{' '.join(line)}</w:t></w:r></w:p>"
        for line in zip(*[words] * 20, strict=False)
    )
    namespace = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
    xml = f'<w:document xmlns:w="{namespace}"><w:body>{text}</w:body></w:document>'
    body = corpus.docx(extra={"word/document.xml": xml.encode()})
    mime = corpus.SAMPLES["docx"].mime
    assert is_read_apart(mime)

    def read(times: int) -> float:
        began = cpu()
        with Readers() as readers:
            for _ in range(times):
                assert readers.read_again(mime, body, "http://h/a.docx").text
        return cpu() - began

    few, many = read(1), read(101)
    print(f"docx of {len(body):,} bytes: {(many - few) * 10:.1f} ms CPU in both processes")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?")
    folder = parser.parse_args().folder
    if folder is None:
        warm_docx()
    else:
        read_all(folder, check=shutil.which("pdftotext") is not None)


if __name__ == "__main__":
    main()
