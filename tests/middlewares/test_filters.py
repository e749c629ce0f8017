"""The rules of the filters, one by one, without Scrapy around them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from typing import ClassVar

import pytest
from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.exceptions import NotConfigured
from scrapy.settings import Settings

from larmspider.errors import ConfigError
from larmspider.extraction.pages.html import extract
from larmspider.items import ORDINARY, REDIRECT, Link, Page
from larmspider.middlewares.depth import DepthFilter
from larmspider.middlewares.known_paths import KnownPathsFilter
from larmspider.middlewares.language import LanguageFilter
from larmspider.middlewares.length import LengthFilter
from larmspider.middlewares.nofollow import NofollowFilter
from larmspider.middlewares.normalize import NormalizeFilter
from larmspider.middlewares.scope import ScopeFilter
from larmspider.middlewares.traps import TrapsFilter
from larmspider.middlewares.url_filter import UrlFilter
from larmspider.middlewares.visited import SeenFilter, VisitedFilter
from larmspider.urls.normalizer import LONGEST_CACHED

DEFAULTS = {
    "DOWNLOAD_DELAY": 0,
    "CONCURRENT_REQUESTS_PER_DOMAIN": 1,
    "LARM_HOST_MAX_PAGES": 0,
}
TODAY = date(2026, 11, 20)


def traps() -> TrapsFilter:
    return TrapsFilter(depth=20, repeats=3, horizon=12, today=lambda: TODAY)


class TestLength:
    def test_rejects_by_the_url_that_would_be_fetched(self) -> None:
        """The canonical form may be shorter: it is the original that goes over the wire."""
        link = Link("http://h/" + "a/../" * 100, normalized="http://h/")
        assert "509 characters" in (LengthFilter(508).reject_link(link, Page("http://h/")) or "")
        assert LengthFilter(509).reject_link(link, Page("http://h/")) is None

    def test_zero_is_no_limit(self) -> None:
        """As URLLENGTH_LIMIT in Scrapy."""
        assert LengthFilter(0).reject_reason("http://h/" + "a" * 100_000) is None


class TestScope:
    def test_restrict_must_match_the_whole_url(self) -> None:
        """As LARM's did: a match in the middle is none."""
        scope = ScopeFilter.from_settings(Settings({"LARM_RESTRICT": "http://wiki/docs/.*"}))
        assert scope.reject_reason("http://wiki/docs/a") is None
        assert "does not match restrict" in (
            scope.reject_reason("http://x/?http://wiki/docs/") or ""
        )

    def test_restrict_in_upper_case_matches_the_lower_case_path(self) -> None:
        """A user may copy it from the browser: LARM compiled its expression for any case."""
        scope = ScopeFilter.from_settings(Settings({"LARM_RESTRICT": "http://wiki/Docs/.*"}))
        assert scope.reject_reason("http://wiki/docs/a") is None

    @pytest.mark.parametrize(
        ("url", "inside"),
        [
            ("http://wiki/a", True),
            ("https://wiki/a", True),
            ("http://wiki:8080/", False),
            ("http://sub.wiki/", False),
            ("http://wiki.evil/", False),
            ("http://h:8000/", True),
            ("http://h/", False),
        ],
    )
    def test_default_is_the_seeds_hosts_and_ports(self, url: str, inside: bool) -> None:
        """http and https alike, other ports and subdomains not."""
        seeds = "http://wiki/start HTTP://H:8000/"
        scope = ScopeFilter.from_settings(Settings({"LARM_START": seeds}))
        assert (scope.reject_reason(url) is None) is inside

    @pytest.mark.parametrize(
        "given",
        [
            "http://wiki/a/.* .*\\.{1,3}zip",
            ["http://wiki/a/.*", ".*\\.{1,3}zip"],
            '["http://wiki/a/.*", ".*\\\\.{1,3}zip"]',
        ],
    )
    def test_exclude_takes_out_of_the_scope(self, given: object) -> None:
        """Whole URLs, in any case, of any of several expressions; also of the hosts of seeds."""
        for own in ({"LARM_RESTRICT": "http://wiki/.*"}, {"LARM_START": "http://wiki/"}):
            scope = ScopeFilter.from_settings(Settings(own | {"LARM_EXCLUDE": given}))
            assert scope.reject_reason("http://wiki/b") is None
            assert scope.reject_reason("http://wiki/b/a/") is None
            assert scope.reject_reason("http://wiki/A/c") == "matches exclude http://wiki/a/.*"
            assert scope.reject_reason("http://wiki/c.zip") == "matches exclude .*\\.{1,3}zip"

    @pytest.mark.parametrize("given", ["http://wiki/(a", ["a b"], [1], 7, {"a": 1.5}])
    def test_exclude_that_cannot_be(self, given: object) -> None:
        """The error names the setting, or the expression and its place."""
        settings = Settings({"LARM_START": "http://wiki/", "LARM_EXCLUDE": given})
        with pytest.raises(ConfigError, match=r"^(LARM_EXCLUDE=|exclude\[0\]: pattern)"):
            ScopeFilter.from_settings(settings)

    def test_unknown_scope_is_an_error(self) -> None:
        """Neither restrict nor seeds: better nothing than the whole web."""
        with pytest.raises(ConfigError, match="LARM_RESTRICT"):
            ScopeFilter.from_settings(Settings())


