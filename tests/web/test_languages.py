"""Every page in the three languages: what the program says is translated, what pages and logs say
stays; numbers and times have the language's form."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from selectolax.lexbor import LexborHTMLParser

from tests.support.web.languages import untranslated
from tests.support.web.serving import EVERY, TOKEN, Served, shown


@pytest.mark.parametrize("language", ["de", "fr"])
def test_what_the_program_says_is_translated(
    served: Callable[..., Served], demo_crawl: Path, language: str
) -> None:
    site = served(demo_crawl)
    token = {"Authorization": f"Bearer {TOKEN}"}
    left = {}
    for name, target in EVERY.items():
        signed = {} if name == "login" else token
        target = shown(target, demo_crawl)
        if name in ("error", "no-host"):  # programs get errors as JSON
            signed = {}
        english = site.get(target, Accept_Language="en", Accept="text/html", **signed)
        other = site.get(target, Accept_Language=language, Accept="text/html", **signed)
        assert other.status == english.status
        assert f'<html lang="{language}">' in other.text, target
        if found := untranslated(english.text, other.text):
            left[name] = found
    assert left == {}


def test_numbers_and_times_have_the_form_of_the_language(
    served: Callable[..., Served], demo_crawl: Path
) -> None:
    site = served(demo_crawl)
    pages = {
        language: site.get("/", Accept_Language=language).text for language in ("en", "de", "fr")
    }
    for language, form in {
        "en": r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d",
        "de": r"\d\d\.\d\d\.\d{4} \d\d:\d\d:\d\d",
        "fr": r"\d\d/\d\d/\d{4} \d\d:\d\d:\d\d",
    }.items():
        condition = LexborHTMLParser(pages[language]).css_first("#condition").text()
        assert re.search(form, condition), condition
    big = {name: LexborHTMLParser(page).css_first(".cards").text() for name, page in pages.items()}
    assert re.search(r"\d,\d [kMG]B", big["de"])
    assert re.search(r"\d,\d [kMG]o", big["fr"])
