from __future__ import annotations

from pathlib import Path
from time import process_time

import pytest

from larmspider.formatting import readable
from larmspider.index.schema import ExactAnalyzer, stemmed_analyzer
from larmspider.index.stems import Stems
from larmspider.items import MAX_SECTIONS, Section
from larmspider.search import snippets
from larmspider.search.request import SearchRequest
from larmspider.search.rerank import PLACES, Reranker
from larmspider.search.searcher import Searcher
from larmspider.search.snippets import LONGEST, SNIPPET_LENGTH, Snippet, SnippetMaker, Sought


def make(words: str, body: str, description: str = "") -> Snippet:
    maker = SnippetMaker(Sought(words.split()), ExactAnalyzer(), stemmed_analyzer("english"))
    return maker.snippet(body, description)


@pytest.mark.parametrize(
    "words, body, marked",
    [
        ("join", "how to join paths", "how to *join* paths"),
        ("os.path.join()", "os.path.join(a)", "*os*.*path*.*join*(a)"),
        ("libraries", "a library of Libraries", "a *library* of *Libraries*"),
        ("object.__init__", "see object.__init__.", "see *object*.*__init__*."),
        ("C++", "C and C++ code", "C and *C++* code"),
        ("join", "rejoin", "rejoin"),
        ("join", "a\xa0join … rejoin ﬁ join", "a\xa0*join* … rejoin ﬁ *join*"),
        ("über", "straße Über naïve", "straße *Über* naïve"),
        ("uber", "straße Über", "straße *Über*"),
        ("x", "İstanbul x", "İstanbul *x*"),
        ("漢字", "日本の漢字です", "*日本の漢字です*"),
    ],
)
def test_marks_the_words_of_the_query(words: str, body: str, marked: str) -> None:
    """All forms of a word are marked, parts of other words are not."""
    assert make(words, body).marked("*", "*") == marked


def test_no_passage_is_chosen_for_the_letter_of_a_word() -> None:
    """But for a word that is a letter."""
    body = f"Every egg is eaten. {'filler. ' * 60}Of our mail. {'filler. ' * 60}"
    assert make("e-mail", body).marked("*", "*").startswith("Of our *mail*.")
    assert make("e", body).marked("*", "*").startswith("Every egg")


@pytest.mark.parametrize("typed", ["telecharger", "télécharger", "TÉLÉCHARGER", "téléchargé"])
def test_accents_make_no_difference_for_what_is_shown(writer, make_page, typed: str) -> None:
    """Nor for the section that a hit leads to."""
    body = f"{'Rien à voir. ' * 150}Les fichiers Ici on peut télécharger des fichiers. {'x ' * 60}"
    at = body.index("Les fichiers")
    sections = [Section(at - 13, "rien", "Rien"), Section(at, "dl", "Les fichiers")]
    page = make_page("a", body, language="fr")
    page.sections = sections
    writer.add(page)
    writer.commit()
    (hit,) = Searcher.open(writer.directory).search(typed).hits
    assert "*télécharger*" in hit.snippet.marked("*", "*")
    assert hit.section is not None
    assert hit.section.anchor == "dl"


def test_words_that_differ_from_a_fuzzy_one_are_shown(writer, make_page) -> None:
    """Words within the edit distance; a short text is looked through, a long one's beginning."""
    text = f"{'Nothing here. ' * 90}The sanitizer finds leaks. {'Nor here. ' * 90} Größe too."
    writer.add(make_page("a", text))
    writer.commit()
    searcher = Searcher.open(writer.directory)
    for query, shown in (
        ("sanitzer~1", "*sanitizer* finds leaks"),
        ("sanizer~2", "*sanitizer* finds leaks"),
        ("sanitzer~ leak", "*sanitizer* finds *leaks*"),
        ("grosse~2", "*Größe* too"),
    ):
        (hit,) = searcher.search(query).hits
        assert shown in hit.snippet.marked("*", "*")