class TestLinksToLogins:
    @staticmethod
    def followed(*pages: tuple[str, list[Link]]) -> list[str]:
        """The URLs that are followed of pages with these links, read in turn."""
        url_filter, found = KnownPathsFilter([]), []
        for url, links in pages:
            for link in links:
                link.normalized, link.exact = link.url.lower(), link.url
            reasons = url_filter.reject_links(links, Page(url, normalized=url))
            found += [one.url for one, why in zip(links, reasons, strict=True) if why is None]
        return found

    @pytest.mark.parametrize(
        "login",
        [
            "http://h/Login?next=/page/{}",
            "http://h/accounts/google/login/?process=login&next=/page/{}",
            "http://h/oauth/authorize?client_id=x&state={}&redirect_uri=http://h/page/{}",
            "http://h/index.php?title=Special:UserLogin&returnto=page{}",
            "http://h/page/{}?action=login",
        ],
    )
    def test_a_login_that_each_page_links_to_is_followed_once(self, login: str) -> None:
        pages = [
            (f"http://h/page/{n}", [Link(login.format(n, n)), Link(f"http://h/page/{n + 1}")])
            for n in range(9)
        ]
        found = self.followed(*pages)
        assert len([url for url in found if "/page/" not in url or "action" in url]) == 1
        assert len(found) == 10

    def test_the_way_back_is_left_out(self) -> None:
        assert self.followed(("http://h/a", [Link("http://h/Login?next=/a")])) == ["http://h/Login"]

    def test_a_form_that_is_not_shown_without_a_way_back_is_followed_with_one(self) -> None:
        link = Link("http://h/login?next=/", type=REDIRECT)
        assert self.followed(("http://h/login", [link])) == ["http://h/login?next=/"]

    def test_pages_of_redirects_to_a_login_give_one(self) -> None:
        pages = [
            (f"http://h/{n}", [Link(f"http://h/login?next=/{n}", type=REDIRECT)]) for n in range(5)
        ]
        assert self.followed(*pages) == ["http://h/login"]

    def test_pages_that_depend_on_such_a_parameter_are_all_followed(self) -> None:
        links = [f"http://h/{path}?next={n}" for n in range(3) for path in ("case", "list", "docs")]
        assert self.followed(("http://h/", [Link(url) for url in links])) == links

    def test_a_link_that_is_left_out_says_why(self) -> None:
        link = Link("http://h/login?next=/a", normalized="http://h/login?next=/a")
        reason = KnownPathsFilter([]).reject_link(link, Page("http://h/a"))
        assert reason == "leads to a login form, which is fetched once, as http://h/login"
        assert link.url == "http://h/login?next=/a"


