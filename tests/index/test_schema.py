"""larmspider.index.schema: what becomes of a URL and of link texts in a document."""

from __future__ import annotations

from pathlib import Path

import pytest

from larmspider.index.anchors import LinkTexts
from larmspider.index.packed import PackedPages
from larmspider.index.schema import indexed_page, prior, shown_label, to_document
from larmspider.index.stems import Stems
from larmspider.items import Page


@pytest.mark.parametrize(
    "path",
    [
        *("_modules/queue.html", "java/class-use/String.html", "a/src-html/b.html"),
        *("genindex.html", "a/genindex-all.htm", "a-index-all.html", "java/util/package-tree.html"),
        *("list_8h.html", "list_8h_source.html", "class_list-members.html"),
    ],
)
def test_pages_that_programs_make_of_others_count_less(path: str) -> None:
    assert prior(f"http://wiki.example/{path}", 3) < prior("http://wiki.example/queue.html", 3)


@pytest.mark.parametrize(
    "path",
    [
        *("_modules", "my_modules/queue.html", "x-class-use/a.html", "-_sources/a.html"),
        *("mygenindex.html", "a_genindex.html", "genindex.txt", "genindex.html.gz", "a/genindex/"),
        *("list-8h.html", "my-source.html", "list_members.html", "list_8h.htm"),
    ],
)
def test_names_that_only_look_like_theirs_do_not(path: str) -> None:
    assert prior(f"http://wiki.example/{path}", 3) == prior("http://wiki.example/queue.html", 3)


def test_a_very_long_name_of_such_pieces_takes_no_time() -> None:
    """15 s, where each piece was looked at as far as the end."""
    ordinary = prior("http://wiki.example/queue.html", 3)
    assert prior(f"http://wiki.example/{'-genindex' * 20_000}.html", 3) < ordinary
    assert prior(f"http://wiki.example/{'-genindex' * 20_000}", 3) == ordinary


def test_labels_are_the_short_texts_each_once(tmp_path: Path) -> None:
    page = Page("http://wiki.example/vpn", title="VPN", text="remote access", fetched=1e9)
    texts = ["Vpn", "...", "Remote  Access", "remote access", "x" * 61, "leftPad(String, int)"]
    document = to_document(
        indexed_page(page, ""), LinkTexts(texts, 6), Stems("english"), PackedPages(tmp_path)
    )
    labels = document.to_dict()["labels"]
    assert labels == ["vpn", "remote access", "leftpad", "\x01access\tremote access"]


def test_labels_are_there_without_accents_too(tmp_path: Path) -> None:
    """And say how they are written."""
    page = Page("http://wiki.example/", title="Über uns", text="text", fetched=1e9)
    texts = LinkTexts(["日本", "Café"], 2)
    document = to_document(indexed_page(page, ""), texts, Stems("english"), PackedPages(tmp_path))
    labels = document.to_dict()["labels"]
    assert labels == [
        "über uns", "日本", "café", "uber uns\tüber uns", "cafe\tcafé", "\x01uns\tüber uns",
    ]  # fmt: skip
    assert [shown_label(term) for term in labels[3:]] == [labels[0], labels[2], labels[0]]
    lone = LinkTexts(["\udce9t\u00e9"], 1)  # a surrogate, which UTF-8 cannot hold
    assert to_document(indexed_page(page, ""), lone, Stems("english"), PackedPages(tmp_path))