def test_html_is_escaped() -> None:
    """Markup in a page is shown, not obeyed."""
    snippet = make("join alert", '<script>alert("1")</script> & join')
    assert snippet.html == (
        "&lt;script&gt;<b>alert</b>(&quot;1&quot;)&lt;/script&gt; &amp; <b>join</b>"
    )


def test_control_characters_do_not_reach_a_terminal() -> None:
    """Escape sequences, C1 controls and direction marks become spaces."""
    snippet = make("join", "\x1b[31m join\x9b2J \u202egnp.exe\x00\n")
    assert snippet.marked("", "") == " [31m join 2J  gnp.exe "


def test_icons_of_fonts_are_not_shown() -> None:
    """A reader without the font sees a box in place of each; positions stay the same."""
    snippet = make("join", "How to join\uf0c1 \U000f0100and leave")
    assert snippet.marked("*", "*") == "How to *join*   and leave"


def test_shows_the_passage_with_most_words() -> None:
    """A passage with both words wins over an earlier one with one, and is short."""
    body = "alpha " + "filler " * 200 + "alpha beta here " + "filler " * 200
    snippet = make("alpha beta", body)
    assert "*alpha* *beta* here" in snippet.marked("*", "*")
    assert len(snippet.text) <= SNIPPET_LENGTH + len("… ") * 2


def test_a_phrase_is_shown_where_its_words_stand_side_by_side() -> None:
    """On the page of a document, too, that has them so; where they do not stand so it is as if they
    were no phrase."""
    analyzers = ExactAnalyzer(), stemmed_analyzer("english")
    maker = SnippetMaker(Sought(["Log in"], phrases=["Log in"]), *analyzers)
    filler = "filler. " * 60
    body = f"in the log of it, the catalog in it. {filler}Here you log-in. {filler}"
    assert "Here you log-in." in maker.snippet(body, "").text
    assert maker.snippet("in the log, a login in it\fhere you log in\flog", "").page == 2
    assert maker.snippet("a log is in it", "").marked("*", "*") == "a *log* is *in* it"


def test_of_a_name_the_section_that_is_called_so_is_shown(writer, make_page) -> None:
    """And of the text the place where it stands as it is typed, whatever begins as its parts."""
    names = ["MAX_SIZE", "MAX_LENGTH", "MAX_CONTENT_LENGTH", "CONTENT_TYPE"]
    fill = "words of no interest here " * 20
    page = make_page("config", "".join(f"{name} is an option. {fill}" for name in names))
    page.sections = [Section(page.text.index(f"{name} is"), name.lower(), name) for name in names]
    writer.add(page)
    writer.commit()
    [hit] = Searcher.open(writer.directory).search("max_content_length").hits
    assert hit.section == Section(page.text.index("MAX_CONTENT"), "max_content_length", names[2])
    marked = make("max_content_length", f"the max length, {fill} a MAX_CONTENT_LENGTH, {fill}")
    assert "MAX_CONTENT_LENGTH" in marked.text


def test_a_synonym_of_several_words_stands_side_by_side() -> None:
    """Else its words are not marked. Where the typed word stands it is shown, and not its
    synonyms, however many."""
    analyzers = ExactAnalyzer(), stemmed_analyzer("english")
    maker = SnippetMaker(
        Sought(["memcheck"], synonyms=["leak finder", "leakage", "purify"]), *analyzers
    )
    filler = "filler. " * 60
    apart = f"Find some leaks, and the finder. {filler}"
    beside = f"This leak-finder leaks no leak. {filler}"
    many = f"Purify, a leak finder for leakage. {filler}"
    shown = maker.snippet(apart + beside, "").marked("*", "*")
    assert shown.startswith("This *leak*-*finder* leaks no leak.")
    assert maker.snippet(apart + beside + many, "").text.startswith("Purify")
    assert "Memcheck does." in maker.snippet(f"{apart}{many}Memcheck does. {filler}", "").text
    pages = [apart, beside, many, "Memcheck", apart]
    assert [maker.snippet("\f".join(pages[:size]), "").page for size in (2, 3, 5)] == [2, 3, 4]