class TestKnownPaths:
    @pytest.mark.parametrize(
        "url",
        [
            "http://h/files/?C=N;O=D",
            "http://h/files/?C=M&O=A",
            "http://h/files/?c=s;o=a",
            "http://h/files/?N=D",
            "http://h/icons/folder.gif",
            "http://h/server-status",
            "http://wiki/index.php?title=x&action=edit",
            "http://wiki/doku.php?id=x&do=revisions",
            "http://h/_vti_bin/owssvr.dll",
            "http://h/user/logout",
            "http://h/wikis/wik/wi/w/Logout.php?back=/",
            "http://h/logout/",
            "http://h/?logout",
            "http://h/ucp.php?mode=logout&sid=1",
            "http://blog/post/?share=facebook",
            "http://blog/post/?a=b&print=1",
            "http://h/app?action=delete&id=3",
            "http://domino/db.nsf/0?deletedocument",
            "http://blog/post/?replytocom=7",
            "file:///s/~$Bericht.docx",
            "http://h/s/~%24bericht.docx?download=1",
            "file:///s/.~lock.Plan.odt%23",
            "file:///s/._Bericht.docx",
            "file:///s/~WRL0001.tmp",
            "file:///s/.goutputstream-X1Y2Z3",
            "file:///s/.fuse_hidden0000123400000001",
            "file:///s/.notes.txt.swp",
            "file:///s/db.laccdb",
            "file:///s/plan.DWL2",
            "file:///s/.DS_Store",
            "file:///s/Icon%0D",
            "file:///s/Thumbs.db",
            "file:///s/Thumbs.db:encryptable",
            "file:///s/ehthumbs_vista.db",
            "http://h/share/desktop.ini",
            "file:///s/__MACOSX/a.txt",
            "file:///s/.Trash-1000/files/a.txt",
            "file:///s/$RECYCLE.BIN/S-1-5/$RA.docx",
            "http://h/s/%24recycle.bin/a.docx",
            "file:///s/System%20Volume%20Information/x",
            "file:///s/lost+found/%2312",
            "file:///s/@eaDir/a.jpg/x",
            "file:///s/%23recycle/a.docx",
        ],
    )
    def test_packaged_list_rejects(self, url: str) -> None:
        """Views without a document of their own, and links that change something."""
        assert KnownPathsFilter.from_settings(Settings()).reject_reason(url) is not None

    @pytest.mark.parametrize(
        "url",
        [
            "http://h/",
            "http://h/files/",
            "http://h/search?c=name&o=desc",
            "http://h/docs/icons/list.html",
            "http://h/logout-procedure.html",
            "http://h/wiki/Logout",
            "http://h/w/wiki/help/logout",
            "http://h/index.php?title=Logout",
            "http://h/logout/how-it-works",
            "http://h/paper?print=A4",
            "http://h/fund?share=B12",
            "http://h/handbook/login/",
            "http://h/edit/",
            "http://h/?action=view",
            "http://h/actions/editorial",
            "file:///s/~notiz.txt",
            "file:///s/~joe/plan.txt",
            "file:///s/~%20plan.docx",
            "file:///s/$Plan.docx",
            "file:///s/..punkte..txt",
            "file:///s/.profile",
            "file:///s/%231%20Plan.txt",
            "file:///s/trash/a.txt",
            "file:///s/recycling/a.txt",
            "file:///s/notes.tmp",
            "file:///s/thumbs.db.txt",
            "http://h/wiki/Thumbs.db",
            "http://h/wiki/Desktop.ini",
            "http://h/lost-and-found/x",
        ],
    )
    def test_packaged_list_lets_documents_pass(self, url: str) -> None:
        """Documents that only look alike."""
        assert KnownPathsFilter.from_settings(Settings()).reject_reason(url) is None

    def test_hosts_are_patterns_of_the_whole_host(self) -> None:
        """With or without the port."""
        known = KnownPathsFilter.from_text("host *.ads.example\nhost old:8080\n", "x")
        assert known.reject_reason("http://a.ads.example/x") == "known host a.ads.example"
        assert known.reject_reason("http://a.ads.example:81/x") is not None
        assert known.reject_reason("http://old:8080/") is not None
        assert known.reject_reason("http://old/") is None
        assert known.reject_reason("http://ads.example.org/") is None

    def test_a_rule_has_an_exception(self) -> None:
        """Other rules ignore the exception."""
        known = KnownPathsFilter.from_text("url [?&]id=  except /commit/\nurl id=7$\n", "x")
        assert known.reject_reason("http://h/log?id=1") == "known path [?&]id=  except /commit/"
        assert known.reject_reason("http://h/commit/?id=1") is None
        assert known.reject_reason("http://h/commit/?id=7") == "known path id=7$"
        assert KnownPathsFilter.from_text("url except", "x").reject_reason("http://h/except")

    @pytest.mark.parametrize(
        "line",
        ["path /x", "url", "url ((", "host a b", "/x", "url /a except", "url except /a",
         "url /a except ((", "url (( except /a", "url /a except /b except /c"],
    )  # fmt: skip
    def test_bad_line_is_an_error_with_its_number(self, line: str) -> None:
        """The file is the user's: the error says which line, and what a line may be."""
        with pytest.raises(ConfigError, match=r"mine\.txt:3: "):
            KnownPathsFilter.from_text(f"# mine\nurl /ok\n{line}\n", "mine.txt")

    def test_missing_file_is_an_error(self) -> None:
        """It names the setting and the file."""
        with pytest.raises(ConfigError, match="LARM_KNOWN_PATHS_FILE=/none: No such file"):
            KnownPathsFilter.from_settings(Settings({"LARM_KNOWN_PATHS_FILE": "/none"}))


