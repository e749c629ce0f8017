"""Bad input to the crawl command: one clear line, an exit status, nothing lost or left behind."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.crawling import crawl, scrapy

SEED = "http://127.0.0.1:9/"
STOCK = ("scrapy.core.scheduler.Scheduler", "scrapy.core.downloader.Downloader")
HEAP = "LARM_INDEX_HEAP_BYTES=5000000000: expected an integer from 15000000 to 4294967295"


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "hosts.properties").write_text("# ours\nstartsWith(www.)=\nbeginsWith(x)=y\n")
    (tmp_path / "known.txt").write_text("url /ok\nurl ((\n")
    (tmp_path / "seeds.txt").write_text("http://wiki/\nwiki.example\n")
    (tmp_path / "empty.txt").write_text("# nothing\n\n")
    (tmp_path / "latin.txt").write_bytes("http://wiki/über\n".encode("latin-1"))
    return tmp_path


@pytest.mark.parametrize(
    ("start", "options", "messages"),
    [
        (SEED, {"restrict": "http://(wiki"}, ["restrict", "http://(wiki", "missing )"]),
        (SEED, {"restrict": r"(?=(a+)+$)b(a+)+$"}, ["restrict"]),
        ("wiki.example", {}, ["'wiki.example' is not a seed", "write http://wiki.example"]),
        ("//wiki/", {}, ["'//wiki/' is not a seed", "write http://wiki/"]),
        ("ftp://wiki/", {}, ["'ftp://wiki/' is not a seed: scheme is not http or https; expected"]),
        ("mailto:joe@wiki", {}, ["'mailto:joe@wiki' is not a seed: mailto is not crawled"]),
        ("http://", {}, ["is not a seed"]),
        ("http://joe:secret@wiki/", {}, ["start: 'http://***@wiki/' is not a seed", "password"]),
        ("@none.txt", {}, ["@none.txt", "No such file"]),
        ("@seeds.txt", {}, ["seeds.txt:2: 'wiki.example' is not a seed"]),
        ("@empty.txt", {}, ["empty.txt", "no URL in it"]),
        ("@latin.txt", {}, ["latin.txt", "not UTF-8"]),
        ("", {}, ["No seed", "-a start=URL"]),
        (SEED, {"hostresolver": "hosts.properties"}, ["hosts.properties", "3", "beginsWith"]),
        (SEED, {"hostresolver": "none.properties"}, ["none.properties"]),
        (SEED, {"LARM_KNOWN_PATHS_FILE": "known.txt"}, ["known.txt:2"]),
        (SEED, {"LARM_DIR": "/proc/crawl"}, ["LARM_DIR=/proc/crawl cannot be written"]),
        (SEED, {"LARM_DIR": ""}, ["LARM_DIR=: expected"]),
        (SEED, {"LARM_PAGEFILE_BYTE": "1"}, ["BYTE is not a setting", "did you mean"]),
        (SEED, {"LARM_PAGEFILE_BYTES": "0"}, ["LARM_PAGEFILE_BYTES=0: expected", ">= 1"]),
        (SEED, {"LARM_MONITOR_SECS": "often"}, ["LARM_MONITOR_SECS=often: expected"]),
        (SEED, {"LARM_LOWERCASE_PATH": "maybe"}, ["LARM_LOWERCASE_PATH=maybe: expected"]),
        (SEED, {"LARM_INDEX_STEMMER": "klingon"}, ["klingon"]),
        (SEED, {"JOBDIR": "job"}, ["JOBDIR=job: expected none", "LARM_DIR"]),
        (SEED, {"threads": "many"}, ["threads=many: expected"]),
        (SEED, {"threads": "0"}, ["threads=0: expected"]),
        (SEED, {"fresh": "perhaps"}, ["fresh=perhaps: expected"]),
        (SEED, {"fresh": "yes,no"}, ["fresh=yes,no", "force to delete stored pages too"]),
        (SEED, {"LOG_LEVEL": "LOUD"}, ["LOG_LEVEL=LOUD", "DEBUG, INFO"]),
        (SEED, {"LOG_ENABLED": "maybe"}, ["LOG_ENABLED=maybe: expected yes or no"]),
        (SEED, {"RETRY_GIVE_UP_LOG_LEVEL": "x"}, ["RETRY_GIVE_UP_LOG_LEVEL=X", "DEBUG, INFO"]),
        (SEED, {"DNS_TIMEOUT": "x"}, ["DNS_TIMEOUT=x: expected a number of seconds"]),
        (SEED, {"REACTOR_THREADPOOL_MAXSIZE": "1.5"}, ["MAXSIZE=1.5", "an integer >= "]),
        (SEED, {"STATS_DUMP": "perhaps"}, ["STATS_DUMP=perhaps: expected yes or no"]),
        (SEED, {"CLOSESPIDER_TIMEOUT": "-1"}, ["CLOSESPIDER_TIMEOUT=-1", ">= 0"]),
        (
            SEED,
            {"LARM_STRATEGY": "backlinks", "REDIS_URL": "redis://127.0.0.1:9/0"},
            ["LARM_STRATEGY=backlinks: expected one of breadth-first, pagerank, path-words where"],
        ),
        (SEED, {"LARM_REFRESH_ORDER": "even"}, ["LARM_REFRESH_ORDER=even: expected value"]),
        (SEED, {"LARM_GROUP_BY": "domain"}, ["LARM_GROUP_BY=domain", "expected address or host"]),
        (SEED, {"LARM_LEASE_SECS": "0.5"}, ["LARM_LEASE_SECS=0.5: expected", ">= 1"]),
        (SEED, {"LARM_KEEP_ALIVE": "perhaps"}, ["LARM_KEEP_ALIVE=perhaps: expected"]),
        (SEED, {"LARM_BLOCKS": "20000"}, ["LARM_BLOCKS=20000: expected", "to 16384"]),
        (SEED, {"LARM_RESUME": "banana"}, ['LARM_RESUME=banana: expected "" or anyway']),
        (SEED, {"LARM_STRATEGY": "depth-first"}, ["LARM_STRATEGY=depth-first", "one of backlinks"]),
        (SEED, {"LARM_HOST_RULES": "{"}, ["LARM_HOST_RULES={: expected", "JSON"]),
        (SEED, {"LARM_HOST_RULES": "[1]"}, ["LARM_HOST_RULES=[1]: expected", "mapping"]),
        (SEED, {"LARM_HOST_RULES": '{"h": 1}'}, ["LARM_HOST_RULES", "'h'", "some of delay"]),
        (SEED, {"LARM_HOST_RULES": '{"h": {"dely": 1}}'}, ["LARM_HOST_RULES", "dely", "delay"]),
        (SEED, {"LARM_HOST_RULES": '{"h": {"delay": -1}}'}, ["LARM_HOST_RULES", "-1", ">= 0"]),
        (SEED, {"LARM_HOST_RULES": '{"h": {"delay": "x"}}'}, ["LARM_HOST_RULES", "delay", "'x'"]),
        (SEED, {"LARM_HOST_RULES": '{"h": {"delay": true}}'}, ["LARM_HOST_RULES", "delay True"]),
        (SEED, {"LARM_HOST_RULES": '{"h": {"budget": true}}'}, ["LARM_HOST_RULES", "budget True"]),
        (SEED, {"LARM_HOST_RULES": '{"h": {"window": [false, 6]}}'}, ["LARM_HOST_RULES", "False"]),
        (SEED, {"LARM_HOST_RULES": '{"h": {"connections": 0}}'}, ["LARM_HOST_RULES", ">= 1"]),
        (SEED, {"LARM_HOST_RULES": '{"h": {"connections": 1.5}}'}, ["LARM_HOST_RULES", "1.5"]),
        (SEED, {"LARM_HOST_RULES": '{"h": {"budget": "all"}}'}, ["LARM_HOST_RULES", "'all'"]),
        (SEED, {"LARM_HOST_RULES": '{"h": {"window": [22]}}'}, ["LARM_HOST_RULES", "window (22,)"]),
        (SEED, {"LARM_HOST_RULES": '{"h": {"window": 22}}'}, ["LARM_HOST_RULES", "22"]),
        (SEED, {"LARM_HOST_RULES": '{"h": {"window": [22, 25]}}'}, ["LARM_HOST_RULES", "0 to 24"]),
        (SEED, {"LARM_HOST_MAX_PAGES": "-1"}, ["LARM_HOST_MAX_PAGES=-1: expected", ">= 0"]),
        (SEED, {"LARM_VERSIONS": "-1"}, ["LARM_VERSIONS=-1: expected an integer >= 0"]),
        (SEED, {"LARM_INDEX_HEAP_BYTES": "5000000000"}, [HEAP]),
        (SEED, {"LARM_MAX_PAGES": "few"}, ["LARM_MAX_PAGES=few: expected"]),
        (SEED, {"LARM_HOST_MAX_FAILURES": "0"}, ["LARM_HOST_MAX_FAILURES=0", ">= 1"]),
        (SEED, {"LARM_CRAWL_DELAY_MAX_SECS": "nan"}, ["LARM_CRAWL_DELAY_MAX_SECS=nan: expected"]),
        (SEED, {"LARM_SLOW_SHARE": "2"}, ["LARM_SLOW_SHARE=2: expected", "<= 1"]),
        (SEED, {"SCHEDULER": STOCK[0]}, [f"SCHEDULER={STOCK[0]} and", "no slots"]),
        (SEED, {"DOWNLOADER": STOCK[1]}, [f"DOWNLOADER={STOCK[1]} do not go together"]),
        (SEED, {"ROBOTSTXT_OBEY": "maybe"}, ["ROBOTSTXT_OBEY=maybe: expected yes or no"]),
        (SEED, {"DOWNLOAD_VERIFY_CERTIFICATES": "x"}, ["DOWNLOAD_VERIFY_CERTIFICATES=x: expected"]),
        (SEED, {"DOWNLOAD_DELAY": "-1"}, ["DOWNLOAD_DELAY=-1: expected"]),
        (SEED, {"CONCURRENT_REQUESTS_PER_DOMAIN": "0"}, ["CONCURRENT_REQUESTS_PER_DOMAIN=0"]),
        (SEED, {"COMPRESSION_ENABLED": "x"}, ["COMPRESSION_ENABLED=x: expected"]),
        (SEED, {"DNSCACHE_ENABLED": "x"}, ["DNSCACHE_ENABLED=x: expected"]),
        (SEED, {"SCRAPER_SLOT_MAX_ACTIVE_SIZE": "16MB"}, ["SCRAPER_SLOT_MAX_ACTIVE_SIZE=16MB"]),
        (SEED, {"LARM_EXTRACTION_SECS": "1e300"}, ["LARM_EXTRACTION_SECS=1e300", "to 86400"]),
        (SEED, {"LARM_DOCUMENT_READERS": "two"}, ["LARM_DOCUMENT_READERS=two: expected an int"]),
        (SEED, {"LARM_DOCUMENT_READERS": "65"}, ["LARM_DOCUMENT_READERS=65: expected", "64"]),
        (SEED, {"DOWNLOADER_CLIENT_TLS_CIPHERS": "x"}, ["DOWNLOADER_CLIENT_TLS_CIPHERS=x: exp"]),
        (SEED, {"DOWNLOAD_BIND_ADDRESS": "wiki"}, ["DOWNLOAD_BIND_ADDRESS=wiki: expected"]),
        (SEED, {"DOWNLOAD_TLS_MIN_VERSION": "TLSv1.3", "DOWNLOAD_TLS_MAX_VERSION": "TLSv1.2"},
         ["DOWNLOAD_TLS_MAX_VERSION=TLSv1.2: expected DOWNLOAD_TLS_MIN_VERSION=TLSv1.3"]),
        (SEED, {"LARM_DIR": "x" * 300}, ["LARM_DIR=", "cannot be written: File name too long"]),
        (SEED, {"strat": "x"}, ["unknown argument strat: did you mean start?", "start, restrict"]),
    ],
)  # fmt: skip
def test_says_what_was_wrong_and_begins_nothing(
    files: Path, start: str, options: dict[str, str], messages: list[str]
) -> None:
    """The last line names the argument or setting, its value and what it expects; status 2."""
    before = sorted(files.iterdir())
    ran = crawl(start, files, **options)
    assert ran.status == 2, ran.err
    line = ran.err.splitlines()[-1]
    assert line.startswith("scrapy crawl: ")
    for message in messages:
        assert message in line
    assert "Traceback" not in ran.err
    assert "secret" not in ran.err
    assert sorted(files.iterdir()) == before, "nothing is left behind"


@pytest.mark.parametrize("name", ["COOKIES_ENABLED", "ROBOTSTXT_OBEY", "LOG_SHORT_NAMES"])
def test_no_is_an_answer_to_settings_of_scrapys_own(tmp_path: Path, name: str) -> None:
    """Although Scrapy itself takes "0" and "False" only; in its own commands too."""
    no = {"LARM_RETRY_TIMES": "0", "LARM_HOST_MAX_FAILURES": "1", "LARM_HOST_MAX_PARKS": "0"}
    ran = crawl(SEED, tmp_path, **no, **{name: "no"})
    assert "Traceback" not in ran.err
    assert ran.out.startswith("ended ")
    ran = scrapy("fetch", "-s", f"{name}=off", SEED, cwd=tmp_path)
    assert "ValueError" not in ran.err
    ran = scrapy("fetch", "-s", f"{name}=maybe", SEED, cwd=tmp_path)
    assert (ran.status, ran.out) == (2, "")
    assert f"{name}=maybe: expected yes or no" in ran.err


def test_a_crawl_that_stored_nothing_fails(tmp_path: Path) -> None:
    """The seed's server does not answer: status 1, and the summary says why."""
    ran = crawl(SEED, tmp_path, ROBOTSTXT_OBEY="0", LARM_RETRY_TIMES="0")
    assert ran.status == 1
    assert "failed      1 URL (refused 1)" in ran.out