@pytest.mark.parametrize(
    ("query", "anchor"),
    [
        ("re.sub", "re.sub"),
        ("re.sub()", "re.sub"),
        ("what does RE.SUB do?", "re.sub"),
        ("time.time", "time.time"),
        ("Policy.compat", "Policy.compat"),
        ("policy.compat", "policy.compat"),
        ("g_list_copy", "g-list-copy"),
    ],
)
def test_a_name_leads_to_the_section_that_has_it_as_its_anchor(
    writer, make_page, query: str, anchor: str
) -> None:
    """Whatever headings and the title have; the snippet is of this section."""
    anchors = ["re.Pattern.sub", "re.sub", "re.subn", "time.time", "policy.compat"]
    anchors += ["Policy.compat", "g-list-copy-deep", "g-list-copy"]
    text, sections = f"re, time, policy, g, list, sub, compat, copy. {FILL}", []
    for number, name in enumerate(anchors):
        heading = name.rpartition(".")[2] + "(of, which, there, are, many)" * (number % 2)
        sections.append(Section(len(text), name, heading))
        text += f"{heading} is number {number}. More of re.sub, policy.compat, g_list_copy. {FILL}"
    writer.add(make_page("a", text, title="time", sections=sections))
    writer.commit()
    [hit] = Searcher.open(writer.directory).search(query).hits
    assert hit.section == sections[anchors.index(anchor)]
    others = [f"number {number}" for number, name in enumerate(anchors) if name != anchor]
    assert not any(other in hit.snippet.text for other in others)


FILL = "Nothing of use is said here. " * 20
OF_FLAGS = (
    f"daemon: users, uses. {FILL} daemon [-u user] [-U limit] {FILL} Of the daemon: "
    f"-u user becomes that one. {FILL} Of the daemon: -U limit is another; not so -under-u. {FILL}"
)


@pytest.mark.parametrize(
    ("query", "marked"),
    [
        ("daemon -u", "Of the *daemon*: *-u* user becomes that one."),
        ("daemon -U", "Of the *daemon*: *-U* limit is another; not so -under-u."),
        ("daemon -under-u", "*-under-u*."),
        ("daemon -z", "*daemon*: users, uses."),
        ('daemon "-u user becomes"', "*-u* *user* *becomes*"),
    ],
)
def test_a_flag_is_shown_as_it_is(writer, make_page, query: str, marked: str) -> None:
    """In a sentence before a list of flags; words that begin with its letter are not it."""
    writer.add(make_page("a", OF_FLAGS))
    writer.add(make_page("z", "The -z of others"))
    writer.commit()
    hits = Searcher.open(writer.directory).search(query).hits
    shown = next(hit.snippet for hit in hits if hit.url.endswith("/a"))
    assert marked in shown.marked("*", "*")


def test_the_section_of_a_flag_is_that_of_the_flag_itself(writer, make_page) -> None:
    """And not one of another flag that begins alike, nor of its capital letter."""
    text, sections = FILL, []
    for flag in ("--reset", "-r", "-R"):
        sections.append(Section(len(text), f"daemon{flag}", flag))
        text += f"{flag} is a flag of the daemon. {FILL}"
    writer.add(make_page("a", text, sections=sections))
    writer.commit()
    searcher = Searcher.open(writer.directory)
    for section in sections:
        hit = searcher.search(f"daemon {section.heading}").hits[0]
        assert hit.section == section
        assert hit.snippet.text.startswith(f"{section.heading} · is a flag")