class TestTraps:
    @pytest.mark.parametrize(
        ("url", "reason"),
        [
            ("http://h/a/b/a/b/a/b/", "repeats 'a' 3 times"),
            ("http://h/x/x/x", "repeats 'x' 3 times"),
            ("http://h/" + "/".join(f"d{n}" for n in range(21)), "deeper than 20"),
            ("http://wiki/cal/2093-04/", "2093-04 is 797 months away"),
            ("http://wiki/2027-12/", "2027-12 is 13 months away"),
            ("http://wiki/events/2027/12/", "2027-12 is 13 months away"),
            ("http://wiki/cal?year=2093&month=4", "2093-04"),
            ("http://wiki/cal?month=209304", "2093-04"),
            ("http://wiki/cal?date=20930401", "2093-04"),
            ("http://wiki/calendar/1999/01/", "1999-01 is 334 months away"),
            ("http://wiki/?month=1999-01", "1999-01"),
        ],
    )
    def test_rejects(self, url: str, reason: str) -> None:
        """Each kind of trap."""
        assert reason in (traps().reject_reason(url) or "")

    @pytest.mark.parametrize(
        "url",
        [
            "http://h/",
            "http://h/a/b/a/b/",
            "http://h/10/10/10/10",
            "http://h/" + "/".join(f"d{n}" for n in range(20)),
            "http://h/" + "/".join(f"d{n}" for n in range(20)) + "/",
            "http://wiki/cal/2027-11/",
            "http://wiki/cal/2025-11/",
            "http://news/2009/05/party.html",
            "http://wiki/2027/12/",
            "http://h/forum/topic/2045/2",
            "http://h/docs/release/2100.1/notes.html",
            "http://h/room?start=210001",
            "http://h/report-1999-01.pdf",
            "http://h/ticket/205012",
            "http://h/report-2050.pdf",
            "http://h/v2030.13/",
            "http://h/id/120501234",
        ],
    )
    def test_lets_documents_pass(self, url: str) -> None:
        """Archives, tickets and versions are no calendars."""
        assert traps().reject_reason(url) is None

    def test_zero_turns_each_check_off(self) -> None:
        """0 is no limit."""
        off = TrapsFilter(0, 0, 0, today=lambda: TODAY)
        assert off.reject_reason("http://wiki/cal/2093-04/" + "x/" * 100) is None

    def test_a_long_path_is_no_work(self) -> None:
        """A path of 100,000 segments is rejected by its depth alone."""
        assert traps().reject_reason("http://h" + "/1" * 100_000) is not None