def test_a_seed_outside_restrict_is_named(tmp_path: Path) -> None:
    """The usual slip: the expression does not match what the seed is compared as."""
    ran = crawl("http://127.0.0.1:9/Docs/", tmp_path, restrict="http://127.0.0.1:9/docs")
    assert ran.status == 1
    assert "Seed refused: http://127.0.0.1:9/Docs/ (scope: does not match restrict" in ran.err


def test_another_crawl_in_the_directory_is_refused(tmp_path: Path) -> None:
    """Other seeds are another crawl; a bad argument with fresh=yes deletes nothing either."""
    crawl(SEED, tmp_path, ROBOTSTXT_OBEY="0", LARM_RETRY_TIMES="0")
    before = {path: path.read_bytes() for path in (tmp_path / "crawl").glob("*.*")}
    assert before
    again = crawl(SEED + "other", tmp_path, ROBOTSTXT_OBEY="0")
    assert again.status == 1
    assert "holds a crawl with other seeds" in again.err.splitlines()[-1]
    assert crawl(SEED, tmp_path, fresh="yes", restrict="((").status == 2
    for argument, message in (
        ({"restrict": "(("}, "restrict"),
        ({"hostresolver": "no"}, "host rules"),
    ):
        ran = crawl(SEED, tmp_path, **argument)
        assert ran.status == 2, "the value is wrong, whatever the directory holds"
        assert f"scrapy crawl: {message}" in ran.err
        assert "holds a crawl" not in ran.err
    assert {path: path.read_bytes() for path in (tmp_path / "crawl").glob("*.*")} == before


def test_unknown_spider(tmp_path: Path) -> None:
    """One line, status 2."""
    ran = scrapy("crawl", "extranet", cwd=tmp_path)
    assert ran.status == 2
    assert ran.err.splitlines()[-1] == "scrapy crawl: Spider not found: extranet"
