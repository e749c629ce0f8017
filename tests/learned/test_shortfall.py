"""Why little of a host is stored: a sentence for each reason, and none for a small whole host."""

import pytest

from larmspider.frontier.part import NotesMemory
from larmspider.items import REDIRECT, Link, Page
from larmspider.learned.shortfall import FEW, LOOKED, NOTE, Evidence, Shortfall, shortfalls
from tests.support.frontier.memory_backend import MemoryBackend

FORM = b"<form><input type=password name=p></form>"
SHELL = b"<div id=app></div><script src=app.js></script>"


def page(path="/", links=(), *, mime="text/html", text="Some words of a page", **fields):
    return Page(f"http://wiki{path}", mime=mime, text=text, links=list(links), **fields)


def link(url, rejected_by=None, kind=0):
    return Link(url, normalized=url, type=kind, rejected_by=rejected_by)


def sentences(*pages, robots=0, restrict=False, stored=1):
    backend = MemoryBackend()
    watch = Shortfall(NotesMemory(backend))
    for one in pages:
        watch.saw("wiki:80", one)
    for _ in range(robots):
        watch.refused_by_robots("wiki:80")
    watch.save()
    note = backend.note(NOTE.format(host="wiki:80"))
    return list(shortfalls([("wiki:80", stored, note)], restrict=restrict))