class TestVisited:
    def test_passes_once(self) -> None:
        """The second time it is known."""
        visited = VisitedFilter()
        assert [visited.reject_reason("http://h/") for _ in range(2)] == [None, "known"]

    def test_redirect_to_its_own_canonical_form_passes(self) -> None:
        """http://h/index.html -> http://h/ is one page; its content is only at the target."""
        visited = VisitedFilter()
        visited.reject_reason("http://h/")
        page = Page("http://h/index.html", normalized="http://h/")
        links = [
            Link("http://h/", "http://h/", REDIRECT),
            Link("http://h/", "http://h/"),
            Link("http://h/index.html", "http://h/", REDIRECT),
        ]
        loop = "redirect loop: http://h/index.html -> http://h/index.html"
        assert visited.reject_links(links, page) == [None, "known", loop]

    def test_one_redirect_of_a_page_to_itself_passes(self) -> None:
        """Else three on each page of one canonical form are 3**LARM_MAX_REDIRECTS fetches."""
        visited = VisitedFilter()
        visited.reject_reason("http://h/")
        page = Page("http://h/?sid=1", normalized="http://h/")
        links = [Link(f"http://h/?sid={n}", "http://h/", REDIRECT) for n in range(2, 5)]
        assert visited.reject_links(links, page) == [None, "known", "known"]

    def test_a_link_that_a_page_has_twice_passes_once(self) -> None:
        """Also where the memory is the frontier's, which meets a URL when it is queued."""
        visited = VisitedFilter(lambda urls: [False] * len(urls))
        links = [Link("http://h/a", "http://h/a"), Link("http://h/A", "http://h/a")]
        assert visited.reject_links(links, Page("http://h/")) == [None, "known"]


class TestSeen:
    @pytest.fixture
    def seen(self) -> SeenFilter:
        return SeenFilter(lambda urls: [url != "http://h/new" for url in urls])

    def test_what_the_memory_has_is_known(self, seen: SeenFilter) -> None:
        """Unknown links go on to the other filters."""
        links = [Link("http://h/A", "http://h/a"), Link("http://h/new", "http://h/new")]
        assert seen.reject_links(links, Page("http://h/")) == ["known", None]

    def test_redirects_and_nofollow_are_the_other_filters_matter(self, seen: SeenFilter) -> None:
        """A redirect may close a ring; a link marked nofollow is no vote for its page."""
        links = [Link("http://h/a", "http://h/a", REDIRECT), Link("http://h/a", "http://h/a")]
        assert seen.reject_links(links, Page("http://h/")) == [None, "known"]
        assert seen.reject_links(links, Page("http://h/", nofollow=True)) == [None, None]
        links[1].nofollow = True
        assert seen.reject_links(links, Page("http://h/")) == [None, None]

    def test_requests_pass(self, seen: SeenFilter) -> None:
        """They are few, and "visited" knows which of them may be repeated."""
        assert seen.reject_request(Request("http://h/a"), "http://h/a") is None


