"""What a host answers where there is no page."""

from __future__ import annotations

from larmspider.extraction.pages.html import extract
from larmspider.extraction.texts.fingerprint import link_signature, signature
from larmspider.frontier.hosts import Host, HostPace, HostRecord
from larmspider.frontier.part import NotesMemory
from larmspider.frontier.storage.records import FetchRecord, UrlState
from larmspider.items import REDIRECT, Link, Page
from larmspider.learned.deletes.error_pages import WAIT, ErrorPages
from larmspider.learned.deletes.table import Observation
from tests.support.frontier.memory_backend import MemoryBackend

NOW = 1.8e9
HOST = "h:80"
LOGIN = "<h1>Please log in</h1><form>Your name <input name=u><input type='password'></form>"
SORRY = "<h1>Sorry</h1><p>Nothing was found at %s. Try the search, or ask the help desk (%d)."


def page(path: str, markup: str, status: int = 200) -> Page:
    found = extract(markup.encode(), f"http://h/{path}", None)
    found.status = status
    return found


def before(markup: str) -> FetchRecord:
    old = page("a", markup)
    texts = {"signature": signature(old), "link_signature": link_signature(old)}
    return FetchRecord(UrlState.STORED, status=200, **texts)


WIKI = Host(HostRecord(HOST), HostPace())


def error_pages() -> ErrorPages:
    return ErrorPages(NotesMemory(MemoryBackend()))


def probed(errors: ErrorPages, answer: Page | None) -> None:
    own = errors.own_fetch(WIKI, NOW, lambda _url: True)
    assert own is not None
    assert own.url.startswith("http://h/larmspider-")
    assert errors.next_time(HOST) is None
    if answer is not None:
        answer.url = own.url
    own.ended("", 0, answer)


def test_a_soft_404_is_what_a_made_up_url_gives() -> None:
    """Whatever URL and number it names; asked for once, and before anything is believed."""
    errors = error_pages()
    old, sorry = before("<p>The price list of all printers"), page("p1", SORRY % ("/p1", 17))
    assert errors.looks_like(HOST, sorry, old) is WAIT
    own = errors.own_fetch(WIKI, NOW, lambda _url: True)
    assert own is not None
    own.ended("200", 0, extract((SORRY % (own.url[8:], 99)).encode(), own.url, None))
    assert errors.looks_like(HOST, sorry, old) is Observation.SOFT_404
    assert errors.looks_like(HOST, page("", SORRY % ("/", 1)), old) is Observation.SOFT_404
    assert errors.looks_like(HOST, page("p1", "<p>The new price list of printers"), old) is None
    assert errors.own_fetch(WIKI, NOW, lambda _url: True) is None


def test_where_made_up_urls_give_what_nobody_can_read_no_such_page_is_believed() -> None:
    """Neither as gone, nor as changed; others are."""
    errors = error_pages()
    old = before("<p>The price list of all printers")
    unread = Page("http://h/p1", body=b"PK", unread="reader-died: ended with status -6")
    assert errors.looks_like(HOST, unread, old) is WAIT
    probed(errors, Page("", body=b"PK", unread=unread.unread))
    assert errors.looks_like(HOST, unread, old) is Observation.EMPTY
    assert errors.looks_like(HOST, page("p2", "<p>The new price list of printers"), old) is None
    other = error_pages()
    other.looks_like(HOST, unread, old)
    probed(other, None)
    assert other.looks_like(HOST, unread, old) is None


def test_a_login_form_is_one_where_there_was_none() -> None:
    errors = error_pages()
    old = before("<p>The price list of all printers")
    assert errors.looks_like(HOST, page("p1", LOGIN), old) is Observation.LOGIN
    wiki = before("<p>A page beside a box " + LOGIN)
    errors.looks_like(HOST, page("p1", "<p>Another page beside a box " + LOGIN), wiki)
    probed(errors, None)
    changed = page("p1", "<p>Another page beside a box " + LOGIN)
    assert errors.looks_like(HOST, changed, wiki) is None


def test_one_text_in_place_of_many_is_nobodys() -> None:
    """A login gate without a password field, that 404s are not behind."""
    errors = error_pages()
    button = "<p>Sign on at the portal of the company to go on"
    errors.looks_like(HOST, page("a", button), before("old"))
    probed(errors, None)
    found = [errors.looks_like(HOST, page(f"{n}", button), before(f"old {n}")) for n in range(6)]
    assert found == [None] * 3 + [Observation.LOGIN] * 3
    copies = "<p>One page of which there are six, and it has changed"
    assert {errors.looks_like(HOST, page(f"{n}", copies), before("one")) for n in range(6)} == {
        None
    }


def test_a_short_text_in_place_of_many_texts_is_nobodys() -> None:
    """As an application that is to build its pages in the browser, or sends all to its start."""
    shell = "<title>Home</title><div id=app></div><script src=/app.js></script>"

    def seen(errors: ErrorPages, number: int, text: str) -> object:
        old = page(f"{number}", text)
        return errors.looks_like(
            HOST, page(f"{number}", shell), before(text), stored=old, first=old
        )

    errors, text = error_pages(), "<p>Page {} has a long text of its own"
    assert seen(errors, 0, text.format("a")) is WAIT
    probed(errors, page("x", shell))
    assert seen(errors, 0, text.format("a")) is Observation.SOFT_404
    assert seen(errors, 1, "<p>Short") is None, "a page that never had much text"
    errors = error_pages()
    seen(errors, 0, text.format("a"))
    probed(errors, None)
    found = [seen(errors, number, text.format("abcdef"[number])) for number in range(6)]
    assert found == [None] * 3 + [Observation.LOGIN] * 3


def test_pages_that_differ_by_numbers_alone_are_pages() -> None:
    errors = error_pages()
    errors.looks_like(HOST, page("p0", "<p>x"), before("<p>y"))
    probed(errors, None)
    text = "<p>Meter in the cellar of the house stands at {} today"
    for number in range(9):
        old = before(text.format(100 + number))
        assert errors.looks_like(HOST, page(f"p{number}", text.format(200 + number)), old) is None


def test_a_redirect_to_where_made_up_urls_lead_is_no_move() -> None:
    def moved(target: str) -> Page:
        answer = Page("http://h/p1", status=302)
        answer.links = [Link(target, type=REDIRECT)]
        return answer

    errors = error_pages()
    assert errors.looks_like(HOST, moved("http://sso/login?next=1"), before("x")) is WAIT
    probed(errors, moved("http://sso/login?next=2"))
    seen = errors.looks_like(HOST, moved("http://sso/login?next=1"), before("x"))
    assert seen is Observation.MOVED_TO_ONE
    assert errors.looks_like(HOST, moved("http://h/p2"), before("x")) is None
