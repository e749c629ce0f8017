"""Plain text, pages, Markdown, tables, JSON, notebooks and XML in odd but valid forms."""

from __future__ import annotations

import json
from collections.abc import Iterator
from html import escape

from benchmarks.valid_documents.made import Made
from benchmarks.valid_documents.sentences import CHARSETS, SENTENCES
from benchmarks.valid_documents.words import ASIAN, EASTERN, INDIC, LATIN, RIGHT_TO_LEFT, Words

SCRIPTS = (*LATIN, *EASTERN, *RIGHT_TO_LEFT, *ASIAN)


def files() -> Iterator[Made]:
    yield from _plain()
    yield from _pages()
    yield from _markdown()
    yield from _tables()
    yield from _json()
    yield from _notebooks()
    yield from _xml()


def _plain() -> Iterator[Made]:
    """In each charset, undeclared and declared, with each line end and under several names."""
    names = ("txt", "log", "", "conf", "sh", "yml", "nfo", "asc")
    number = 0
    for language, charsets in CHARSETS.items():
        for charset in charsets:
            for said in ("", f"text/plain; charset={charset}"):
                end = ("\n", "\r\n", "\r")[number % 3]
                text = SENTENCES[language].replace(". ", f".{end}").replace("。", f"。{end}")
                name = f"{number}.{names[number % len(names)]}".rstrip(".")
                yield Made("text", name, text.encode(charset), text, said)
                number += 1
    for charset in ("utf-16-le", "utf-16-be", "utf-8-sig"):
        text = SENTENCES["german"]
        mark = "" if charset == "utf-8-sig" else "\ufeff"
        yield Made("text", f"{charset}.txt", (mark + text).encode(charset), text)
    words = Words("overstruck")
    bold = "".join(f"{char}\b{char}" for char in words(count=30))
    yield Made("text", "page.cat", bold.encode(), " ".join(words.all))
    words = Words("coloured")
    text = " ".join(f"\x1b[1;31m{word}\x1b[0m" for word in words(count=30).split())
    yield Made("text", "colours.log", text.encode(), " ".join(words.all))
    words = Words("info")
    text = f"This is x.info, produced by makeinfo\n\n\x1f\nFile: x,  Node: Top\n\n{words()}\n"
    yield Made(
        "text",
        "x.info",
        f"{text}\x1f\nFile: x,  Node: B\n\n{words()}\n".encode(),
        " ".join(words.all),
    )


def _pages() -> Iterator[Made]:
    number = 0
    for language, charsets in CHARSETS.items():
        for charset in (charsets[0], charsets[-1]):
            text, words = SENTENCES[language], Words(f"html {number}")
            declared = (
                f"<meta charset={charset}>",
                f'<META HTTP-EQUIV="content-type" CONTENT="text/html; charset={charset}">',
                "",
            )[number % 3]
            said = "" if declared else f"text/html; charset={charset}"
            if charset.startswith("utf-16"):
                declared, said = "", ""
            page = (
                f"<!DOCTYPE html><html><head>{declared}<title>{words()}</title></head><body>"
                f"<p>{text}<table><tr><td>{words()}<td>{words()}</table><!-- x --><pre>\n{words()}"
                f"</pre><details><summary>{words()}</summary>{words()}</details><textarea>{words()}"
                f"</textarea><ul><li>{words()}<li>{words()}</ul><p>{words()}&nbsp;{words()}"
            )
            yield Made(
                "html",
                f"{number}.html",
                page.encode(charset),
                f"{text} {' '.join(words.all)}",
                said,
            )
            number += 1
    for number, charset in enumerate(("utf-8", "utf-16", "iso-8859-1", "utf-8") * 4):
        words = Words(f"xhtml {number}")
        declared = (
            f'<?xml version="1.0" encoding="{charset}"?>\n'
            if number % 2 or charset != "utf-8"
            else ""
        )
        page = (
            f'{declared}<html xmlns="http://www.w3.org/1999/xhtml"><head><title>{words("german")}'
            f"</title><script/><style/></head><body><a id='x'/><p>{words('german')}</p><p/>"
            f"<div><![CDATA[{words()} < {words()}]]></div><p>{words()} &#xe4;&#228; {words()}</p>"
            f"<!-- {Words('no')()} --><x:y xmlns:x='urn:x'>{words()}</x:y></body></html>"
        )
        text = " ".join(words.all)
        said = "application/xhtml+xml" if number % 4 < 2 else ""
        yield Made("xhtml", f"{number}.xhtml", page.encode(charset), text, said)