class TestDepth:
    def test_links_of_the_last_depth_are_rejected(self) -> None:
        """DEPTH_LIMIT 2: seeds, their links, and those pages' links."""
        depth = DepthFilter(2, 10)
        link = Link("http://h/", "http://h/")
        assert depth.reject_link(link, Page("http://h/", depth=1)) is None
        assert "DEPTH_LIMIT" in (depth.reject_link(link, Page("http://h/", depth=2)) or "")

    def test_zero_is_no_limit(self) -> None:
        """As in Scrapy."""
        link = Link("http://h/", "http://h/")
        assert DepthFilter(0, 10).reject_link(link, Page("http://h/", depth=10_000)) is None

    @pytest.mark.parametrize(("limit", "rejected"), [(2, True), (3, False), (0, False)])
    def test_plain_requests_have_a_depth(self, limit: int, rejected: bool) -> None:
        """Requests of a spider that yields no Pages."""
        request = Request("http://h/", meta={"depth": 3})
        reason = DepthFilter(limit, 10).reject_request(request, "http://h/")
        assert (reason is not None) is rejected

    def test_redirects_count_in_a_row(self) -> None:
        """A redirect is no step away from the seed, but not for ever."""
        depth = DepthFilter(1, 2)
        link = Link("http://h/", "http://h/", REDIRECT)
        assert depth.reject_link(link, Page("http://h/", depth=1, redirects=1)) is None
        assert "2 redirects" in (depth.reject_link(link, Page("http://h/", redirects=2)) or "")


def test_nofollow_rejects_marked_links_and_all_of_a_marked_page() -> None:
    """Both kinds of nofollow."""
    nofollow = NofollowFilter()
    plain, marked = Link("http://h/"), Link("http://h/", nofollow=True)
    assert nofollow.reject_link(plain, Page("http://h/")) is None
    assert nofollow.reject_link(marked, Page("http://h/")) is not None
    assert nofollow.reject_link(plain, Page("http://h/", nofollow=True)) is not None


class TestNofollowIgnored:
    """By {"wiki*": {"nofollow": "ignore"}}."""

    @pytest.fixture
    def ignored(self) -> NofollowFilter:
        rules = {"wiki*": {"nofollow": "ignore"}}
        return NofollowFilter.from_settings(Settings({**DEFAULTS, "LARM_HOST_RULES": rules}))

    @pytest.mark.parametrize("whole_page", [True, False])
    def test_links_of_the_host_are_followed(
        self, ignored: NofollowFilter, whole_page: bool
    ) -> None:
        page = Page("http://wiki/", nofollow=whole_page, body=b"<a rel=nofollow href=a>a</a>")
        link = Link("http://wiki/a", nofollow=not whole_page)
        assert ignored.reject_links([link], page) == [None]

    def test_other_hosts_are_obeyed(self, ignored: NofollowFilter) -> None:
        page = Page("http://other/", nofollow=True)
        assert ignored.reject_link(Link("http://wiki/a"), page) == "the page says nofollow"

    @pytest.mark.parametrize(
        "link",
        [
            Link("http://wiki/page/7/delete"),
            Link("http://wiki/start?do=revert&rev=7"),
            Link("http://wiki/logout"),
        ],
    )
    def test_links_that_act_are_not_followed(self, ignored: NofollowFilter, link: Link) -> None:
        assert ignored.reject_link(link, Page("http://wiki/", nofollow=True)) is not None

    def test_links_by_another_method_are_not_followed(self, ignored: NofollowFilter) -> None:
        markup = b"<a href=/a data-method=put rel=nofollow>x</a><a href=/b>y</a>"
        page = extract(markup, "http://wiki/", "text/html")
        page.body, page.nofollow = markup, True
        reasons = ignored.reject_links(page.links, page)
        assert [reason is None for reason in reasons] == [False, True]

    @pytest.mark.parametrize("value", ["no", "", True, 1, ["ignore"]])
    def test_a_wrong_value_names_what_is_accepted(self, value: object) -> None:
        settings = Settings({**DEFAULTS, "LARM_HOST_RULES": {"wiki": {"nofollow": value}}})
        with pytest.raises(ConfigError, match=r"nofollow .*: expected one of obey, ignore"):
            NofollowFilter.from_settings(settings)


