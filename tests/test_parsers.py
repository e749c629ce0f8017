"""Each module that calls a parser has a row here: its process, and what bounds the input.

Parsers of documents or containers run in reader processes only. The crawl's own process parses
HTML within markup_guard.py, plain text, robots.txt, sitemaps and feeds. A new caller of a parser
fails until its row says in which process it runs and what bounds it. docs/hostile-web.md says the
same in words.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

PACKAGE = Path(__file__).parents[1] / "larmspider"

LIBRARIES = frozenset(
    {"selectolax", "lxml", "parsel", "cssselect", "html.parser", "html5lib", "bs4", "xml.etree"}
    | {"xml.parsers", "xml.dom", "xml.sax", "plistlib", "olefile", "zipfile", "tarfile", "gzip"}
    | {"bz2", "lzma", "zipimport", "pypdfium2", "python_calamine", "mailbox", "email"}
    | {"iscc_tika", "warcio", "protego", "brotli", "PIL", "chardetng_py", "charset_normalizer"}
    | {"pickle", "marshal", "shelve", "yaml", "docx", "openpyxl", "pikepdf", "py7zr", "tinytag"}
)
"""To import one is to call it."""
HARMLESS = frozenset(
    {"email.utils", "zipimport.zipimporter", "larmspider.extraction.formats.media_type"}
    | {"xml.sax.saxutils"}
)
"""Dates of a header; the egg that this package lies in; quotes of an attribute."""
OTHERS = frozenset(
    {"argon2", "isal", "joserfc", "ldap3", "tomlkit", "yarl"}
    | {"aiohttp", "backports", "botocore", "can_ada", "compression", "confluent_kafka", "cronsim"}
    | {"itemadapter", "javaproperties", "jinja2", "lmdb", "markupsafe", "msgpack", "msgspec"}
    | {"cryptography", "imapclient", "mcp", "nats", "numpy", "pydantic", "smbprotocol", "uvicorn"}
    | {"obstore", "playwright", "prometheus_client", "psycopg", "py3langid", "pyarrow", "pycurl"}
    | {"pydispatch", "re2", "redis", "rich", "scrapy", "scrapy_redis", "tantivy", "twisted"}
    | {"w3lib", "webencodings"}
)
"""Other libraries: they open no document or container, or CALLS names what does."""
CALLS = frozenset(
    {"json.load", "json.loads", "msgpack.unpackb", "msgpack.Unpacker", "tomllib.load"}
    | {"tomllib.loads", "csv.reader", "csv.DictReader", "zlib.decompress", "zlib.decompressobj"}
    | {"compression.zstd.decompress", "compression.zstd.ZstdDecompressor", "shutil.unpack_archive"}
    | {"isal.isal_zlib.decompress", "isal.isal_zlib.decompressobj"}
    | {"msgspec.msgpack.decode", "msgspec.msgpack.Decoder"}
)
METHODS = frozenset({"css", "css_first", "xpath", "jmespath"})
"""Methods of Scrapy's responses and of parsed pages."""
_FORMATS = "larmspider.extraction.formats."
OURS = frozenset(
    {_FORMATS + name for name in ("extractor_for", "column_extractor_for", "members_of")}
    | {"larmspider.extraction.pages.sitemap.read", "larmspider.extraction.pages.sitemap.read_aside"}
    | {"larmspider.extraction.pages.requisites.requisites_of_page"}
    | {"larmspider.extraction.pages.requisites.requisites_of_style"}
    | {"larmspider.extraction.documents", "larmspider.extraction.pages.html"}
    | {"larmspider.extraction.pages.xhtml"}
    | {"larmspider.extraction.pages.deep_html", "larmspider.extraction.plain_text"}
    | {"larmspider.reports.stored_copy.html_blocks"}
)
"""Functions and modules of this package that lead to a parser."""
_ALL = LIBRARIES | OURS | CALLS
_LAST = {name.rpartition(".")[2] for name in CALLS}
_IMPORTING = ("import_module", "__import__")


class Row(NamedTuple):
    """``process``: where the module's parsers run; ``bound``: what keeps bad input from harm."""

    process: str
    bound: str
    parsers: frozenset[str]


def row(process: str, bound: str, *parsers: str) -> Row:
    return Row(process, bound, frozenset(parsers))


