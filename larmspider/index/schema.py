"""The shape of the search index: its fields, and how each is cut into words.

One page becomes one document, keyed by the exact form of its URL. A search covers the title, the
description, the words of the URL, the texts of links to the page (as words, and each as a whole),
and the page's text. The text is indexed as words, for quoted phrases and fuzzy words, and as signs
(signs.py), so that ``--prefix`` and "C++" are found. Other forms of a word are looked up in the
dictionary when a query comes (ranking.py), except in languages other than English: ``body`` has
their stems. All views are normalized (normal.py). The original text is stored for display, in one
piece (packed.py).
Example::

    page = indexed_page(page, digest="9f86d081")
    writer.add_document(to_document(page, links, Stems("english"), PackedPages(directory)))
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from functools import lru_cache
from math import log2
from types import MappingProxyType
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

import can_ada
import tantivy
from tantivy import Filter, TextAnalyzerBuilder, Tokenizer

from larmspider.access.table import terms_of
from larmspider.dates import http_time
from larmspider.index.copies import blocks, of_bytes
from larmspider.index.joined import completed, joined_words
from larmspider.index.normal import normalized
from larmspider.index.outside_links import outside_links
from larmspider.index.page import IndexedPage
from larmspider.index.sections import LONG_TEXT, breaks_of, kept_sections
from larmspider.index.signs import signs
from larmspider.items import Page, Part, part_url, split_part
from larmspider.urls.media_types import reader_of
from larmspider.urls.schemes import scheme_of

if TYPE_CHECKING:
    from larmspider.index.anchors import LinkTexts
    from larmspider.index.packed import PackedPages
    from larmspider.index.stems import Stems

INDEX_FORMAT = 11
"""Raise it with every change of fields, analyzers, stored fields of a page, the anchor table, or
Tantivy's format (0.27 writes v7). version.py refuses an index of another format; `scrapy reindex`
rebuilds it (docs/internals/formats.md)."""

PRIOR = "prior"
"""The field that scores are multiplied by, in units of MACHINE_MADE_FACTOR."""
PRIOR_WEIGHT = 0.03
"""Share of a score that each doubling of the links to a page adds."""

# each begins with one of three characters: other places of a URL are passed over
_MACHINE_MADE = re.compile(
    r"[-/_](?:(?<=/)(?:_modules|_sources|src-html|class-use|index-files)/|(?<=[-/])(?:genindex|py-modindex"
    r"|bookindex|index-all|package-use|package-tree|overview-tree)[-\w]{0,99}\.html?$"
    r"|(?<=_)(?:source|8h)\.html$|(?<=-)members\.html$)"
)
MACHINE_MADE_FACTOR = 0.6
"""Factor for pages that programs generate from others, as manuals have them: indexes and source
code. The names that link there are defined elsewhere."""

TEXT_LIMIT = 4_194_304
"""Characters of a page's text that are stored and searched: some 1,500 pages of a PDF."""
REST_LIMIT = 100_000
"""Characters of the text around a page's main text (Page.rest)."""
LONGEST_SENTENCE = 200
"""Characters of a first sentence that stands for a description."""
PAGE_BREAK = "\f"
"""Stands between two pages of a text with pages."""

MAX_LABEL = 60
"""Characters of a link text that is found as a whole."""

MAX_ENDS = 6
"""Words of a label that is found by each of its words."""
LEAST_END = 3
"""Letters of such a word."""
MIDDLE = "\x01"
"""Begins a term for a label that is found from its middle: no label has this character."""

WORD_LIMIT_BYTES = 80
"""Longer words (base64, keys) are not indexed."""

FILES = "file://"
"""Stands for a host where pages of file URLs are meant. The field ``host`` of such a page is empty,
its ``domains`` are this."""
_FILES_TYPED = "file:"

HOST_LIMIT = 255
"""Characters of a host."""

MAX_FOLDERS = 32
"""Folders of a page that labels can name, from the host down (search/labels.py)."""