CASES = {
    "nofollow on all pages": (
        [page(links=[link("http://wiki/a", "nofollow")], nofollow=True)],
        "wiki says nofollow on its only page; LARM_HOST_RULES wiki nofollow: ignore follows them",
    ),
    "nofollow on all links": (
        [page(links=[link("http://wiki/a", "nofollow"), link("http://wiki/b", "nofollow")])],
        "wiki says nofollow on all 2 links to itself;"
        " LARM_HOST_RULES wiki nofollow: ignore follows them",
    ),
    "nofollow on most links": (
        [
            page("/", [link(f"http://wiki/{n}", "nofollow") for n in range(6)]),
            page("/b", [link("http://wiki/a"), link("http://wiki/c", "nofollow")]),
        ],
        "wiki says nofollow on 7 of 8 links to itself;"
        " LARM_HOST_RULES wiki nofollow: ignore follows them",
    ),
    "robots none": (
        [page(links=[link("http://wiki/a", "nofollow")], nofollow=True, noindex=True)],
        "wiki says nofollow on its only page; LARM_HOST_RULES wiki nofollow: ignore follows them",
    ),
    "noindex": (
        [page("/a", [link("http://wiki/b")], noindex=True), page("/b", noindex=True)],
        "wiki says noindex on all 2 pages: stored, and not found by the search;"
        " no setting changes that, the host's owner does",
    ),
    "canonical": (
        [page("/a", canonical="http://other/a")],
        "wiki names another canonical URL on its only page, such as http://other/a;"
        " start there as well",
    ),
    "login forms": (
        [page("/a", [link("http://wiki/help")], body=FORM)],
        "wiki asks for a login on its only answer;"
        " login or auth in LARM_SITES_FILE signs in (docs/sign-in.md)",
    ),
    "redirects to a login": (
        [
            page("/", [link("http://wiki/user/login", kind=REDIRECT)], status=302, text=""),
            page("/user/login", body=FORM),
        ],
        "wiki asks for a login on all 2 answers;"
        " login or auth in LARM_SITES_FILE signs in (docs/sign-in.md)",
    ),
    "shells": (
        [page(text="Loading ...", body=SHELL)],
        "wiki needs JavaScript on its only page: without it there is no text and no link;"
        " render = true in LARM_SITES_FILE runs it",
    ),
    "redirect out of scope": (
        [page("/", [link("http://new/", "scope", REDIRECT)], status=301, text="")],
        "wiki redirects its only URL to http://new/, which is out of scope;"
        " start there, or add that host to restrict (LARM_RESTRICT)",
    ),
    "errors": (
        [page("/", status=404), page("/a", status=404)],
        "wiki answers 404 to all 2 URLs; look at the start URL",
    ),
    "forbidden": (
        [page("/", status=403)],
        "wiki answers 403 to its only URL;"
        " auth, cookies or login in LARM_SITES_FILE may be needed (docs/sign-in.md)",
    ),
    "a login at another host": (
        [page("/", [link("http://sso/adfs/ls/?wa=x", "scope", REDIRECT)], status=302, text="")],
        "wiki asks for a login on its only answer;"
        " login or auth in LARM_SITES_FILE signs in (docs/sign-in.md)",
    ),
    "a form for a login at another host": (
        [page(text="", body=b"<form action=http://sso/><input name='SAMLRequest' value=x></form>")],
        "wiki asks for a login on its only answer;"
        " login or auth in LARM_SITES_FILE signs in (docs/sign-in.md)",
    ),
    "a choice of logins": (
        [
            page("/", [link("http://wiki/auth/github"), link("http://wiki/auth/saml")]),
            *(
                page(f"/auth/{one}", [link(f"http://{one}/", "scope", REDIRECT)], status=302)
                for one in ("github", "saml")
            ),
        ],
        "wiki asks for a login on the first page, which has few links;"
        " login or auth in LARM_SITES_FILE signs in (docs/sign-in.md)",
    ),
    "a long login": (
        [
            page("/auth", [link("http://wiki/help")], text="Words " * 200, body=FORM),
            *(page(f"/help/{n}") for n in range(4)),
        ],
        "wiki asks for a login on the first page, which has few links;"
        " login or auth in LARM_SITES_FILE signs in (docs/sign-in.md)",
    ),
    "a shell with links": (
        [
            page("/", [link("http://wiki/imprint")], text="Imprint", body=SHELL),
            *(page(f"/imprint/{n}") for n in range(4)),
        ],
        "wiki needs JavaScript on 1 of 5 pages: without it there is no text and no link;"
        " render = true in LARM_SITES_FILE runs it",
    ),
    "a shell with a long hint": (
        [page(text="Words " * 50, body=b"<noscript>" + b"Words " * 50 + b"</noscript>" + SHELL)],
        "wiki needs JavaScript on its only page: without it there is no text and no link;"
        " render = true in LARM_SITES_FILE runs it",
    ),
    "links by scripts": (
        [page(body=b"<a href='javascript:go(1)'>1</a>"), page("/b", body=b"<a href='#/b'>2</a>")],
        "wiki has no links but by JavaScript on all 2 pages;"
        " a sitemap or more start URLs name its pages",
    ),
    "a consent": (
        [
            page("/", [link("http://wiki/cookies", kind=REDIRECT)], status=302, text=""),
            page("/cookies", body=b"<form method=post><button>Accept</button></form>"),
        ],
        "wiki has a form and no links on its only page; a crawl fills in none:"
        " cookies or login in LARM_SITES_FILE (docs/sign-in.md), or start behind it",
    ),
    "nothing": (
        [page(text="", body=b" \n")],
        "wiki answers its only page without a word (empty bodies);"
        " look at the start URL in a browser",
    ),
    "links to other hosts": (
        [page(links=[link("http://other/a", "scope"), link("https://wiki/b", "scope")])],
        "wiki has no link to itself, and 2 links out of scope, such as http://other/a;"
        " start there as well, or add that host to restrict (LARM_RESTRICT)",
    ),
    "filters": (
        [page(links=[link(f"http://wiki/?edit={n}", "known-paths") for n in range(3)])],
        "wiki has 3 links to itself, such as http://wiki/?edit=0, and no link passes the filters"
        " (known-paths); scrapy explain URL says why",
    ),
    "plain text": (
        [page(mime="text/plain", body=b"<html><a href=/b>b</a>")],
        "wiki sends its only page of HTML as text/plain, so that no link is read;"
        " the server's Content-Type changes that",
    ),
    "redirects": (
        [page("/", [link("http://wiki/", "visited", REDIRECT)], status=302, text="")],
        "wiki redirects 1 URL and shows no page; if it waits for a cookie,"
        " cookies or login in LARM_SITES_FILE has it (docs/sign-in.md)",
    ),
    "forbidden but for the first page": (
        [
            page(links=[link(f"http://wiki/{n}") for n in range(2)]),
            page("/0", status=403),
            page("/1", status=403),
        ],
        "wiki answers 403 to 2 of 3 URLs;"
        " auth, cookies or login in LARM_SITES_FILE may be needed (docs/sign-in.md)",
    ),
    "type": (
        [page("/", mime="application/x-thing", text="")],
        "wiki sends its only page as application/x-thing, which nothing reads;"
        " the server's Content-Type or another start page changes that",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_a_reason_is_said_in_one_line(case):
    pages, sentence = CASES[case]
    assert sentences(*pages) == [sentence]


@pytest.mark.parametrize(
    ("kind", "of_robots", "sentence"),
    [
        ("dns", False, "wiki gave no answer: its name has no address; look at the name in the"),
        (
            "refused",
            False,
            "wiki gave no answer: connection refused; look at the port of the start",
        ),
        ("http-503", True, "robots.txt of wiki failed: HTTP 503, so that no URL may be fetched"),
        ("timeout", True, "robots.txt of wiki failed: timeout, so that no URL may be fetched"),
    ],
)
def test_a_host_that_does_not_answer_is_named(kind, of_robots, sentence):
    backend = MemoryBackend()
    watch = Shortfall(NotesMemory(backend))
    (watch.robots_failed if of_robots else watch.gave_up)("wiki:80", kind)
    watch.save()
    note = backend.note(NOTE.format(host="wiki:80"))
    (found,) = shortfalls([("wiki:80", 0, note)])
    assert found.startswith(sentence)
    watch.saw("wiki:80", page())
    watch.save()
    note = backend.note(NOTE.format(host="wiki:80"))
    assert list(shortfalls([("wiki:80", 1, note)])) == []


def test_a_restrict_that_matches_the_seed_alone_is_named():
    found = sentences(page("/", [link("http://wiki/a", "scope")]), restrict=True)
    assert found == [
        "restrict (LARM_RESTRICT) matches 1 page of wiki and none of the 1 link to the same host,"
        " such as http://wiki/a; widen restrict to follow them"
    ]


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        ({"links": [link("http://wiki/login", kind=REDIRECT)], "status": 302}, "asks for a login"),
        ({"body": FORM}, "asks for a login"),
        ({"body": SHELL, "text": ""}, "needs JavaScript"),
    ],
)
def test_a_long_list_whose_links_all_lead_to_a_wall_is_a_shortfall(answer, sentence):
    start = page("/", [link(f"http://wiki/{n}") for n in range(200)])
    walls = [page(f"/{n}", **answer) for n in range(50)]
    (found,) = sentences(start, *walls, stored=202)
    assert found.startswith(f"wiki {sentence} on {LOOKED - 1} of {LOOKED} ")
    pages = [page(f"/p{n}") for n in range(5)]
    assert sentences(start, *pages, *walls, stored=202) == []