def test_the_section_of_a_flag_with_a_value(writer, make_page) -> None:
    """Which the heading of another flag has in a word; a piece of a section ends with a word."""
    text = f"{FILL}-fsan=<check> Checks are address, {'thread; ' * 300}"
    sections = [Section(len(FILL), "fsan", "-fsan=<check>")]
    sections.append(Section(len(text), "hw", "-fsan-hwaddress-abi"))
    writer.add(make_page("a", f"{text}-fsan-hwaddress-abi {FILL}", sections=sections))
    writer.commit()
    (hit,) = Searcher.open(writer.directory).search("-fsan=address").hits
    assert hit.section == sections[0]
    assert hit.snippet.text.startswith("-fsan=<check> · Checks are address, thread")
    assert hit.snippet.text.endswith("thread; …")


def test_behind_the_last_section_that_is_kept_there_is_none(writer, make_page) -> None:
    """For there may be others."""
    heads = [f"{number:04}" for number in range(MAX_SECTIONS)]
    sections = [Section(5 * number + 300, f"s{head}", head) for number, head in enumerate(heads)]
    text = "x" * 299 + " " + " ".join(heads) + " " + FILL + "a needle here"
    for url, kept in (("a", sections), ("b", sections[:-1])):
        writer.add(make_page(url, text + url, sections=kept))
    writer.commit()
    hits = Searcher.open(writer.directory).search(SearchRequest("needle", copies=True)).hits
    assert {hit.url[-1]: hit.section and hit.section.heading for hit in hits} == {
        "a": None,
        "b": heads[-2],
    }


def test_a_flag_that_comes_late_in_a_long_page_is_shown(writer, make_page) -> None:
    text = f"{'The daemon does nothing - quietly. ' * 6_000}A daemon with -q says nothing."
    writer.add(make_page("a", text))
    writer.commit()
    shown = Searcher.open(writer.directory).search("daemon -q").hits[0].snippet
    assert "A *daemon* with *-q* says nothing." in shown.marked("*", "*")


def test_a_section_is_not_named_by_what_it_is_of(writer, make_page) -> None:
    """flask.Request.date is about a date, though its anchor is the shortest with "request"."""
    fill = "words of no interest here " * 40
    named = {"flask.Request.date": "date", "flask.Request": "class Request(environ, shallow=False)"}
    page = make_page("api", "".join(f"{heading}: {fill}" for heading in named.values()))
    page.sections = [Section(page.text.index(text), anchor, text) for anchor, text in named.items()]
    writer.add(page)
    writer.commit()
    [hit] = Searcher.open(writer.directory).search("request").hits
    assert hit.section is not None
    assert hit.section.anchor == "flask.Request"


def test_words_that_say_little_are_not_marked(writer, make_page) -> None:
    """Beside others, outside of phrases; and no passage is chosen for them."""
    text = f"How do I say a map? {'Nothing. ' * 99}A thread has a map of the world."
    writer.add(make_page("a", text))
    writer.commit()
    search = Searcher.open(writer.directory).search

    def shown(query: str) -> str:
        return search(query).hits[0].snippet.marked("*", "*")

    assert "A *thread* has a *map* of the" in shown("how do I find a thread of the map")
    assert "*map* *of* *the* world" in shown('a "map of the" thread')
    assert "*How* *do* I" in shown("how do")


def test_passage_begins_and_ends_with_whole_words() -> None:
    """Words at the edge are not cut; an ellipsis stands for what is left out of a sentence."""
    words = make("needle", "filler " * 100 + "needle " + "filler " * 100).text.split()
    assert (words[0], words[-1]) == ("…", "…")
    assert set(words[1:-1]) == {"filler", "needle"}


BOOK = (
    "Welcome to the handbook. Dr. Meier runs the canteen from 5. March on, e.g. at noon. The siren"
    " is tested every first Monday, and everybody stays calm! Nobody leaves (he said so.)"
    " 東京です。" + "And so the clock goes on and on. " * 20
)