STEMMERS = frozenset(
    {"arabic", "danish", "dutch", "english", "finnish", "french", "german", "greek", "hungarian"}
    | {"italian", "norwegian", "portuguese", "romanian", "russian", "spanish", "swedish"}
    | {"tamil", "turkish"}
)
"""Languages that Tantivy can stem ``body``, ``title`` and ``description`` for; other pages come in
stems (stems.py)."""

# the name of the site follows the first part of a title: Queues — Python 3.11 documentation
_TITLE_PARTS = re.compile(r"\s(?:[|\u2013\u2014\u00b7\u00bb\u2022-]|::)\s")
_SENTENCE = re.compile(
    rf".{{20,{LONGEST_SENTENCE}}}?(?:[.!?\u2026](?=\s|$)|[\u3002\uff01\uff1f])", re.DOTALL
)
_LONGEST_REMEMBERED = 300
_LONGEST_DATE = 100
_FIRST_PAGE = datetime(1990, 12, 20, tzinfo=UTC).timestamp()
_CLOCKS_DIFFER_SECS = 86_400.0

SEARCHED = ("title", "description", "body", "rest")
"""Texts that are stored unchanged, beside the words for searching."""
_PAGE = "page"
_VALUE_MARK = "="
_SHOWN = "\t"  # no label has one
_FOLDING = TextAnalyzerBuilder(Tokenizer.raw()).filter(Filter.ascii_fold()).build()
_STEMMED = "larm_stemmed"
_EXACT = "larm_exact"

_SPACELESS = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf"
    "\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"
)
"""Scripts without spaces, by their blocks: there each character is a word, and a run of them a
phrase."""
_SPACELESS_BYTES = (0xE0, 0xE1, *range(0xE3, 0xEA), 0xEF, 0xF0)
"""First bytes of these scripts in UTF-8; quotes and dashes begin with 0xE2."""

_SEARCHED_AS_KEPT = ("key", "host", "container", "author", "mime", "language", "likeness")
"""Fields of a document that equal stored fields of the page."""

OTHER = "other"

_MEMBERS = {
    "html": ("text/html", "application/xhtml+xml"),
    "text": ("text/plain", "text/markdown", "text/x-rst"),
    "pdf": ("application/pdf", "application/x-pdf"),
    "document": (
        "application/msword",
        "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
        "application/vnd.oasis.opendocument.text",
        "application/vnd.ms-word.document.macroenabled.12",
        "application/rtf",
        "text/rtf",
        "application/epub+zip",
    ),
    "spreadsheet": (
        "application/vnd.ms-excel",
        "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
        "application/vnd.oasis.opendocument.spreadsheet",
        "application/vnd.ms-excel.sheet.macroenabled.12",
        "application/vnd.ms-excel.sheet.binary.macroenabled.12",
        "text/csv",
        "text/tab-separated-values",
    ),
    "presentation": (
        "application/vnd.ms-powerpoint",
        "application/vnd.openxmlformats-officedocument.presentationml.presentation",
        "application/vnd.oasis.opendocument.presentation",
        "application/vnd.ms-powerpoint.presentation.macroenabled.12",
        "application/vnd.openxmlformats-officedocument.presentationml.slideshow",
    ),
    "data": ("application/json", "application/xml", "text/xml", "application/yaml"),
    "mail": ("message/rfc822", "application/mbox", "application/vnd.ms-outlook"),
    "archive": (
        *("application/zip", "application/gzip", "application/x-tar", "application/x-bzip2"),
        *("application/x-xz", "application/x-zip-compressed", "application/x-gzip"),
        *("application/x-7z-compressed", "application/vnd.rar", "application/x-rar-compressed"),
    ),
}
_FAMILIES = ("image", "audio", "video")
_PLAIN_TEXT = reader_of("text/plain")

