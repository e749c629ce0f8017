"""larmspider/plugins/render/same_origin.py: the Fetch Standard's rules, by tables. Chromium's part
of them is tried in test_render_trust.py."""

from __future__ import annotations

import pytest
from scrapy.http import Headers

from larmspider.fetch.sites.lookup import origin_of
from larmspider.plugins.render.same_origin import ALLOW_ORIGIN, Asking, answer_headers

APP, API, EVIL = "http://app.example", "https://api.example", "http://evil.example"
PAGE = origin_of(APP)
ALLOWED = frozenset({("https", "api.example", 443)})
JSON, SCRIPT = {"Content-Type": "application/json"}, {"Content-Type": "text/javascript"}


def asking(
    first: str, *then: str, kind: str = "fetch", origin: str = "", own: bool = True
) -> Asking:
    """A request of a page of APP, and where it was redirected to."""
    found = Asking(f"{first}/a", PAGE, ALLOWED, kind, origin, by_page=own)
    for url in then:
        found.redirected(f"{url}/b")
    return found


@pytest.mark.parametrize(
    "hops, origin, own, carries",
    [
        ([APP], "", True, True),
        ([APP], APP, True, True),  # a module
        ([APP], "null", True, False),  # a data: worker, a sandboxed frame
        ([APP], "", False, False),  # a frame of another origin
        ([f"{APP}:80"], "", True, True),
        ([f"{APP}."], "", True, True),
        ([f"{APP}:8080"], "", True, False),
        (["https://app.example"], "", True, False),
        (["http://app.example.evil.example"], "", True, False),
        ([f"{APP}@evil.example"], "", True, False),
        (["http://evil.example\\@app.example"], "", True, False),
        ([EVIL], APP, True, False),
        ([APP, APP], "", True, True),
        ([APP, EVIL], "", True, False),
        ([APP, EVIL, APP], "", True, False),  # tainted: a stranger has chosen the URL
        ([EVIL, APP], APP, True, False),
        ([EVIL, EVIL, APP], "", True, False),
        ([API], APP, True, True),
        ([API], "", True, True),
        ([API], EVIL, False, False),
        ([API, API], APP, True, True),
        ([APP, API], "", True, True),
        ([API, APP], APP, True, False),
        ([API, EVIL], APP, True, False),
        ([API, EVIL, API], APP, True, False),
        ([APP, ""], "", True, False),
    ],
)
def test_who_is_asked_with_credentials(
    hops: list[str], origin: str, own: bool, carries: bool
) -> None:
    assert asking(*hops, origin=origin, own=own).with_credentials is carries


def test_a_page_without_an_origin_has_no_credentials() -> None:
    assert not Asking("file:///etc/passwd", None).with_credentials
    assert not Asking(f"{APP}/a", None).with_credentials


@pytest.mark.parametrize(
    "hops, origin, named, seen",
    [
        # Chromium checks: what the server says goes to it as it is
        ([EVIL], APP, None, EVIL),  # it matches no asker: who asks is of another origin
        ([EVIL], APP, "*", "*"),
        ([EVIL], APP, APP, APP),
        ([EVIL], APP, API, API),
        ([EVIL], "null", None, EVIL),
        ([EVIL], "null", "null", "null"),
        ([APP], "null", None, APP),  # a sandboxed frame of the page
        ([APP], "", None, APP),
        ([EVIL, EVIL], APP, None, EVIL),
        # Chromium sees an answer of the asker's own origin, which a redirect brought from another
        ([APP, EVIL], "", None, None),
        ([APP, EVIL], "", "*", "*"),
        ([APP, EVIL], "", APP, APP),
        ([APP, EVIL], "", EVIL, None),
        ([APP, EVIL], "", "null", None),
        ([APP, EVIL, APP], "", APP, None),
        ([APP, EVIL, APP], "", "null", "null"),
        ([APP, EVIL, APP], "", None, None),
        # Chromium checks an answer that comes from elsewhere than it believes
        ([EVIL, APP], APP, None, EVIL),
        ([EVIL, APP], APP, APP, EVIL),
        ([EVIL, APP], APP, "*", "*"),
        ([EVIL, APP], APP, "null", APP),
        ([EVIL, API], APP, APP, EVIL),
        ([EVIL, API], APP, "null", APP),
    ],
)
def test_who_reads_an_answer(
    hops: list[str], origin: str, named: str | None, seen: str | None
) -> None:
    """``seen``: the Access-Control-Allow-Origin for Chromium; None: the answer is withheld."""
    headers = Headers(JSON if named is None else JSON | {"Access-Control-Allow-Origin": named})
    found = answer_headers(asking(*hops, origin=origin), headers)
    assert (None if found is None else found[ALLOW_ORIGIN]) == seen


def test_two_names_are_none() -> None:
    headers = Headers({"Access-Control-Allow-Origin": [APP, "*"]})
    found = answer_headers(asking(EVIL, origin=APP), headers)
    assert found == {ALLOW_ORIGIN: f"{APP}, *"}


@pytest.mark.parametrize("headers, is_run", [(SCRIPT, True), (JSON, False), ({}, False)])
def test_a_script_of_another_origin_runs_after_a_redirect(
    headers: dict[str, str], is_run: bool
) -> None:
    """As <script src> does; but a JSON module would read what is no script."""
    found = answer_headers(asking(APP, EVIL, kind="script"), Headers(headers))
    assert (found is not None) is is_run


@pytest.mark.parametrize(
    "hops, origin, sent",
    [
        ([APP], "", ""),
        ([APP], APP, ""),
        ([APP], "null", "null"),
        ([EVIL], "", ""),  # a script without crossorigin
        ([EVIL], APP, APP),
        ([APP, EVIL], "", APP),
        ([APP, EVIL, APP], "", "null"),
        ([EVIL, APP], APP, "null"),
    ],
)
def test_the_origin_that_a_server_is_told(hops: list[str], origin: str, sent: str) -> None:
    """Servers that allow some origins alone answer by it."""
    assert asking(*hops, origin=origin).sent_origin == sent


def test_a_script_is_kept_for_those_who_would_get_it_too() -> None:
    """Not one that credentials have opened for pages of another origin, nor one without for it."""
    own = asking(EVIL, kind="script")
    other = Asking(f"{EVIL}/a", origin_of(EVIL), kind="script")
    assert other.with_credentials
    assert own.shares != other.shares
    assert own.shares == Asking(f"{EVIL}/a", origin_of("http://third.example")).shares
    with_api, without = asking(API, kind="script"), Asking(f"{API}/a", PAGE, kind="script")
    second = Asking(f"{API}/a", origin_of(EVIL), ALLOWED, "script")
    assert len({with_api.shares, without.shares, second.shares}) == 3
    assert asking(EVIL, origin=APP).shares != asking(EVIL).shares, "it may depend on who asks"