@pytest.mark.parametrize("words, begins, ends", [
    ("siren", "The siren is tested", "goes on and on."),
    ("meier", "Dr. Meier runs", "goes on and on."),
    ("siren leaves", "The siren is tested", "goes on and on."),
    ("東京", "東京です。And so", "goes on and on."),
])  # fmt: skip
def test_sentences_are_whole(words: str, begins: str, ends: str) -> None:
    """A dot behind an abbreviation or a number is no end."""
    snippet = make(words, BOOK)
    assert snippet.text.startswith(begins)
    assert snippet.text.endswith(ends)
    assert len(snippet.text) <= LONGEST
    assert make(words, "x " * 300 + f". {BOOK}") == snippet


def test_a_page_that_was_found_otherwise_begins_with_whole_sentences() -> None:
    assert make("vpn", BOOK).text.endswith("東京です。")


@pytest.mark.parametrize(
    "text",
    [
        "4. Memcheck: a memory error detector",
        "Valgrind User Manual 2. Using and understanding it",
        "All of this is told in section 4.1. Overview of Memcheck",
        "In 19. Jahrhundert and on 5. March",
    ],
)
def test_a_number_with_a_dot_ends_no_sentence(writer, make_page, text: str) -> None:
    """Nor where the page has not the words and shows its first sentence."""
    assert make("vpn", f"{text} {'and more ' * 20}. Not this.").text.startswith(text)
    writer.add(make_page("a", f"{text} and so on. {FILL}"))
    writer.commit()
    shown = Searcher.open(writer.directory).search("wiki").hits[0].snippet.text
    assert shown.startswith(f"{text} and so on.")


@pytest.mark.parametrize(
    "words, shown",
    [
        ("overview", "Overview of it · Memcheck finds leaks, e.g. blocks that are lost"),
        ("lost", "Memcheck finds leaks, e.g. blocks that are lost"),
        ("using", "4.1. Using it · y y"),
        ("wiki", "x x x"),
    ],
)
def test_a_heading_is_a_sentence(writer, make_page, words: str, shown: str) -> None:
    """With or without a dot, an anchor, or much text; what stands beside it is parted from it."""
    text = (
        f"{'x ' * 150}Overview of it Memcheck finds leaks, e.g. blocks that are lost 4.1. Using it"
    )
    headings = [Section(text.index(one), "", one) for one in ("Overview of it", "4.1. Using it")]
    for body in (f"{text} {'y ' * 150}", f"{text} {'y ' * 1_500}"):
        writer.add(make_page("a", body, sections=headings))
        writer.commit()
        (hit,) = Searcher.open(writer.directory).search(words).hits
        assert hit.snippet.text.startswith(shown)
        assert "Using" not in hit.snippet.text.removeprefix(shown)  # it leads to what is not shown
        assert hit.section is None


def test_a_long_heading_is_not_alone(writer, make_page) -> None:
    """The sentence behind it is cut where it is too long."""
    heading = "Row locking in wrappers of foreign data, and what it is for"
    for url, size in (("a", 30), ("b", 90)):
        text = f"{heading} If a wrapper locks, {'so it does, ' * size}it says so. More."
        writer.add(make_page(url, text, sections=[Section(0, "", heading)]))
    writer.commit()
    for hit in Searcher.open(writer.directory).search("locking").hits:
        assert hit.snippet.text.startswith(f"{heading} · If a wrapper locks, so it does,")


@pytest.mark.parametrize(
    "words, body, shown",
    [
        (
            "begin long",
            f"Begin {'a ' * 70}so {'longlong' * 9} all {'b ' * 400}",
            f"so {'longlong' * 9} …",
        ),
        ("part", f"{'x' * 300} ({'y' * 60},part of it {'z ' * 400}", "… part of it z"),
        ("re sub", f"Regular subjects. {'more ' * 200}so re.sub is it.", "re.sub is it."),
        ("re", "Regular expressions.", "Regular expressions."),
    ],
)
def test_words_are_whole(words: str, body: str, shown: str) -> None:
    """At the ends of a snippet, and short ones of the query, if they stand anywhere."""
    assert shown in make(words, body).text


