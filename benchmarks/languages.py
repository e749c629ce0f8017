"""In which language pages are found: ``python -m benchmarks.languages FOLDER``.

``languages.tsv`` has 203 files of three manuals of Debian 12 that say no language, or a wrong one:
199 pages drawn with a fixed seed (``random.Random(200)``: 100, 98 and the only one) and all four
PDFs, each with the language of its prose as a reader judged it. FOLDER has lilypond-doc-html-de,
lilypond-doc-html-fr and linuxcnc-doc-fr, each unpacked by ``dpkg -x`` into a folder of its name.
Printed is, for each language, how many files in it the crawl would take for that, and which not.

``--words DIR ...``, such as /usr/share/doc /usr/share/man, compares the answers by function words
(extraction/texts/function_words.py)
with the guesses, over up to 200 pages of each folder of a DIR and
three pieces of up to 150 manual pages of each of its languages.
"""

from __future__ import annotations

import argparse
import gzip
import random
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from scrapy.settings import Settings

from larmspider import options
from larmspider.extraction.formats import media_type
from larmspider.extraction.pages.html import extract
from larmspider.extraction.processes.process import Readers
from larmspider.extraction.texts.function_words import language_of
from larmspider.extraction.texts.language import SHORTEST, Guesser, Languages, sample

JUDGED = Path(__file__).with_name("languages.tsv")


_LINE = re.compile(r"[.'](?:B|I|BR|IR|RB|RI|BI|SM|SH|SS|TP|IP)\s+(.*)")
_ESCAPE = re.compile(r"\\(?:f.|\(..|[&e-])")


def texts(folders: list[Path]) -> Iterator[tuple[str, Path, str]]:
    """What it is of, its file, and as much of a text as is guessed by."""
    drawn = random.Random(7)
    for folder in sorted(one for each in folders for one in each.iterdir() if one.is_dir()):
        pages = sorted(filter(_is_ordinary, folder.rglob("*.html")))
        for path in drawn.sample(pages, min(200, len(pages))):
            page = extract(path.read_bytes(), f"http://{folder.name}/{path.name}", None)
            text = page.main if len(page.main) >= SHORTEST else page.text
            if len(page.text) >= SHORTEST:
                yield "page", path, sample(text)
        manuals = sorted(folder.rglob("man[1-9]/*.gz"))
        for path in drawn.sample(manuals, min(150, len(manuals))):
            text = _prose(gzip.decompress(path.read_bytes()).decode("utf-8", "replace"))
            for size in (2000, 400, 100) if len(text) >= 300 else ():
                at = drawn.randrange(max(1, len(text) - size))
                yield f"{folder.name} manual", path, text[at : at + size]


def _is_ordinary(path: Path) -> bool:
    return path.is_file() and path.stat().st_size < 500_000


def _prose(source: str) -> str:
    """The text of a manual page, without most of its commands."""
    lines = []
    for line in source.split("\n"):
        if line.startswith((".", "'")):
            command = _LINE.match(line)
            lines.append(command[1].replace('"', "") if command else "")
        else:
            lines.append(line)
    return " ".join(_ESCAPE.sub("", " ".join(lines)).split())


def compare(folders: list[Path]) -> None:
    """Print of how many texts the words say the language, and which the guess takes for another."""
    languages = tuple(options.defaults()["LARM_LANGUAGES"].split(","))
    asked: Counter[str] = Counter()
    answered: Counter[str] = Counter()
    with closing(Guesser(languages)) as guesser:
        for kind, path, text in texts(folders):
            by_words = language_of(text)
            asked[kind] += 1
            answered[kind] += by_words is not None
            guessed, sure = guesser.guess_now(text) if by_words else ("", 0.0)
            if by_words and (by_words != guessed or sure < 0.5):
                print(f"{path}: {by_words} by its words, {guessed} guessed ({sure:.2f})")
    for kind, number in sorted(asked.items()):
        print(f"{kind}: {answered[kind]} of {number} by their words")
    print(f"in all: {answered.total()} of {asked.total()}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--words", type=Path, nargs="+", metavar="DIR")
    arguments = parser.parse_args()
    if arguments.words:
        compare(arguments.words)
    if arguments.folder:
        judge(arguments.folder)


def judge(folder: Path) -> None:
    """Print how many of the judged files have the language that they are in."""
    settings = Settings({"LARM_LANGUAGES": options.defaults()["LARM_LANGUAGES"]})
    right: dict[str, int] = defaultdict(int)
    wrong: dict[str, list[str]] = defaultdict(list)
    with Readers() as readers, closing(Languages.from_settings(settings)) as languages:
        for line in JUDGED.read_text("utf-8").splitlines()[1:]:
            package, name, prose = line.split("\t")
            body = (folder / package / "usr/share/doc" / name).read_bytes()
            page = readers.read_again(media_type("", body, name), body, f"http://{package}/{name}")
            found = languages.of_now(page)
            if found == prose:
                right[prose] += 1
            else:
                wrong[prose].append(f"{name}: {found}")
    for prose in sorted({*right, *wrong}):
        total = right[prose] + len(wrong[prose])
        print(f"{prose}: {right[prose]} of {total}, {right[prose] / total:.1%}")
        print("".join(f"    {each}\n" for each in wrong[prose]), end="")


if __name__ == "__main__":
    main()
