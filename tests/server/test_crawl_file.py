"""A crawl file: the settings that it becomes, and the message of each mistake."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from larmspider import options
from larmspider.errors import ConfigError
from larmspider.server.config.crawl_edit import edited, new_text
from larmspider.server.config.crawl_file import (
    MAX_FILE_BYTES,
    CrawlFileError,
    crawl_of,
    not_writable,
    parse_crawl,
    read_crawl,
    settings_of,
)
from larmspider.server.config.crawl_schema import Crawl, Host, Limits, Refresh, RunOn, fields_of

WHOLE = """\
# the wiki of the house
seeds = ["http://wiki.example/", "http://docs.example/start"]
restrict = 'https?://[^/]*\\.example/.*'
exclude = [
    'https?://wiki\\.example/archive/.{1,9}',  # too old
]
languages = ["de", "en"]
collection = "Staff"

[schedule]
run = "every day at 02:00"
time_zone = "Europe/Berlin"
window = [22, 6]

[limits]  # of the old machine
pages = 1000
delay = 2

[refresh]
mode = "all"
per_day = 50

[[hosts]]
host = "old-wiki*"   # slow
delay = 10
window = [22, 6]

[[hosts]]
host = "wiki.example"
secret = "wiki"
user = "crawler"

[settings]
LARM_NOTIFY = "mail -s crawl root"
"""


def test_settings_of_a_file() -> None:
    """Each key is the setting that the schema names."""
    assert settings_of(parse_crawl(WHOLE, "wiki.toml")) == {
        "LARM_START": "http://wiki.example/ http://docs.example/start",
        "LARM_RESTRICT": r"https?://[^/]*\.example/.*",
        "LARM_EXCLUDE": [r"https?://wiki\.example/archive/.{1,9}"],
        "LARM_FOLLOW_LANGUAGES": ["de", "en"],
        "LARM_MAX_PAGES": 1000,
        "DOWNLOAD_DELAY": 2.0,
        "LARM_REFRESH_PER_DAY": 50,
        "LARM_HOST_RULES": {"old-wiki*": {"delay": 10.0, "window": [22, 6]}},
        "LARM_NOTIFY": "mail -s crawl root",
    }


def test_every_setting_of_the_schema_exists() -> None:
    """And each field has a text."""
    for table in (Crawl, Limits, Refresh, Host, RunOn):
        for field in fields_of(table).values():
            assert not field.setting or field.setting in options.defaults(), field
            assert field.text or field.name in ("schedule", "refresh", "limits", "hosts", "run"), (
                field
            )


@pytest.mark.parametrize(
    ("line", "at", "told"),
    [
        ("sedes = ['http://w/']", 2, "sedes: unknown key; did you mean seeds?"),
        ("zzz = 1", 2, "zzz: unknown key: expected seeds, restrict,"),
        ("seeds = 7", 2, "seeds: 7: expected a list of 1 to 1,000, each a string of 1 to 2,083"),
        ("seeds = []", 2, "seeds: []: expected a list of 1 to 1,000"),
        ("seeds = ['wiki']", 2, "write http://wiki"),
        ("seeds = ['@/etc/passwd']", 2, "seeds[0]: '@/etc/passwd' is not a seed: expected one URL"),
        ("seeds = ['http://a/ http://b/']", 2, "is not a seed: expected one URL"),
        ("seeds = ['file:///a.warc']", 2, "is an archive: larmspider import reads it"),
        ("seeds = ['http://u:secret@w/']", 2, "user name or password"),
        ("seeds = ['http://a/', 'http://a/']", 2, "seeds[1]: 'http://a/' is listed twice"),
        ("restrict = '('", 2, "restrict: pattern '(' does not compile"),
        ("exclude = ['a b']", 2, "a list of expressions without blanks"),
        ("exclude = ['(']", 2, "exclude: exclude[0]: pattern '(' does not compile"),
        ("languages = ['xx-nonsense-language']", 2, "languages: "),
        ("collection = 'a,b'", 2, "without commas"),
        ("[schedule]\nrun = 'evry day'", 3, "'evry day' is not a schedule: expected a sentence"),
        ("[schedule]\nrun = '61 * * * *'", 3, "Bad minute: expected"),
        ("[schedule]\nrun = '0 0 31 2 *'", 3, "Bad day-of-month"),
        ("[schedule]\ntime_zone = 'europe/berlin'", 3, "did you mean Europe/Berlin?"),
        ("[schedule]\nwindow = [6]", 3, "a list of 2, each a whole number from 0 to 23"),
        ("[schedule]\nwindow = [6, 6]", 3, "two different hours"),
        ("[schedule]\nmissed = 'later'", 3, '"later": expected one of run, skip'),
        ("[limits]\npages = -1", 3, "limits.pages: -1: expected a whole number from 0 to"),
        ("[limits]\npages = true", 3, "limits.pages: true: expected a whole number"),
        ("[limits]\ndelay = nan", 3, "limits.delay: NaN: expected a number from 0 to 86,400"),
        ("limits = 3", 2, "limits: 3: expected a table"),
        ("[[hosts]]\nhost = 'w'\n[[hosts]]\ndelai = 1", 5, "hosts[1].delai: unknown key; did you"),
        ("[[hosts]]\ndelay = 1", 2, "hosts[0].host: is missing"),
        ("[[hosts]]\nhost = 'w'\nsecret = 'x'", 2, "user: is missing: auth is basic, which"),
        ("[[hosts]]\nhost = 'w'\nuser = 'x'", 4, "hosts[0].user: is set without secret"),
        ("[[hosts]]\nhost = 'w'\nwindow = [6, 6]", 2, "hosts[0]: rule for host 'w': window (6, 6)"),
        ("[[hosts]]\nhost = 'http://w/'", 2, "'http://w/': it matches no host: expected host or"),
        ("[[hosts]]\nhost = 'w/x'\nsecret = 'x'\nuser = 'u'", 2, "'w/x' is not a pattern for"),
        ("[settings]\nLARM_STRAT = 1", 2, "LARM_STRAT is not a setting of larmspider; did you"),
        ("[settings]\nLARM_START = 'x'", 2, "LARM_START has a key of its own: seeds"),
        ("[settings]\nLARM_WEB_PORT = 1", 2, "LARM_WEB_PORT is set by the server"),
        ("[settings]\nDOWNLOAD_TIMEOUT = 'soon'", 2, "DOWNLOAD_TIMEOUT=soon: expected"),
        ("seeds = [", 2, "is not TOML"),
        ("schedule.run = 'evry day'", 2, "'evry day' is not a schedule"),
        ("schedule = {run = 'evry day'}", 2, "'evry day' is not a schedule"),
        ("hosts = [{host = 'w', delai = 1}]", 2, "hosts[0].delai: unknown key"),
        (
            "[schedule]\nrun = 'every 6 hours'\nwindow = [19, 23]\nmissed = 'skip'",
            5,
            "no time of 'every 6 hours' lies in the window 19-23",
        ),
        ("x" * 10_000 + " = 1", 2, "unknown key"),
    ],
)  # fmt: skip
def test_a_mistake_is_told_with_file_line_and_key(line: str, at: int, told: str) -> None:
    """One line names the accepted values."""
    more = "" if line.startswith("seeds") else "\nseeds = ['http://w/']"
    text = f"# a comment\n{line}" if "[" in line[:2] else f"# a comment\n{line}{more}"
    if line.startswith("["):
        text = text.replace("# a comment", "seeds = ['http://w/']")
    with pytest.raises(CrawlFileError) as refused:
        parse_crawl(text, "wiki.toml")
    message = str(refused.value)
    assert told in message
    assert message.startswith(f"wiki.toml:{at}: ")
    assert "\n" not in message
    assert len(message) < 800


def test_all_problems_are_found_at_once() -> None:
    """A form shows each beside its field."""
    with pytest.raises(CrawlFileError, match="and 2 more") as refused:
        crawl_of({"seeds": 1, "limits": {"pages": -1}, "zz": 2}, "the form")
    assert [one.key for one in refused.value.problems] == ["seeds", "limits.pages", "zz"]


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    """Too large, a link, a pipe, not UTF-8, absent: at once, and without reading 100 MB."""
    place = tmp_path / "a.toml"
    with pytest.raises(CrawlFileError, match="No such file"):
        read_crawl(place)
    place.write_bytes(b"seeds = ['http://w/\xff']")
    with pytest.raises(CrawlFileError, match="not UTF-8 at byte 19"):
        read_crawl(place)
    with place.open("wb") as file:
        file.truncate(100_000_000)
    with pytest.raises(
        CrawlFileError, match=f"100,000,000 bytes: expected at most {MAX_FILE_BYTES:,}"
    ):
        read_crawl(place)
    link = tmp_path / "b.toml"
    link.symlink_to(place)
    with pytest.raises(CrawlFileError, match="symbolic link"):
        read_crawl(link)


def test_a_change_keeps_comments_and_order() -> None:
    """Lines that are not changed stay as they are, byte for byte."""
    changed = edited(
        WHOLE,
        {
            "limits": {"pages": 2000, "depth": 3},
            "collection": None,
            "schedule": {"run": "every sunday at 04:00"},
            "hosts": [{"host": "old-wiki*", "delay": 10, "window": [22, 6]}, {"host": "new"}],
        },
    )
    for line in ("# the wiki of the house", "[limits]  # of the old machine", "delay = 2",
                 '    \'https?://wiki\\.example/archive/.{1,9}\',  # too old',
                 'host = "old-wiki*"   # slow', 'LARM_NOTIFY = "mail -s crawl root"'):  # fmt: skip
        assert line in changed.splitlines()
    crawl = parse_crawl(changed, "wiki.toml")
    assert (crawl.limits.pages, crawl.limits.depth, crawl.collection) == (2000, 3, "")
    assert crawl.schedule.run == "every sunday at 04:00"
    assert crawl.schedule.time_zone == "Europe/Berlin"
    assert [host.host for host in crawl.hosts] == ["old-wiki*", "new"]
    assert edited(WHOLE, {"limits": {"pages": 1000}}) == WHOLE
    with pytest.raises(ConfigError, match="is not TOML"):
        edited("a = [", {})


def test_comments_in_lists_and_hosts_stay() -> None:
    """Also where one item, or one key of a host, changes."""
    text = """\
