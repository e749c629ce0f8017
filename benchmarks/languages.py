"""In which language pages are found: ``python -m benchmarks.languages FOLDER``.

``languages.tsv`` has 203 files of three manuals of Debian 12 that say no language, or a wrong one:
199 pages drawn with a fixed seed (``random.Random(200)``: 100, 98 and the only one) and all four
PDFs, each with the language of its prose as a reader judged it. FOLDER has lilypond-doc-html-de,
lilypond-doc-html-fr and linuxcnc-doc-fr, each unpacked by ``dpkg -x`` into a folder of its name.
Printed is, for each language, how many files in it the crawl would take for that, and which not.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from contextlib import closing
from pathlib import Path

from scrapy.settings import Settings

from larmspider import options
from larmspider.extraction.formats import media_type
from larmspider.extraction.language import Languages
from larmspider.extraction.process import Readers

JUDGED = Path(__file__).with_name("languages.tsv")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
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