def _markdown() -> Iterator[Made]:
    for number, script in enumerate(SCRIPTS):
        words = Words(f"md {number}")
        say = lambda words=words, script=script: words(script)  # noqa: E731
        text = (
            f"---\ntitle: {say()}\n---\n\n{say()}\n=====\n\n* {say()}\n  1. {say()}\n\n> {say()}\n\n"
            f"| {say()} | {say()} |\n|---|:-:|\n| **{say()}** | `{say()}` |\n\n```python\n{say()}\n"
            f'```\n\n[{say()}](http://h.example/a "{say()}") ![{say()}](a.png)\n\n[^1]: {say()}\n'
            f"<div>{say()}</div>\n\n- [ ] {say()}\n"
        )
        codec = "utf-8" if number % 3 else "utf-8-sig"
        yield Made(
            "Markdown",
            f"{number}.{('md', 'markdown')[number % 2]}",
            text.encode(codec),
            " ".join(words.all),
        )


def _tables() -> Iterator[Made]:
    for number, script in enumerate(SCRIPTS):
        words = Words(f"csv {number}")
        by, end = (",", ";", "\t")[number % 3], ("\n", "\r\n")[number % 2]
        quoted = f'"{words(script)}{by}""{words(script)}""{end}{words(script)}"'
        rows = [[words(script) for _ in range(3)] for _ in range(5)] + [[quoted, "", "12"]]
        text = end.join(by.join(row) for row in rows) + end
        codec = ("utf-8", "utf-8-sig", "utf-16")[number % 3]
        extension = "tsv" if by == "\t" else "csv"
        yield Made("csv", f"{number}.{extension}", text.encode(codec), " ".join(words.all))


def _json() -> Iterator[Made]:
    for number, script in enumerate(SCRIPTS):
        words = Words(f"json {number}")
        tree: object = [words(script)]
        for _ in range(30):
            tree = {words(script, 1): tree, words(script, 1): [1, None, True, words(script)]}
        if number % 4 == 3:
            lines = [json.dumps({words(script, 1): words(script)}) for _ in range(20)]
            text = "\n".join(lines)
            shown = " ".join(
                " ".join(w for k in json.loads(one).items() for w in k) for one in lines
            )
            yield Made("json", f"{number}.jsonl", text.encode(), shown)
            continue
        text = json.dumps(tree, ensure_ascii=number % 2 == 0, indent=number % 3 or None)
        if number % 5 == 0:
            text = text.replace("/", "\\/")
        codec = ("utf-8", "utf-8", "utf-8", "utf-8-sig", "utf-16")[number % 5]
        yield Made("json", f"{number}.json", text.encode(codec), " ".join(words.all))


def _notebooks() -> Iterator[Made]:
    for number, script in enumerate(SCRIPTS):
        words = Words(f"ipynb {number}")
        say = lambda words=words, script=script: words(script)  # noqa: E731
        outputs = [
            {"output_type": "stream", "name": "stdout", "text": [f"{say()}\n", say()]},
            {"output_type": "execute_result", "data": {"text/plain": [say()]}, "metadata": {}},
            {"output_type": "display_data", "data": {"text/html": f"<b>{say()}</b>"}},
            {"output_type": "error", "ename": "E", "evalue": say(), "traceback": []},
        ]
        code = {"cell_type": "code", "source": [f"# {say()}\n", say()], "outputs": outputs}
        cells = [
            {"cell_type": "markdown", "source": f"# {say()}\n\n{say()}"},
            {"cell_type": "raw", "source": [say()]},
            code,
        ]
        book: dict[str, object] = {
            "nbformat": 4,
            "nbformat_minor": 5,
            "metadata": {},
            "cells": cells,
        }
        if number % 4 == 0:
            code["input"] = code.pop("source")
            outputs[1] = {"output_type": "pyout", "text": [say()]}
            outputs[2] = {"output_type": "stream", "text": say()}
            book = {"nbformat": 3, "worksheets": [{"cells": cells}]}
            text = json.dumps(book)
            shown = " ".join(_strings(book))
        else:
            text = json.dumps(book, ensure_ascii=number % 2 == 0, indent=1)
            shown = " ".join(words.all)
        yield Made("ipynb", f"{number}.ipynb", text.encode(), shown)


