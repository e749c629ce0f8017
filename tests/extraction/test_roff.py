"""Manual pages are read as man shows them."""

from __future__ import annotations

import time

import pytest

from larmspider.extraction.plain_text import extract

LINES = {
    "fonts": ("\\fBword\\fP(1) \\f[CW]code\\f[] \\f(CWmore\\fR", "word(1) code more"),
    "sizes": ("\\s-1SMALL\\s0 \\s[+2]big\\s[0]ger", "SMALL bigger"),
    "joined arguments": ('.BI \\-\\-file= name " or " x', "--file=name or x"),
    "quotes in arguments": ('.B "say ""hello"" now"', 'say "hello" now'),
    "tag": (".IP \\(bu 4\ntext", "•\ntext"),
    "characters": (
        "\\(co \\[u00E9]l\\[`e]ve \\[e aa] \\(*a \\(:u \\(lqx\\(rq",
        "© élève é α ü “x”",
    ),
    "unknown characters": ("a\\[nosuch]b", "a b"),
    "comments": ('.\\" no\ntext \\" no\n\\# no', "text"),
    "strings": ('.ds AB "one two\n\\*(AB \\*[AB]', "one two one two"),
    "definitions": (".de XX\nno\n..\n.XX shown", "shown"),
    "ignored": (".ig\nno\n..\nshown", "shown"),
    "conditions": (".if t no\n.if n yes\n.ie '\\*(AB'x' no\n.el other", "yes\nother"),
    "blocks": (".if t \\{\\\nno\n.if n \\{no\n\\}\n.\\}\n.nr A 1\n.if \\nA \\{yes\n.\\}", "yes"),
    "requests": (".sp 2\n.ft CW\n.ta 3i 4i\n.nf\nshown\n.fi", "shown"),
    "index": ('.IX Header "NAME"\n.IP "\\fBx\\fR" 4', "x"),
    "table": (
        ".TS\nallbox tab(:);\nlb l\nl l.\none:two\n_\nT{\nlong cell\nT}:four\n.TE",
        "one\ntwo\nlong cell\nfour",
    ),
    "going on": (".IR foo\\c\n.RB bar", "foobar"),
    "mdoc": (
        ".Nm tool\n.Nm\n.Op Fl a Ar file Ns Ar s\n.Xr ls 1 , x\n.Bl -tag -width x\n.It Fl v",
        "tool\ntool\n-a files\nls(1), x\n-v",
    ),
}


@pytest.mark.parametrize("name", LINES)
def test_a_manual_page_is_read_as_it_is_shown(name: str) -> None:
    source, text = LINES[name]
    page = extract(f".TH X 1 today\n{source}\n".encode(), "http://h/x.1", None)
    assert page.text == f"X(1) today {' '.join(text.split())}"


def test_names_and_purpose_of_a_manual_page_are_its_title() -> None:
    man = ".TH LS 1\n.SH NAME\nls \\- list\n.SH SYNOPSIS\nls"
    mdoc = ".Dd today\n.Dt LS 1\n.Sh NAME\n.Nm ls\n.Nd list files\n.Sh SYNOPSIS\n.Nm"
    assert extract(man.encode(), "http://h/ls.1", None).title == "ls - list"
    assert extract(mdoc.encode(), "http://h/ls.1", None).title == "ls list files"


@pytest.mark.parametrize(
    "text", ["C:\\fBfolder\n", "one\n.so it is\n\\fBx\\fP", ".Net\nis \\(bad", "'\\d+'.match"]
)
def test_other_texts_stay_as_they_are(text: str) -> None:
    assert extract(text.encode(), "http://h/x.1", None).text == " ".join(text.split())


def test_a_page_that_only_names_another_one_stays_as_it_is() -> None:
    assert extract(b".so man1/bash.1\n", "http://h/x.1", None).text == ".so man1/bash.1"


@pytest.mark.parametrize(
    "bomb",
    [
        ".if n " * 30_000 + "x",
        ".ds a " + "x" * 1_000 + "\n" + "\\*a" * 50_000,
        "\\[" * 50_000,
        "\\h'" * 50_000,
        '.B "' + '""' * 50_000,
        ".if n \\{" * 30_000,
        ".el " * 30_000,
        ".TS\n" + "a b\n" * 20_000,
        ".de x\n" * 30_000,
        "\\*[" * 50_000,
        "\\\\" * 50_000,
    ],
)
def test_no_page_takes_long(bomb: str) -> None:
    began = time.thread_time()
    page = extract(f".TH X 1\n{bomb}".encode(), "http://h/x.1", None)
    assert time.thread_time() - began < 1
    assert len(page.text) < 2_000_000