_KINDS = MappingProxyType({mime: kind for kind, mimes in _MEMBERS.items() for mime in mimes})

KINDS = (*_MEMBERS, *_FAMILIES, OTHER)
"""Groups of media types, for counts and filters: there are hundreds of media types."""


class ExactAnalyzer:
    """Cuts normalized text into words: ``Éclair.__init__()`` is ``eclair``, ``init``."""

    def __init__(self) -> None:
        self._words = _exact_words()

    def analyze(self, text: str) -> list[str]:
        return self._words.analyze(spaced(text))


def spaced(text: str) -> str:
    """``text`` with spaces around each character of a script that has no spaces between words."""
    if text.isascii():
        return text
    encoded = text.encode("utf-8", "replace")
    if not any(byte in encoded for byte in _SPACELESS_BYTES):
        return text
    return _SPACELESS.sub(r" \g<0> ", text)


def _exact_words() -> tantivy.TextAnalyzer:
    """A pattern in place of the simple tokenizer takes 0.7 ms for 10 KB of text, this 0.25 ms."""
    return (
        TextAnalyzerBuilder(Tokenizer.simple())
        .filter(Filter.remove_long(WORD_LIMIT_BYTES))
        .filter(Filter.lowercase())
        .filter(Filter.ascii_fold())
        .build()
    )


def stemmed_analyzer(stemmer: str) -> tantivy.TextAnalyzer:
    """Parts of names, then stems: ``MAX_LISTENERS`` is ``max``, ``listen``.

    Accents go after stemming, because the stemmers of some languages read them. A pattern would
    cost 1.2 ms a page here too (of 4 ms in Tantivy's thread, for 21 KB of text).
    """
    return (
        TextAnalyzerBuilder(Tokenizer.simple())
        .filter(Filter.remove_long(WORD_LIMIT_BYTES))
        .filter(Filter.lowercase())
        .filter(Filter.stemmer(stemmer))
        .filter(Filter.ascii_fold())
        .build()
    )


def register_analyzers(index: tantivy.Index, stemmer: str) -> None:
    """Register the analyzers of each opened index: Tantivy stores only their names."""
    index.register_tokenizer(_STEMMED, stemmed_analyzer(stemmer))
    index.register_tokenizer(_EXACT, _exact_words())


def build_schema() -> tantivy.Schema:
    """The fields. Whole numbers are i64: Tantivy's threads die of a Python int in a u64 field."""
    builder = tantivy.SchemaBuilder()
    # one token each
    builder.add_text_field("key", tokenizer_name="raw", index_option="basic")
    builder.add_text_field("host", fast=True, tokenizer_name="raw", index_option="basic")
    builder.add_text_field("domains", tokenizer_name="raw", index_option="basic")
    # the slot in the table of access lists, and blocks of slots (access/table.py)
    builder.add_text_field("slot", tokenizer_name="raw", index_option="basic")
    # the folders of the key, for labels
    builder.add_text_field("folders", tokenizer_name="raw", index_option="basic")
    # for a part: the key of the document that holds it
    builder.add_text_field("container", tokenizer_name="raw", index_option="basic")
    # facets
    builder.add_text_field("kind", fast=True, tokenizer_name="raw", index_option="basic")
    builder.add_text_field("tongue", fast=True, tokenizer_name="raw", index_option="basic")
    # words, stemmed
    builder.add_text_field("title", tokenizer_name=_STEMMED)
    builder.add_text_field("description", tokenizer_name=_STEMMED, index_option="freq")
    builder.add_text_field("body", tokenizer_name=_STEMMED, index_option="freq")
    # long words and, after a "<", the same backwards, of languages that write compounds
    builder.add_text_field("parts", tokenizer_name="whitespace", index_option="basic")
    # words, exact
    builder.add_text_field("exact", tokenizer_name=_EXACT)
    # the text around the main text
    builder.add_text_field("rest", tokenizer_name=_EXACT)
    builder.add_text_field("anchors", tokenizer_name=_EXACT)
    # one token each, in lower case: texts of links as a whole; flags, operators, key chords, and
    # words in several parts as one (joined.py)
    builder.add_text_field("labels", tokenizer_name="raw", index_option="basic")
    builder.add_text_field("signs", tokenizer_name="raw", index_option="basic")
    builder.add_text_field("url_words", tokenizer_name=_EXACT)
    builder.add_text_field("author", tokenizer_name=_EXACT)
    builder.add_text_field("mime", tokenizer_name=_EXACT)
    builder.add_text_field("language", tokenizer_name=_EXACT)
    # the stored fields of the page (page.py)
    builder.add_bytes_field(_PAGE, stored=True)
    # for finding copies (copies.py)
    builder.add_integer_field("likeness", fast=True)
    builder.add_text_field("blocks", tokenizer_name="raw", index_option="basic")
    # own fields: values by name, with a mark before each, so that none is taken for a date; and the
    # words that find them: "room", "room=4.12"
    builder.add_json_field("own", fast=True, tokenizer_name="raw", index_option="basic")
    builder.add_text_field("own_words", tokenizer_name="raw", index_option="basic")
    # values
    builder.add_date_field("date", indexed=True, fast=True)
    builder.add_float_field("prior", fast=True)
    return builder.build()