@pytest.mark.parametrize("typed, anchor", [("dumps", "json.dumps"), ("dump", "json.dump")])
def test_the_section_of_a_bare_name_is_its_own(writer, make_page, typed: str, anchor: str) -> None:
    text, sections = FILL, []
    for name in ("json.dump", "json.dumps"):
        sections.append(Section(len(text), name, f"{name}({'obj, ' * len(name)}skip)"))
        text += f"{sections[-1].heading} writes JSON. {FILL}"
    writer.add(make_page("a", text, sections=sections))
    writer.commit()
    (hit,) = Searcher.open(writer.directory).search(typed).hits
    assert hit.section is not None
    assert hit.section.anchor == anchor


def test_a_heading_that_only_begins_like_a_word_shows_nothing(writer, make_page) -> None:
    """Rather the text where the word stands."""
    text = f"{FILL}ElementDeclHandler(name) {FILL}An element is there. {FILL}"
    sections = [Section(len(FILL), "decl", "ElementDeclHandler(name)")]
    writer.add(make_page("a", text, sections=sections))
    writer.commit()
    (hit,) = Searcher.open(writer.directory).search("element").hits
    assert "An *element* is there." in hit.snippet.marked("*", "*")


def test_without_the_words_the_description_or_the_beginning() -> None:
    """A page that was found by its links shows what it says of itself."""
    assert make("vpn", "Welcome to us", "Who we are") == Snippet("Who we are")
    assert make("vpn", "Welcome to us") == Snippet("Welcome to us")
    assert make("vpn", "") == Snippet("")


def test_the_beginning_of_a_page_ends_with_a_whole_word() -> None:
    """Where there are spaces; else it is cut."""
    assert set(make("vpn", "filler " * 100).text.split()) == {"filler", "…"}
    assert len(make("vpn", "x" * 1000).text) == SNIPPET_LENGTH + len(" …")
    assert make("needle", f"needle{'x' * 1000}").text == f"needle{'x' * 194} …"


def test_what_shows_nothing_does_not_reach_a_terminal() -> None:
    """Soft hyphens, zero-width and bidirectional characters, between the marks."""
    snippet = make("paths", "join pa\u00adths \u202eof\u200b trees")
    assert snippet.marked("\x1b[1m", "\x1b[0m", readable) == "join \x1b[1mpaths\x1b[0m  of trees"


def test_a_text_with_pages_names_the_page_that_is_about_the_words() -> None:
    """Not the first one that has a word, such as the contents; none where no page has one."""
    body = "\f".join(("Contents supervisor 3", "other", "supervisor, a supervisor tree", "tree"))
    snippet = make("supervisor", body)
    assert (snippet.page, snippet.marked("*", "*")) == (3, "*supervisor*, a *supervisor* tree")
    assert make("supervisor tree", body).page == 3
    assert make("supervisor", body).others == (1,)
    assert make("tree", "\f".join(["tree", "no", *["tree tree"] * 5])).others == (4, 5, 6)
    assert make("absent", body, "about").page == 0
    assert make("supervisor", "one supervisor").page == 0


def test_many_phrases_take_no_time_in_a_long_document() -> None:
    """The first ones and the longest words choose the page."""
    phrases = [f"to b{number}" for number in range(30)]
    analyzers = ExactAnalyzer(), stemmed_analyzer("english")
    maker = SnippetMaker(Sought(phrases, phrases=phrases), *analyzers)
    pages = ["to be " * 700] * 350
    pages[300] = "what to b1 is"
    started = process_time()
    assert maker.snippet("\f".join(pages), "").page == 301
    assert process_time() - started < 0.5