def test_links_of_pages_in_other_languages_are_not_followed(
    crawler_for: Callable[..., Crawler],
) -> None:
    """Redirects are, and links of pages whose language is unknown. Off, it is not a filter at
    all."""
    wanted = LanguageFilter({"de"})
    page = Page("http://h/", text="longer than sixty characters " * 3, language="fr-ca")
    links = [Link("http://h/a"), Link("http://h/b", type=REDIRECT)]
    assert wanted.reject_links(links, page) == [
        "the page is in fr-ca (LARM_FOLLOW_LANGUAGES)",
        None,
    ]
    for said in ("de-at", None):
        page.language = said
        assert wanted.reject_links(links, page) == [None, None]
    with pytest.raises(NotConfigured):
        LanguageFilter.from_crawler(crawler_for())
    LanguageFilter.from_crawler(crawler_for(LARM_FOLLOW_LANGUAGES="de,nb"))


# larmspider/middlewares/url_filter.py: what a filter must have.


class Nameless(UrlFilter):
    """One that was written in a hurry."""


class Spaced(UrlFilter):
    name: ClassVar[str] = "my filter"


@pytest.mark.parametrize("cls", [Nameless, Spaced])
def test_a_filter_without_a_name_is_an_error_at_the_start(
    crawler_for: Callable[..., Crawler], cls: type[UrlFilter]
) -> None:
    """It names the class, and not at the first link: stats, logs and explanations need the name."""
    with pytest.raises(ConfigError, match=rf"the filter \S*{cls.__name__} has the name .*'name'"):
        cls.from_crawler(crawler_for())


class Odd(UrlFilter):
    """Rejects every other URL that it is asked about; remembers what it said."""

    name = "odd"
    remembers = True

    def __init__(self) -> None:
        self.asked: list[str] = []

    def reject_reason(self, url: str) -> str | None:
        self.asked.append(url)
        return "odd" if len(self.asked) % 2 else None


def test_a_filter_that_remembers_is_asked_once_for_a_url() -> None:
    """Navigation stands on each page of a site. Long URLs are not kept: memory stays bounded."""
    odd, page = Odd(), Page("http://h/")
    long = "http://h/" + "x" * LONGEST_CACHED
    links = [Link(url, url) for url in ("http://h/a", "http://h/b", "http://h/a", long)]
    assert odd.reject_links(links, page) == ["odd", None, "odd", "odd"]
    assert odd.reject_links(links, page) == ["odd", None, "odd", None]
    assert odd.asked == ["http://h/a", "http://h/b", long, long]


@pytest.mark.parametrize("page", [Page("http://h/", nofollow=nofollow, depth=depth, redirects=1)
                                  for nofollow in (False, True) for depth in (1, 2)])  # fmt: skip
def test_filters_say_of_a_batch_what_they_say_of_each_link(page: Page) -> None:
    """The fast way for a whole page follows the same rule."""
    settings = Settings(
        {
            "LARM_START": "http://h/",
            "URLLENGTH_LIMIT": 30,
            "DEPTH_LIMIT": 2,
            "LARM_MAX_REDIRECTS": 1,
        }
    )
    settings.setmodule("larmspider.settings", priority="default")
    filters = [
        cls.from_settings(settings)
        for cls in (NormalizeFilter, LengthFilter, KnownPathsFilter, ScopeFilter, TrapsFilter,
                    NofollowFilter, DepthFilter)
    ]  # fmt: skip
    urls = ("http://h/a", "http://h/" + 30 * "b", "http://h/?C=N;O=D", "http://other/",
            "http://h/x/x/x/x/", "http://h/cal/2093-04/")  # fmt: skip
    links = [
        Link(url, url, kind, nofollow=nofollow)
        for url in urls
        for kind in (ORDINARY, REDIRECT)
        for nofollow in (False, True)
    ]
    rejected = set()
    for one in filters:
        reasons = one.reject_links(links, page)
        assert reasons == [one.reject_link(link, page) for link in links]
        rejected |= {one.name} if any(reasons) else set()
    assert {"length", "known-paths", "scope", "traps", "nofollow", "depth"} <= rejected