def test_a_long_list_of_pages_with_a_password_field_and_links_is_none():
    start = page("/", [link(f"http://wiki/{n}") for n in range(200)])
    others = [link(f"http://wiki/{n}", "visited") for n in range(9)]
    pages = [page(f"/{n}", others, body=FORM) for n in range(50)]
    assert sentences(start, *pages, stored=202) == []


def test_nobody_is_told_to_ignore_a_robots_txt_without_owning_the_hosts():
    (found,) = sentences(page(), robots=7)
    assert found.startswith("robots.txt of wiki disallows 7 found URLs;")
    assert "only where you own all hosts of the crawl" in found


@pytest.mark.parametrize(
    "pages",
    [
        [page("/", [link("http://wiki/a")]), page("/a", [link("http://wiki/", "visited")])],
        [page("/", [link("http://elsewhere/", "scope"), link("http://wiki/a")]), page("/a")],
        [page("/", [link("http://wiki/a"), link("http://wiki/b", "nofollow")]), page("/a")],
        [page("/", [link("http://wiki/edit", "known-paths")])],
        [page("/")],
        [page("/", [link("http://wiki/a")]), page("/a", [link("http://wiki/login?next=/a")])],
        [page("/", mime="application/pdf", body=b"%PDF-1.4 <form")],
        [page("/", mime="video/mp4", text="", file_bytes=1 << 30)],
        [page("/", body=b"<form action=/search>"), page("/a", [link("http://wiki/b")])],
        [page("/", [link("http://wiki/a")]), page("/a"), page("/b", status=404), page("/c")],
        [page("/", [link("http://wiki/a")], body=b"<a href='javascript:void(0)'>Menu</a>")],
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
    backend = MemoryBackend()
    watch = Shortfall(NotesMemory(backend))
    for _ in range(3 * LOOKED):
        watch.saw("wiki:80", page())
    watch.save()
    note = backend.note(NOTE.format(host="wiki:80"))
    assert Evidence.unpack(note).pages == LOOKED


def test_what_was_seen_goes_on_in_the_next_run():
    backend = MemoryBackend()
    for _ in range(2):
        watch = Shortfall(NotesMemory(backend))
        watch.saw("wiki:80", page(status=404))
        watch.save()
    assert Evidence.unpack(backend.note(NOTE.format(host="wiki:80"))).errors == {404: 2}