def indexed_page(page: Page, digest: str) -> IndexedPage:
    """The indexed fields of a page and of the documents in it."""
    modified = _plausible(page.modified, page.fetched) or last_modified(
        page.last_modified, page.fetched
    )
    body, rest = page.main[:TEXT_LIMIT], page.rest
    if page.contents:
        tables = {*page.contents}
        rest = [span for at, span in enumerate(rest) if at not in tables]
    found = IndexedPage(
        key=page.name,
        url=page.url,
        host=hostname_of(page.url),
        digest=digest,
        title=page.title,
        description=page.description or page.unread or first_sentence(body),
        body=body,
        rest=_joined(page.text, rest)[:REST_LIMIT],
        author=page.author,
        mime=page.mime,
        language=page.language or "",
        depth=page.depth,
        size=page.size,
        fetched=datetime.fromtimestamp(page.fetched, UTC),
        modified=modified,
        elsewhere=int(page.canonical not in (None, page.url, page.name)),
        own=page.fields,
        core=page.core or None,
        outside=" ".join(outside_links(page)) or None,
    )
    if page.sections:
        kept = kept_sections(page.text, page.rest, page.sections)
        if len(page.text) >= LONG_TEXT:
            found.sections = [section for section in kept if section[1]]
        found.breaks = breaks_of(body, kept) or None
    if page.contents:
        contents = _joined(page.text, [page.rest[at] for at in page.contents])
        found.contents = contents[:TEXT_LIMIT]
    found.parts = [_indexed_part(part, found, page.fetched) for part in page.parts]
    return found


def hostname_of(url: str) -> str:
    """The host of an absolute URL, without port and without a dot at its end; "" for none. A host
    with a connector has its scheme: ``smb://nas``."""
    end = url.find("/", 8)  # after http:// and https://
    origin = url if end < 0 else url[:end]
    if len(origin) > _LONGEST_REMEMBERED:
        return _hostname.__wrapped__(origin)
    return _hostname(origin)


@lru_cache(4_096)
def _hostname(origin: str) -> str:
    host = (urlsplit(origin).hostname or "").rstrip(".")
    scheme = scheme_of(origin)
    return host if scheme is None else f"{scheme.name}://{host}"


def first_sentence(text: str) -> str:
    """The beginning of ``text``, to the end of a sentence where one ends soon."""
    found = _SENTENCE.match(text)
    return found[0] if found else text[:LONGEST_SENTENCE].rpartition(" ")[0]


def _joined(text: str, spans: Iterable[tuple[int, int]]) -> str:
    return " ".join([text[start:end].strip() for start, end in spans])