def test_of_many_words_the_longest_choose_the_page_of_a_long_document(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(snippets, "PAGES_CHARS", 0)
    words = "or if yes but supervisor handover"
    assert make(words, "or if yes but\fa handover\fa supervisor: the handover").page == 3


TEXTS = [
    "Reset it. " * 40 + "How to reset a password: passwords are reset by hand.",
    "Password, " * 90 + "presets and a reset of passwords.",
    "İstanbul resets. " * 9 + "The password of İstanbul is reset.",
    "Nothing of it. " * 30,
]


@pytest.mark.parametrize("body", TEXTS)
@pytest.mark.parametrize("words", ["reset password", "password preset reset", "über reset"])
def test_after_the_second_look_a_snippet_is_the_same(words: str, body: str) -> None:
    """Which has found already where the words begin."""
    stored = {"title": "", "body": body, "description": ""}
    reranker = Reranker(dict.fromkeys(words.split(), 2.0), Stems("english"), lambda _: False)
    reranker.factor(stored)
    maker = SnippetMaker(Sought(words.split()), ExactAnalyzer(), stemmed_analyzer("english"))
    assert maker.snippet(body, "", stored) == maker.snippet(body, "")


def test_what_the_second_look_has_found_is_not_looked_for_again() -> None:
    stored = {"body": "a reset " + "nothing " * 200 + "a reset", PLACES: {"reset": [1610]}}
    maker = SnippetMaker(Sought(["reset"]), ExactAnalyzer(), stemmed_analyzer("english"))
    assert maker.snippet(stored["body"], "", stored).start == 1610


def test_a_section_far_down_a_very_long_page_is_shown(writer, make_page) -> None:
    """Though the beginning of its text is enough to find another passage."""
    text = f"reset passwords {'words and more words ' * 30_000}"
    section = Section(len(text), "end", "Reset tokens")
    page = make_page("a", f"{text}The office will reset them.", sections=[section])
    writer.add(page)
    writer.commit()
    searcher = Searcher.open(writer.directory)
    for _ in range(2):  # the second time it is remembered
        hit = searcher.search("reset tokens").hits[0]
        assert hit.section == section
        assert hit.snippet.text == "The office will reset them."
        passwords = searcher.search("passwords").hits[0]
        assert passwords.section is None
        assert passwords.snippet.text.startswith("reset passwords words")


def test_a_word_that_comes_late_in_a_long_page_is_shown(
    writer, make_page, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With its section; up to a limit of bytes for all hits together."""
    text = f"{'Nothing is said here of any machine. ' * 6_000}Grease the marzlevanes daily."
    late = (len(text) - 29, "grease", "Care")
    for name in ("a", "b"):
        sections = [Section(0, "top", "Start"), Section(*late)]
        writer.add(make_page(name, text, body=text.encode(), sections=sections))
    writer.add(make_page("c", "No marzlevanes."))
    writer.commit()
    searcher = Searcher.open(tmp_path / "index")

    def shown() -> list[str]:
        hits = searcher.search(SearchRequest("marzlevanes", copies=True)).hits
        assert len(hits) == 3
        assert all("marzlevanes" in hit.snippet.text for hit in hits if hit.section)
        return sorted(hit.section.anchor for hit in hits if hit.section)

    assert shown() == ["grease", "grease"]
    both = searcher.search("machine marzlevanes").hits[0]
    assert both.snippet.text.endswith("Grease the marzlevanes daily.")
    monkeypatch.setattr(snippets, "FURTHER_BYTES", 2 * len(text) - 1)
    assert shown() == ["grease"]


def test_the_heading_with_most_of_the_words_is_chosen(writer, make_page, tmp_path: Path) -> None:
    """Also of those that the page's title has."""
    text = "An introduction, which is as long as it has to be. " * 40
    sections = [
        Section(400, "read-xml", "Reading XML"),
        Section(900, "read-csv-table", "CSV and text files"),
        Section(1_400, "write", "Writing"),
    ]
    writer.add(make_page("io", text + " read csv", title="IO tools (CSV)", sections=sections))
    writer.commit()
    hit = Searcher.open(tmp_path / "index").search("read csv").hits[0]
    assert hit.section is not None
    assert hit.section.anchor == "read-csv-table"