DOCUMENTS = "reader of documents"
PAGES = "reader of pages"
CRAWL = "crawl"
"""And a command, or the web server, that asks for the same."""
SENDER = "sender of a receiver"
OWN = "any"
_LIMITS = "LARM_DOCUMENT_SECS, LARM_DOCUMENT_BYTES; a death costs one document"
_GUARD = "is_large() goes to the reader of pages; is_costly() to a parser without a tree"
_APART = "asks Readers.is_apart() first: a document or a large page goes to its reader"
_WRITTEN = "files that this program has written"
_TYPED = "written by the operator"

WHERE: Mapping[str, Row] = {
    # documents and containers
    "extraction/documents/archives.py": row(
        DOCUMENTS, _LIMITS, "bz2", "gzip", "lzma", "tarfile", "zipfile", "extraction.documents"
    ),
    "extraction/documents/broken_zip.py": row(DOCUMENTS, _LIMITS, "zipfile"),
    "extraction/documents/containers.py": row(
        DOCUMENTS, _LIMITS, "olefile", "zipfile", "extraction.documents"
    ),
    "extraction/documents/content_lines.py": row(DOCUMENTS, _LIMITS, "extraction.documents"),
    "extraction/documents/delimited.py": row(DOCUMENTS, _LIMITS, "extraction.documents"),
    "extraction/documents/office/embedded.py": row(DOCUMENTS, _LIMITS, "extraction.documents"),
    "extraction/documents/office/date_formats.py": row(DOCUMENTS, _LIMITS, "extraction.documents"),
    "extraction/documents/epub.py": row(
        DOCUMENTS, _LIMITS, "extraction.documents", "extraction.pages.xhtml"
    ),
    "extraction/documents/mails/mail.py": row(
        DOCUMENTS, _LIMITS, "email", "extraction.documents", "extraction.pages.html"
    ),
    "extraction/documents/mails/mail_headers.py": row(DOCUMENTS, _LIMITS, "extraction.documents"),
    "extraction/documents/mails/mapi.py": row(DOCUMENTS, _LIMITS, "extraction.documents"),
    "extraction/documents/markdown.py": row(DOCUMENTS, _LIMITS, "extraction.documents"),
    "extraction/documents/mails/msg.py": row(DOCUMENTS, _LIMITS, "olefile", "extraction.documents"),
    "extraction/documents/office/number_formats.py": row(
        DOCUMENTS, _LIMITS, "extraction.documents"
    ),
    "plugins/ocr/tesseract.py": row(DOCUMENTS, _LIMITS, "pypdfium2"),
    "extraction/documents/office/office.py": row(
        DOCUMENTS, _LIMITS, "extraction.documents", "extractor_for"
    ),
    "extraction/documents/office/office_text.py": row(
        DOCUMENTS, _LIMITS, "lxml", "extraction.documents"
    ),
    "extraction/documents/ole.py": row(DOCUMENTS, _LIMITS, "olefile", "extraction.documents"),
    "extraction/documents/ole_damage.py": row(
        DOCUMENTS, _LIMITS, "olefile", "extraction.documents"
    ),
    "extraction/documents/office/old_tables.py": row(DOCUMENTS, _LIMITS, "olefile"),
    "extraction/documents/office/opendocument.py": row(
        DOCUMENTS, _LIMITS, "lxml", "extraction.documents"
    ),
    "extraction/documents/parts.py": row(
        DOCUMENTS,
        _LIMITS,
        *("lzma", "tarfile", "zipfile", "extraction.documents", "extractor_for", "members_of"),
    ),
    "extraction/documents/pdfs/pdf.py": row(
        DOCUMENTS, _LIMITS, "pypdfium2", "extraction.documents"
    ),
    "extraction/documents/pdfs/pdf_objects.py": row(
        DOCUMENTS, _LIMITS, "pikepdf", "zlib.decompressobj", "extraction.documents"
    ),
    "extraction/documents/pdfs/pdf_text.py": row(DOCUMENTS, _LIMITS, "pypdfium2"),
    "extraction/documents/pictures.py": row(
        DOCUMENTS, f"{_LIMITS}; web/previews.py", "PIL", "pypdfium2", "extraction.documents"
    ),
    "extraction/documents/reading.py": row(DOCUMENTS, _LIMITS, "lxml"),
    "extraction/documents/office/relationships.py": row(DOCUMENTS, _LIMITS, "extraction.documents"),
    "extraction/documents/rtf.py": row(DOCUMENTS, _LIMITS, "extraction.documents"),
    "extraction/documents/sevenzip.py": row(DOCUMENTS, _LIMITS, "py7zr", "extraction.documents"),
    "extraction/documents/mails/signed.py": row(DOCUMENTS, _LIMITS, "extraction.documents"),
    "extraction/documents/office/spreadsheet.py": row(
        DOCUMENTS, _LIMITS, "python_calamine", "extraction.documents"
    ),
    "extraction/documents/tags.py": row(
        DOCUMENTS, _LIMITS, "PIL", "tinytag", "extraction.documents"
    ),
    "extraction/documents/text.py": row(
        DOCUMENTS, _LIMITS, "json.loads", "extraction.documents", "extraction.pages.html"
    ),
    "extraction/documents/text_page.py": row(DOCUMENTS, _LIMITS, "extraction.documents"),
    "extraction/documents/mails/tnef.py": row(DOCUMENTS, _LIMITS, "extraction.documents"),
    "extraction/documents/zip_names.py": row(DOCUMENTS, _LIMITS, "zipfile"),
    "extraction/documents/tika.py": row(
        DOCUMENTS, _LIMITS, "iscc_tika", "extraction.documents", "extraction.pages.html"
    ),
    "extraction/documents/unknown.py": row(DOCUMENTS, _LIMITS, "extraction.documents"),
    "extraction/documents/office/visio.py": row(DOCUMENTS, _LIMITS, "extraction.documents"),
    "extraction/documents/office/workbook.py": row(
        DOCUMENTS, _LIMITS, "zipfile", "extraction.documents"
    ),
    "extraction/documents/xml.py": row(
        DOCUMENTS,
        _LIMITS,
        *("lxml", "extraction.documents", "extraction.plain_text", "extraction.pages.xhtml"),
    ),
    "extraction/processes/process_child.py": row(
        f"{DOCUMENTS}, {PAGES}",
        "what a reader runs, behind its limits",
        *("column_extractor_for", "extractor_for", "extraction.documents", "parsel"),
    ),
    "extraction/processes/process.py": row(
        CRAWL,
        f"{_APART}; the plugin ocr asks a Page, already read, for scans",
        "extractor_for",
    ),
    "extraction/processes/notes.py": row(
        CRAWL,
        "makes a Page of the texts that a reader has noted; parses none",
        "extraction.documents",
    ),
    "extraction/pages/own_fields.py": row(
        PAGES, "LARM_EXTRACTION_SECS; LARM_FIELDS is tried on `<p></p>`", "parsel", "xpath"
    ),
    # HTML
    "extraction/pages/html.py": row(
        f"{CRAWL}, {PAGES}", _GUARD, "selectolax", "css", "css_first", "extraction.pages.deep_html"
    ),
    "access/sent.py": row(CRAWL, "the first 64 KB of a page of a trusted host", "html.parser"),
    "extraction/pages/xhtml.py": row(
        f"{CRAWL}, {PAGES}",
        "a scan that is linear in time; then as html.py",
        "extraction.pages.html",
    ),
    "extraction/pages/deep_html.py": row(f"{CRAWL}, {PAGES}", "no tree: linear in time", "lxml"),
    "extraction/pages/page_builder.py": row(
        f"{CRAWL}, {PAGES}", "XPath of one text, no markup", "lxml"
    ),
    "extraction/pages/requisites.py": row(
        CRAWL, "none of a page that is_large() or is_costly(); 2 MB of a style", "selectolax", "css"
    ),
    "fetch/sites/session.py": row(
        CRAWL, "512 KB, 10,000 tags, has_many_attributes()", "lxml", "xpath"
    ),
    "reports/stored_copy.py": row("web server", "2 MB, is_costly()", "lxml"),
    "plugins/export/passages.py": row(CRAWL, "2 MB, is_costly()", "html_blocks"),
    "server/api/search.py": row("web server", "2 MB, is_costly()", "html_blocks"),
    "web/views/search.py": row("web server", "2 MB, is_costly()", "html_blocks"),
    # by media type
    "extraction/body_type.py": row(CRAWL, "64 KB at each end and 1,000 names; opens nothing"),
    "extraction/formats.py": row(CRAWL, "imports the module that reads a type; opens nothing"),
    "extraction/processes/page_process.py": row(
        CRAWL, "bodies that are not apart, where the process beside ended", "extractor_for"
    ),
    "spiders/intranet.py": row(
        CRAWL, _APART, "extractor_for", "requisites_of_page", "requisites_of_style"
    ),
    "learned/shortfall.py": row(CRAWL, "whether a type is read; opens nothing", "extractor_for"),
    "scheduler/probe_fetch.py": row(CRAWL, _APART, "extractor_for"),
    "scheduler/source_fetch.py": row(CRAWL, _APART, "read_aside"),
    # robots.txt, sitemaps, feeds, charsets
    "extraction/pages/sitemap.py": row(
        CRAWL,
        "a thread beyond 64 KB; 50 MB unpacked, 50,000 URLs, 64 levels, no entity, tags of 256 KB",
        *("xml.parsers", "zlib.decompressobj"),
    ),
    "middlewares/sources.py": row(CRAWL, "as sitemap.py", "read_aside"),
    "frontier/robots.py": row(CRAWL, "500 KiB, 5,000 wildcards", "protego"),
    "extraction/texts/charset.py": row(
        f"{CRAWL}, {PAGES}, {DOCUMENTS}", "20 KB", "chardetng_py", "charset_normalizer"
    ),
    # HTTP
    "fetch/decoding.py": row(
        CRAWL,
        "unpacked as it comes, to DOWNLOAD_MAXSIZE; five encodings, 1,000 members",
        *("brotli", "zlib.decompressobj", "compression.zstd.ZstdDecompressor"),
    ),
    # archives that the operator names
    "plugins/warc/archives.py": row(
        f"{CRAWL} of scrapy import",
        "record by record, each body to its limit",
        *("warcio", "zipfile", "zlib.decompressobj"),
    ),
    # JSON of others
    "cluster/start_urls.py": row(CRAWL, "a line of the operator's Redis", "json.loads"),
    "pipelines/outbox/replies.py": row(
        SENDER, "a reply of the operator's server: 4 MB, 60 s, 50 levels", "json.loads"
    ),
    "plugins/search_api/api.py": row("web server", "a request's body, 1 MB", "json.loads"),
    "control/controller.py": row("web server", "the answer of a crawl of this user", "json.loads"),
    # what is ours
    "urls/backtracking.py": row(OWN, "the answer of a process of ours", "json.loads"),
    "urls/backtracking_child.py": row(OWN, "what the crawl asks it", "json.load"),
    "urls/equivalence.py": row(OWN, _TYPED, "json.loads"),
    "options.py": row(OWN, _TYPED, "json.loads"),
    "fetch/sites/lookup.py": row(OWN, _TYPED, "tomllib.loads"),
    "web/words.py": row(OWN, _TYPED, "tomllib.loads"),
    "server/config/crawl_edit.py": row(OWN, _TYPED, "tomllib.loads"),
    "server/config/crawl_file.py": row(OWN, _TYPED, "tomllib.loads"),
    "server/config/server_settings.py": row(OWN, _TYPED, "tomllib.loads"),
    "server/people/principals.py": row(
        OWN, "the operator's own file, 10,000,000 bytes", "tomllib.loads"
    ),
    "plugins/opensearch/connection.py": row(OWN, "a file of this package", "json.loads"),
    "server/runs/nodes.py": row(
        "server", "an answer of the operator's scrapyd, 10 MB", "json.loads"
    ),
    "crawl/backup.py": row(OWN, "a backup that the operator names", "json.loads", "tarfile"),
    "access/pushed.py": row(OWN, "a header that this process made", "json.loads"),
    "server/app.py": row(OWN, "an answer of this process", "json.loads"),
    "plugins/oidc/provider.py": row(
        "web server", "an answer of the operator's provider: 2 MB, 10 s", "json.loads"
    ),
    "server/api/client.py": row(OWN, "10 MB, from the operator's own server", "json.loads"),
    "extraction/processes/helper_child.py": row(
        OWN, "messages of our processes", "msgpack.unpackb"
    ),
    "pipelines/outbox/outbox.py": row(OWN, "lines of our processes", "json.loads"),
    "pipelines/outbox/sender.py": row(OWN, "lines of our processes", "json.loads"),
    "requests.py": row(OWN, "meta of our Requests", "msgpack.unpackb"),
}
STATE: Mapping[str, frozenset[str]] = {
    parser: frozenset(f"{name}.py" for name in names.split())
    for parser, names in {
        "json.loads": "extensions/notify pipelines/compaction pipelines/outbox/spool"
        " plugins/warc/pipeline plugins/warc/verify search/why search/shard frontier/overrides"
        " crawl/log_index/index control/deletes status/totals status/crawl_workers"
        " index/writer index/version cluster/worker cluster/joining checksums"
        " crawl/verify/frontier crawl/verify/index crawl/verify/others crawl/fill"
        " workdir/left workdir/manifest workdir/manifest_copy",
        "msgpack.unpackb": "access/connected access/lists access/table"
        " cluster/commit cluster/rebuild"
        " cluster/redis_records"
        " cluster/write_ahead_log index/packed index/unreached index/waiting"
        " pipelines/outbox/spool pipelines/pushed pipelines/search_index"
        " crawl/verify/index",
        "msgpack.Unpacker": "index/packed",
        "msgspec.msgpack.decode": "frontier/storage/records frontier/storage/lmdb_reader"
        " frontier/part extraction/texts/novelty"
        " learned/deletes/table learned/revisits/budget learned/revisits/host"
        " learned/revisits/revisiting"
        " learned/traps/host_traps",
        "msgspec.msgpack.Decoder": "frontier/hosts frontier/storage/records",
        "zlib.decompress": "cluster/redis_records",
        "zlib.decompressobj": "pipelines/page_files plugins/warc/verify",
        "compression.zstd.ZstdDecompressor": "index/packed workdir/frames",
        "compression.zstd.decompress": "workdir/frames",
    }.items()
}
"""Modules that read what this program has written: files of LARM_DIR, and its records in Redis."""