def _indexed_part(part: Part, document: IndexedPage, fetched: float) -> IndexedPage:
    return IndexedPage(
        host=document.host,
        depth=document.depth,
        fetched=document.fetched,
        modified=_plausible(part.modified, fetched) or document.modified,
        key=part_url(document.key, part.name),
        container=document.key,
        url=part_url(document.url, part.name),
        digest=part.digest,
        title=part.title or part.name.rpartition("/")[2],
        description=part.unread,
        body=part.text[:TEXT_LIMIT],
        author=part.author,
        mime=part.mime,
        language=part.language or "",
        size=part.size,
    )


def to_document(
    page: IndexedPage,
    links: LinkTexts,
    stems: Stems,
    packed: PackedPages,
    as_packed: bytes | None = None,
    slot: int | None = None,
) -> tantivy.Document:
    """The document of a page and of the links to it, without its parts. ``as_packed``: the packed
    page, if it was packed before. ``slot``: the slot of its access list, None if it has no list."""
    whole = with_likeness(page, links)
    if as_packed is None or whole is not page:
        as_packed = packed.pack(whole.fields())
    fields = searched_fields(whole, links, stems, slot) | {_PAGE: as_packed}
    if own := page.own:
        fields["own"] = {n: [_VALUE_MARK + value for value in own[n]] for n in own}
    try:
        return tantivy.Document(**fields)
    except ValueError:  # a lone surrogate, which UTF-8 cannot hold
        return tantivy.Document(**without_surrogates(fields))


def with_likeness(page: IndexedPage, links: LinkTexts) -> IndexedPage:
    """``page`` with a likeness made from its bytes if it has none, and with the most frequent text
    of ``links`` if it has no title; ``page`` itself if nothing changes."""
    likeness, named = page.likeness, None
    if likeness is None and page.digest and page.size:
        likeness = of_bytes(page.digest)
    if not page.title and links.texts:  # each text as often as it weighs
        named = Counter(links.texts).most_common(1)[0][0]
    if (page.likeness, page.named) == (likeness, named):
        return page
    return replace(page, likeness=likeness, named=named)


def searched_fields(
    page: IndexedPage, links: LinkTexts, stems: Stems, slot: int | None = None
) -> dict[str, Any]:
    """The fields of `build_schema` for a page `with_likeness`, without stored page and ``own``."""
    plain = {name: normalized(getattr(page, name)) for name in SEARCHED}
    exact = [plain["title"], plain["body"] or plain["description"]]
    if contents := normalized(page.contents or ""):
        exact.append(contents)  # no phrase of the text goes on there
        plain["body"] = f"{plain['body']} {contents}"
    texts = anchors = links.texts
    if not all(map(str.isascii, texts)):
        texts = list(map(normalized, texts))
        anchors = list(map(spaced, texts))
    fields: dict[str, Any] = {
        **{name: value for name in _SEARCHED_AS_KEPT if (value := getattr(page, name)) is not None},
        "title": plain["title"],
        "description": plain["description"],
        "domains": _domains(page.host, page.url),
        "folders": folders_of(page.key),
        "kind": kind_of(page.mime),
        "date": page.modified or page.fetched,
        "url_words": spaced(normalized(url_words(page.url))),
        "anchors": anchors,
        "rest": spaced(plain["rest"]),
        "labels": _labels(page.url, [_own_part(plain["title"]), *texts]),
        # a document that could not be read is found by the words that say why
        "exact": list(map(spaced, exact)),
        "signs": _signs(plain["title"], plain["body"]),
        "prior": prior(page.url, links.number),
    }
    if slot is not None:
        fields["slot"] = terms_of(slot)
    if own := page.own:
        fields["own_words"] = [*own, *{own_word(n, value) for n in own for value in own[n]}]
    if page.likeness is not None:
        fields["blocks"] = blocks(page.likeness)
    if tongue := tongue_of(page.language):
        fields["tongue"] = tongue
        if stems.writes_compounds(tongue):
            plain["body"] = " ".join([plain["body"], *completed(plain["body"])])
        if parts := stems.parts_of_page(plain["body"], tongue):
            fields["parts"] = parts
        for name in SEARCHED:
            if name != "rest" and (words := stems.of_page(plain[name], tongue)) is not None:
                fields[name] = " ".join(words)
    if "body" not in fields and not stems.has_forms(tongue):
        fields["body"] = plain["body"]
    return fields


