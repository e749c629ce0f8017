"""Why little of a host is stored: a sentence for each reason, and none for a small whole host."""

import pytest

from larmspider.frontier.shortfall import FEW, LOOKED, NOTE, Evidence, Shortfall, shortfalls
from larmspider.items import REDIRECT, Link, Page
from tests.support.frontier.memory_backend import MemoryBackend

FORM = b"<form><input type=password name=p></form>"
SHELL = b"<div id=app></div><script src=app.js></script>"


def page(path="/", links=(), *, mime="text/html", text="Some words of a page", **fields):
    return Page(f"http://wiki{path}", mime=mime, text=text, links=list(links), **fields)


def link(url, rejected_by=None, kind=0):
    return Link(url, normalized=url, type=kind, rejected_by=rejected_by)


def sentences(*pages, robots=0, restrict=False, stored=1):
    watch = Shortfall(MemoryBackend())
    for one in pages:
        watch.saw("wiki:80", one)
    for _ in range(robots):
        watch.refused_by_robots("wiki:80")
    watch.save()
    note = watch._backend.note(NOTE.format(host="wiki:80"))
    return list(shortfalls([("wiki:80", stored, note)], restrict=restrict))


CASES = {
    "nofollow on all pages": (
        [page(links=[link("http://wiki/a", "nofollow")], nofollow=True)],
        "wiki says nofollow on all 1 pages; LARM_HOST_RULES wiki nofollow: ignore follows them",
    ),
    "nofollow on all links": (
        [page(links=[link("http://wiki/a", "nofollow"), link("http://wiki/b", "nofollow")])],
        "wiki says nofollow on all 2 links to itself;"
        " LARM_HOST_RULES wiki nofollow: ignore follows them",
    ),
    "robots none": (
        [page(links=[link("http://wiki/a", "nofollow")], nofollow=True, noindex=True)],
        "wiki says nofollow on all 1 pages; LARM_HOST_RULES wiki nofollow: ignore follows them",
    ),
    "noindex": (
        [page("/a", [link("http://wiki/b")], noindex=True), page("/b", noindex=True)],
        "wiki says noindex on all 2 pages: stored, and not found by the search;"
        " no setting changes that, the host's owner does",
    ),
    "canonical": (
        [page("/a", canonical="http://other/a")],
        "wiki names another canonical URL on all 1 pages, such as http://other/a;"
        " start there as well",
    ),
    "login forms": (
        [page("/a", [link("http://wiki/help")], body=FORM)],
        "wiki asks for a login on all 1 answers;"
        " login or auth in LARM_SITES_FILE signs in (docs/sites.md)",
    ),
    "redirects to a login": (
        [
            page("/", [link("http://wiki/user/login", kind=REDIRECT)], status=302, text=""),
            page("/user/login", body=FORM),
        ],
        "wiki asks for a login on all 2 answers;"
        " login or auth in LARM_SITES_FILE signs in (docs/sites.md)",
    ),
    "shells": (
        [page(text="Loading ...", body=SHELL)],
        "wiki needs JavaScript on all 1 pages, which have no text and no links without it;"
        " render = true in LARM_SITES_FILE runs it",
    ),
    "redirect out of scope": (
        [page("/", [link("http://new/", "scope", REDIRECT)], status=301, text="")],
        "wiki redirects all 1 URLs to http://new/, which is out of scope;"
        " start there, or take that host into restrict (LARM_RESTRICT)",
    ),
    "errors": (
        [page("/", status=404), page("/a", status=404)],
        "wiki answers 404 to all 2 URLs; look at the start URL",
    ),
    "forbidden": (
        [page("/", status=403)],
        "wiki answers 403 to all 1 URLs;"
        " auth, cookies or login in LARM_SITES_FILE may be needed (docs/sites.md)",
    ),
    "type": (
        [page("/", mime="application/x-thing", text="")],
        "wiki sends all 1 pages as application/x-thing, which nothing reads;"
        " the server's Content-Type or another start page changes that",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_a_reason_is_said_in_one_line(case):
    pages, sentence = CASES[case]
    assert sentences(*pages) == [sentence]


def test_a_restrict_that_matches_the_seed_alone_is_named():
    found = sentences(page("/", [link("http://wiki/a", "scope")]), restrict=True)
    assert found == [
        "restrict (LARM_RESTRICT) matches 1 page of wiki and none of the 1 link to the same host,"
        " such as http://wiki/a; widen restrict to follow them"
    ]


def test_nobody_is_told_to_ignore_a_robots_txt_without_owning_the_hosts():
    (found,) = sentences(page(), robots=7)
    assert found.startswith("robots.txt of wiki disallows 7 URLs")
    assert "only where you own all hosts of the crawl" in found


@pytest.mark.parametrize(
    "pages",
    [
        [page("/", [link("http://wiki/a")]), page("/a", [link("http://wiki/", "visited")])],
        [page("/", [link("http://elsewhere/", "scope"), link("http://wiki/a")]), page("/a")],
        [page("/", [link("http://wiki/a"), link("http://wiki/b", "nofollow")]), page("/a")],
        [page("/", [link("http://wiki/edit", "known-paths")])],
        [page("/")],
        [page(f"/{n}", [link(f"http://wiki/{m}") for m in range(9)], body=FORM) for n in range(9)],
        [page(f"/{n}", [link("http://wiki/")]) for n in range(9)] + [page("/x", body=FORM)],
    ],
)
def test_a_small_host_that_is_stored_whole_is_not_named(pages):
    assert sentences(*pages) == []


def test_a_host_with_many_pages_is_not_named():
    pages, _ = CASES["nofollow on all pages"]
    assert sentences(*pages, stored=FEW + 1) == []


def test_nothing_is_counted_after_the_first_answers():
    watch = Shortfall(MemoryBackend())
    for _ in range(3 * LOOKED):
        watch.saw("wiki:80", page())
    watch.save()
    note = watch._backend.note(NOTE.format(host="wiki:80"))
    assert Evidence.unpack(note).pages == LOOKED


def test_what_was_seen_goes_on_in_the_next_run():
    backend = MemoryBackend()
    for _ in range(2):
        watch = Shortfall(backend)
        watch.saw("wiki:80", page(status=404))
        watch.save()
    assert Evidence.unpack(backend.note(NOTE.format(host="wiki:80"))).errors == {404: 2}