def _strings(tree: object) -> Iterator[str]:
    """The texts of the cells of a notebook."""
    if isinstance(tree, dict):
        for key, value in tree.items():
            if key in ("input", "source", "text", "evalue"):
                yield from ([value] if isinstance(value, str) else value)
            else:
                yield from _strings(value)
    elif isinstance(tree, list):
        for one in tree:
            yield from _strings(one)


def _xml() -> Iterator[Made]:
    feeds = {
        "rss": '<rss version="2.0"><channel><title>{}</title><item><title>{}</title><description>'
        "&lt;p&gt;{}&lt;/p&gt;</description></item></channel></rss>",
        "atom": '<feed xmlns="http://www.w3.org/2005/Atom"><title>{}</title><entry><summary>{}'
        '</summary><content type="xhtml"><div xmlns="http://www.w3.org/1999/xhtml">{}</div>'
        "</content></entry></feed>",
        "docbook": "<book><title>{}</title><chapter><para>{} <emphasis>{}</emphasis></para>"
        "</chapter></book>",
        "spaces": '<?xml-stylesheet href="x.xsl"?><a:x xmlns:a="urn:a"><a:y>{}</a:y><![CDATA[{}]]>'
        "<!-- x --> {}</a:x>",
        "doctype": '<!DOCTYPE x [<!ELEMENT x ANY><!ENTITY name "value">]><x>{} &#228;&#xe4; {} '
        "<y>{}</y></x>",
        "svg": '<svg xmlns="http://www.w3.org/2000/svg"><title>{}</title><text>{}</text><desc>{}'
        "</desc></svg>",
        "svg-lines": '<svg xmlns="http://www.w3.org/2000/svg"><defs><path id="p" d="M0 9h9"/></defs>'
        '<text><tspan x="0" dy="1em">{}</tspan><tspan x="0" dy="1em">{}</tspan></text><text>'
        '<textPath href="#p">{}</textPath></text></svg>',
        "svg-foreign": '<svg xmlns="http://www.w3.org/2000/svg"><g><title>{}</title><foreignObject>'
        '<p xmlns="http://www.w3.org/1999/xhtml">{}</p></foreignObject></g><a href="x"><text>{}'
        "</text></a></svg>",
    }
    charsets = {
        "german": "iso-8859-1",
        "russian": "windows-1251",
        "japanese": "shift_jis",
        "polish": "utf-8",
        "chinese": "utf-16",
    }
    for name, form in feeds.items():
        for script, charset in charsets.items():
            words = Words(f"xml {name} {script}")
            inside = form.format(*(escape(words(script, 5)) for _ in range(3)))
            text = f'<?xml version="1.0" encoding="{charset}"?>\n{inside}'
            made = "svg" if name.startswith("svg") else "xml"
            yield Made(made, f"{name}-{script}.{made}", text.encode(charset), " ".join(words.all))
    words = Words("xml deep")
    text = f"{'<a>' * 1000}{words()}{'</a>' * 1000}"
    yield Made(
        "xml",
        "deep.xml",
        f"<?xml version='1.0'?><r>{text}<b>{words()}</b></r>".encode(),
        " ".join(words.all),
    )
    words = Words("indic")
    yield Made(
        "xml",
        "indic.xml",
        f"<?xml version='1.0'?><r>{words.mixed(INDIC)}</r>".encode(),
        " ".join(words.all),
    )