def parsers(tree: ast.AST) -> Iterator[str]:
    """Each parser that a module calls, by its shortest name in the tables above."""
    names: dict[str, str] = {}
    nodes = list(_nodes(tree))
    for node in nodes:
        if isinstance(node, ast.Import):
            for one in node.names:
                top = one.name.partition(".")[0]
                names[one.asname or top] = one.name if one.asname else top
                yield from _named(one.name)
        elif isinstance(node, ast.ImportFrom):
            for one in node.names:
                names[one.asname or one.name] = f"{node.module}.{one.name}"
                yield from _named(f"{node.module}.{one.name}")
    for node in nodes:
        if isinstance(node, ast.Attribute) and node.attr in _LAST | METHODS:
            if (found := _dotted(node, names)) in CALLS:
                yield found
            elif node.attr in METHODS:
                yield node.attr
        elif isinstance(node, ast.Name) and names.get(node.id) in CALLS:
            yield names[node.id]
        elif isinstance(node, ast.Call) and _dotted(node.func, names).endswith(_IMPORTING):
            for word in node.args:
                if isinstance(word, ast.Constant):
                    yield from _named(str(word.value))


def _nodes(tree: ast.AST) -> Iterator[ast.AST]:
    """All but what only annotations need."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING":
            continue
        yield node
        if isinstance(node, ast.Name | ast.Constant):
            continue
        waiting += ast.iter_child_nodes(node)


def _named(name: str) -> Iterator[str]:
    """The library or door that an imported name belongs to."""
    if any(name == one or name.startswith(f"{one}.") for one in HARMLESS):
        return
    for one in _ALL:
        if name == one or (one not in CALLS and name.startswith(f"{one}.")):
            short = one.removeprefix(_FORMATS)
            for home in (
                "larmspider.",
                "extraction.pages.sitemap.",
                "extraction.pages.requisites.",
            ):
                short = short.removeprefix(home)
            yield short.removeprefix("reports.stored_copy.")


def _dotted(node: ast.AST, names: Mapping[str, str]) -> str:
    if isinstance(node, ast.Name):
        return names.get(node.id, node.id)
    if isinstance(node, ast.Attribute):
        return f"{_dotted(node.value, names)}.{node.attr}"
    return ""


@cache
def found_in(module: str) -> frozenset[str]:
    return frozenset(parsers(ast.parse((PACKAGE / module).read_text("utf-8"))))


def unlisted(module: str, found: Iterable[str]) -> set[str]:
    """The parsers of which no row says that the module calls them."""
    listed = WHERE[module].parsers if module in WHERE else frozenset()
    return {one for one in found if one not in listed and module not in STATE.get(one, ())}


def test_every_caller_of_a_parser_is_listed() -> None:
    modules = (str(path.relative_to(PACKAGE)) for path in sorted(PACKAGE.rglob("*.py")))
    new = {module: found for module in modules if (found := unlisted(module, found_in(module)))}
    assert not new, (
        f"new callers of parsers: {new}. Say in WHERE of tests/test_parsers.py in which process"
        " each runs and what bounds it. Documents and containers belong into extraction/documents/."
    )


def test_every_library_is_known() -> None:
    """One that parses what others have written belongs into LIBRARIES, all others into OTHERS."""
    used = {name.partition(".")[0] for path in PACKAGE.rglob("*.py") for name in imported(path)}
    known = {one.partition(".")[0] for one in LIBRARIES} | OTHERS | sys.stdlib_module_names
    assert used - known == {"larmspider"}
    assert used >= OTHERS


def imported(path: Path) -> Iterator[str]:
    """The modules that a file imports, by its import statements."""
    for node in _nodes(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (one.name for one in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module


def test_every_row_is_of_a_caller() -> None:
    for module, listed in WHERE.items():
        gone = listed.parsers - found_in(module)
        assert not gone, f"{module} calls {gone} no more"
    for parser, modules in STATE.items():
        gone = {module for module in modules if parser not in found_in(module)}
        assert not gone, f"{gone} call {parser} no more"


def test_containers_and_documents_are_opened_by_readers_alone() -> None:
    apart = {"olefile", "tarfile", "gzip", "bz2", "lzma", "pypdfium2", "python_calamine", "email"}
    apart |= {"iscc_tika", "mailbox", "PIL", "parsel", "pikepdf", "py7zr", "tinytag"}
    for module, listed in WHERE.items():
        if listed.parsers & apart and module != "crawl/backup.py":
            assert "reader" in listed.process, module
        assert listed.process == DOCUMENTS or "documents/" not in module


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("import olefile", {"olefile"}),
        ("def f(b):\n    from zipfile import ZipFile as Z\n    return Z(b)", {"zipfile"}),
        ("import lxml.html as h", {"lxml"}),
        ("import xml.sax", {"xml.sax"}),
        ("from plistlib import loads", {"plistlib"}),
        ("import json as j\nx = j.loads(b)", {"json.loads"}),
        ("from json import loads\nx = loads(b)", {"json.loads"}),
        ("from json import loads as read\nx = list(map(read, b))", {"json.loads"}),
        ("import zlib\nx = zlib.decompressobj(31)", {"zlib.decompressobj"}),
        ("from zlib import crc32, decompress", {"zlib.decompress"}),
        ("from email import message_from_bytes", {"email"}),
        ("from builtins import __import__ as f\nf('tarfile')", {"tarfile"}),
        ("def parse(response):\n    return response.css('a')", {"css"}),
        ("from larmspider.extraction.formats import extractor_for", {"extractor_for"}),
        ("from larmspider.extraction.documents import pdf", {"extraction.documents"}),
        ("import larmspider.extraction.documents.pdfs.pdf", {"extraction.documents"}),
        ("from larmspider.extraction.pages import html", {"extraction.pages.html"}),
        ("from larmspider.extraction.pages.html import extract", {"extraction.pages.html"}),
        ("import json, zlib, email.utils\njson.dumps(zlib.crc32(b))", set()),
        ("from xml.sax.saxutils import quoteattr", set()),
        ("if TYPE_CHECKING:\n    from lxml import etree", set()),
    ],
)
def test_a_new_caller_fails(source: str, found: set[str]) -> None:
    assert unlisted("reports/new.py", parsers(ast.parse(source))) == found