seeds = [
    # of the house
    "http://a/",  # the first
    "http://b/",  # the second
]
exclude = ["x"]  # old

[[hosts]]
# slow
host = "w"  # the wiki
delay = 3
budget = 9
"""
    changed = edited(
        text,
        {
            "seeds": ["http://b/", "http://c/"],
            "exclude": ["y"],
            "hosts": [{"host": "w", "delay": 4}],
        },
    )
    for line in ('    "http://b/",  # the second', 'exclude = ["y"]  # old', "# slow",
                 'host = "w"  # the wiki', "delay = 4"):  # fmt: skip
        assert line in changed.splitlines()
    assert "budget" not in changed
    assert "the first" not in changed
    assert parse_crawl(changed, "a").seeds == ["http://b/", "http://c/"]
    for values in (["http://b/", "http://a/"], ["http://a/", "http://c/"], []):
        begun_by_commas = 'seeds = [\n  "http://a/" # first\n  , "http://b/"\n]\n'
        for before in (text, begun_by_commas):
            assert tomllib.loads(edited(before, {"seeds": values}))["seeds"] == values


def test_values_that_toml_does_not_have() -> None:
    deep: list[object] = []
    for _ in range(2_000):
        deep = [deep]
    for value in ([None], [{"host": [None]}], deep):
        with pytest.raises(ConfigError, match="cannot be written as TOML"):
            edited("", {"seeds": value})


def test_schedules_that_are_in_their_window_once_a_day() -> None:
    for run in ("every 6 hours", "* * * * *", "59 22 29 2 *", "every day at 22:05", "watch"):
        parse_crawl(
            f"seeds = ['http://w/']\n[schedule]\nrun = '{run}'\nwindow = [22, 1]\nmissed = 'skip'",
            "a",
        )


def test_a_new_file_reads_back() -> None:
    """Also text that TOML has to escape."""
    values: dict[str, Any] = {
        "seeds": ["http://w/'\"\\", "http://v/"],
        "restrict": 'a"\\d\t#',
        "limits": {"delay": 0.5},
        "schedule": {"run": "watch"},
    }
    crawl = parse_crawl(new_text(values), "new.toml")
    assert (crawl.seeds, crawl.restrict) == (values["seeds"], values["restrict"])
    assert (crawl.limits.delay, crawl.schedule.run) == (0.5, "watch")
    assert structs.asdict(crawl)["hosts"] == []


def test_a_browser_writes_a_closed_list() -> None:
    """Settings name commands, paths and addresses."""
    assert [one.key for one in not_writable({"seeds": [], "settings": {}, "limits": {}})] == [
        "settings"
    ]


def test_nodes_of_a_crawl() -> None:
    """A node once, and no secrets of the server there."""
    text = "seeds = ['http://w/']\n[run]\nnodes = ['a', 'a']\n"
    with pytest.raises(CrawlFileError, match=r"run\.nodes: a node is listed twice"):
        parse_crawl(text, "wiki.toml")
    text += "workers = 0\n"
    with pytest.raises(CrawlFileError, match="expected a whole number from 1 to 64"):
        parse_crawl(text, "wiki.toml")
    text = "seeds = ['http://w/']\n[run]\nnodes = ['a']\n[[hosts]]\nhost = 'w'\n"
    with pytest.raises(CrawlFileError, match="a host has a secret, which stays here"):
        parse_crawl(text + "secret = 's'\nuser = 'u'\n", "wiki.toml")
    assert parse_crawl(text, "wiki.toml").run.nodes == ["a"]