def _signs(title: str, body: str) -> list[str]:
    """The terms of the field ``signs``: signs in their written form, and each word in several parts
    as one term."""
    joined = map(without_accents, joined_words(f"{title} {body}"))
    return list({*signs(body), *signs(title), *joined})


def own_word(name: str, value: str) -> str:
    """The term that finds a value of a field in LARM_FIELDS, ignoring case: ``room=4.12``."""
    return f"{name}={' '.join(normalized(value).lower().split())}"


def _labels(url: str, texts: Iterable[str]) -> list[str]:
    if _MACHINE_MADE.search(url):
        return []
    found = dict.fromkeys([label(text) for text in dict.fromkeys(texts) if len(text) <= MAX_LABEL])
    found.pop("", None)
    plain = [(without_accents(text), text) for text in found if not text.isascii()]
    typed = [f"{typed}{_SHOWN}{text}" for typed, text in plain if typed != text]
    return [*found, *typed, *(end for text in found for end in _ends(text))]


def _ends(text: str) -> Iterator[str]:
    """The ends of a label that begin with one of its words. Readers may type such an end to find
    the label."""
    words = without_accents(text).split(" ")
    for at in range(1, len(words) if len(words) <= MAX_ENDS else 0):
        word = words[at].lstrip("(\"'")
        if len(word) >= LEAST_END and word.isalpha():
            yield f"{MIDDLE}{' '.join([word, *words[at + 1 :]])}{_SHOWN}{text}"


def title_label(title: str) -> str:
    """The label that a page has of its title, unless it is too long for one."""
    return label(_own_part(normalized(title)))


def _own_part(title: str) -> str:
    return _TITLE_PARTS.split(title, 1)[0]


def label(text: str) -> str:
    """A normalized link text, title, or whole query, in the form of the field ``labels``."""
    if text.endswith(")") and " " not in text.partition("(")[0]:
        text = text.partition("(")[0]  # leftPad(String, int)
    return " ".join(text.lower().split()).strip(".:;,()")


def without_accents(text: str) -> str:
    """``text`` as the words of the index have its letters: "uber" for "über"."""
    if text.isascii():
        return text
    return "".join(_FOLDING.analyze(text.encode("utf-8", "replace").decode()))


def shown_label(term: str) -> str:
    """The label that a term of the field ``labels`` belongs to. A label with accents also has a
    term without them, so that typed text without accents finds it."""
    return term.rpartition(_SHOWN)[2]


def prior(url: str, links: int) -> float:
    """The field ``prior`` of a page with this number of links. Tantivy multiplies a score by
    log2(2 + prior), or by 1 if prior is negative. Factors below 1 are therefore impossible: this
    divides each factor by the least one, and the reader multiplies by `MACHINE_MADE_FACTOR`."""
    factor = 1 + PRIOR_WEIGHT * log2(1 + links)
    if not _MACHINE_MADE.search(url):
        factor /= MACHINE_MADE_FACTOR
    return float(2**factor - 2)


def shown_title(stored: dict[str, Any]) -> str:
    """The title of a page, else the text of links to it, else its file name."""
    title: str = stored["title"]
    return title if title.strip() else stored.get("named") or file_name(stored["url"])


def file_name(url: str) -> str:
    """``Über uns.pdf`` for http://wiki/a/%C3%9Cber%20uns.pdf?x; "" for a folder."""
    return unquote(urlsplit(url).path.rpartition("/")[2])


def stored_fields(
    document: tantivy.Document, packed: PackedPages, *, beginning: bool = False
) -> dict[str, Any]:
    """The `IndexedPage.fields` of a document that the index gave back. ``beginning``: only the
    beginning of a long text (`PackedPages.unpack`)."""
    return packed.unpack(packed_page(document), beginning=beginning)


def packed_page(document: tantivy.Document) -> bytes:
    """The packed page in a document that the index returned."""
    page: Any = document.get_first(_PAGE)
    return bytes(page)


def url_words(url: str) -> str:
    """Host, path and query as text: "wiki/Über uns" for http://wiki/%C3%9Cber%20uns."""
    _, _, rest = url.partition("://")
    # an underscore joins words in a path, unlike in a program
    return unquote(rest or url).replace("_", " ")


def last_modified(header: str, fetched: float) -> datetime | None:
    """The date in a Last-Modified header. None if it is missing, is before the web, or is later
    than the fetch by more than clocks may differ."""
    return _plausible(_seconds(header) if len(header) <= _LONGEST_DATE else None, fetched)


@lru_cache(1_024)  # files that were installed together have one date: 16 us a page
def _seconds(header: str) -> float | None:
    return http_time(header)


def _plausible(told: float | None, fetched: float) -> datetime | None:
    fits = told is not None and _FIRST_PAGE <= told <= fetched + _CLOCKS_DIFFER_SECS
    return datetime.fromtimestamp(told, UTC) if told is not None and fits else None


def tongue_of(language: str) -> str:
    """The primary language, "en" for en-US; "" if it is not a language tag."""
    primary = language.replace("_", "-").partition("-")[0].strip().lower()
    return primary if 2 <= len(primary) <= 8 and primary.isascii() and primary.isalpha() else ""


def typed_host(typed: str) -> str:
    """A host as typed by a person in the form of the field: lower case, punycode, no brackets;
    or `FILES`."""
    host = typed.strip("[]/. ").lower()
    if host == _FILES_TYPED:
        return FILES
    if host.isascii() or len(host) > HOST_LIMIT:
        return host
    try:
        return can_ada.idna_encode(host).decode() or host
    except TypeError:  # a lone surrogate
        return host


def kind_of(mime: str) -> str:
    """The kind of a media type in lower case without parameters: "spreadsheet" for text/csv."""
    if kind := _KINDS.get(mime):
        return kind
    family, _, subtype = mime.partition("/")
    if family in _FAMILIES:
        return family
    if subtype.endswith(("+xml", "+json")):
        return "data"
    return "text" if reader_of(mime) == _PLAIN_TEXT else OTHER


def _domains(host: str, url: str) -> list[str]:
    """The host and all domains above it, so that host:example.org finds wiki.example.org."""
    if url.startswith("file:"):
        return [FILES]
    if "://" in host:
        return [host, *_domains(host.partition("://")[2], "")]
    if host.replace(".", "").isdigit() or ":" in host:
        return [host]
    labels = host.split(".")
    return [".".join(labels[i:]) for i in range(len(labels))]


def folders_of(key: str) -> list[str]:
    """The folders that a page lies in, from the host down, at most `MAX_FOLDERS`.

    >>> folders_of("http://wiki.example/hr/forms?x=/")
    ['http://wiki.example/', 'http://wiki.example/hr/']
    """
    path = split_part(key)[0].partition("?")[0]
    found, end = list[str](), path.find("/", path.find("://") + 3)
    while end >= 0 and len(found) < MAX_FOLDERS:
        found.append(path[: end + 1])
        end = path.find("/", end + 1)
    return found


def without_surrogates(value: Any) -> Any:
    """``value`` with U+FFFD for each lone surrogate."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, list):
        return [without_surrogates(item) for item in value]
    if isinstance(value, dict):
        return {name: without_surrogates(item) for name, item in value.items()}
    return value
