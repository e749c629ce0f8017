"""larmspider/plugins/export/scope.py"""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from larmspider import open_crawl
from larmspider.errors import ConfigError
from larmspider.plugins.export.scope import export_scope
from larmspider.urls.patterns import compile_pattern
from tests.support.crawling import scrapy
from tests.support.stored_crawl import two_pages

RESTRICT = r"https?://(?P<host>[^/]*\.example|wiki)/.*"
EXCLUDE = [r".*/archive/.*", r"http://wiki/(?P<a>[a-z])/(?P=a)"]
URLS = (
    "http://wiki/", "http://wiki/x/", "http://a.example/", "http://a.example/archive/1",
    "http://wiki/a/a", "http://wiki/a/b", "http://WIKI/A/A", "http://other/http://wiki/",
    "http://wiki/a%0Ab", "http://wiki/" + "x" * 2_072, "http://wiki/" + "x" * 2_071,
)  # fmt: skip
JAVA = """
import java.nio.file.*; import java.util.*; import java.util.regex.*;
class Filter { public static void main(String[] args) throws Exception {
  for (String url : Files.readAllLines(Path.of(args[1]))) for (String line :
      Files.readAllLines(Path.of(args[0])))
    if (!line.startsWith("#") && Pattern.compile(line.substring(1)).matcher(url).find()) {
      System.out.println(line.charAt(0)); break; } } }
"""


@pytest.fixture
def crawl(tmp_path: Path) -> Path:
    return with_scope(tmp_path, ["http://wiki/", "smb://nas/share/"], RESTRICT)


def with_scope(folder: Path, seeds: list[str], restrict: str, name: str = "crawl") -> Path:
    path = two_pages(folder / name)
    manifest = json.loads((path / "crawl.json").read_text())
    manifest["seeds"] = seeds
    own = {"LARM_RESTRICT": restrict, "LARM_EXCLUDE": EXCLUDE, "URLLENGTH_LIMIT": 2083}
    manifest.setdefault("settings", {}).update(own, LARM_KNOWN_PATHS_FILE="/etc/known.txt")
    (path / "rules").mkdir()
    (path / "rules" / "known_paths.txt").write_text("/cgi-bin/\n")
    (path / "crawl.json").write_text(json.dumps(manifest))
    return path


def test_seeds_expressions_and_rules(crawl: Path, tmp_path: Path) -> None:
    ran = scrapy("export", "scope", "scope", cwd=tmp_path)
    assert ran.status == 0, ran.err
    assert "1 seed and the scope in scope: seeds.txt, regex-filters.txt, known_paths.txt" in ran.out
    assert "left out, no web page: smb://nas/share/" in ran.out
    scope = tmp_path / "scope"
    assert (scope / "seeds.txt").read_text() == "http://wiki/\n"
    assert (scope / "known_paths.txt").read_text() == "/cgi-bin/\n"
    assert (scope / "regex-filters.txt").read_text().splitlines()[1:] == [
        r"-(?is)\A(?:.*/archive/.*)\z",
        r"-(?is)\A(?:http://wiki/(?<a>[a-z])/\k<a>)\z",
        "-.{2084,}",
        r"+(?is)\A(?:https?://(?<host>[^/]*\.example|wiki)/.*)\z",
        "-.",
    ]


def test_without_restrict_the_hosts_of_the_seeds(tmp_path: Path) -> None:
    path = with_scope(tmp_path, ["http://WIKI:80/a", "https://b.example:8443/"], "")
    with open_crawl(path) as opened:
        export_scope(opened.directory, tmp_path / "scope")
    lines = (tmp_path / "scope" / "regex-filters.txt").read_text().splitlines()
    assert lines[-3:] == [
        r"+(?i)\Ahttps?://b\.example:8443(?:/|\z)",
        r"+(?i)\Ahttps?://wiki(?:/|\z)",
        "-.",
    ]


def test_what_cannot_be_written_changes_nothing(crawl: Path, tmp_path: Path) -> None:
    scope = tmp_path / "scope"
    scope.mkdir()
    (scope / "mine.txt").write_text("mine")
    with open_crawl(crawl) as opened:
        with pytest.raises(ConfigError, match="has files; --force replaces them"):
            export_scope(opened.directory, scope)
        assert [one.name for one in scope.iterdir()] == ["mine.txt"]
        export_scope(opened.directory, scope, force=True)
        assert (scope / "mine.txt").read_text() == "mine"
        with pytest.raises(ConfigError, match="cannot be written"):
            export_scope(opened.directory, scope / "mine.txt")
    shares = with_scope(tmp_path, ["smb://nas/share/"], "", name="shares")
    with (
        open_crawl(shares) as opened,
        pytest.raises(ConfigError, match="no seeds that are web pages"),
    ):
        export_scope(opened.directory, tmp_path / "other")
    ran = scrapy("export", "scope", "other", "--host", "wiki", cwd=tmp_path)
    assert ran.status == 2
    assert "expected no --host" in ran.err


@pytest.mark.acceptance
@pytest.mark.skipif(shutil.which("java") is None, reason="needs Java (openjdk-17-jdk-headless)")
def test_java_finds_what_the_crawl_takes(crawl: Path, tmp_path: Path) -> None:
    with open_crawl(crawl) as opened:
        export_scope(opened.directory, tmp_path / "scope")
    (tmp_path / "Filter.java").write_text(JAVA)
    (tmp_path / "urls.txt").write_text("\n".join(URLS))
    filters = tmp_path / "scope" / "regex-filters.txt"
    command = ["java", str(tmp_path / "Filter.java"), str(filters), str(tmp_path / "urls.txt")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    restrict = compile_pattern(RESTRICT, name="restrict")
    exclude = [compile_pattern(one, name="exclude") for one in EXCLUDE]
    expected = [
        restrict.fullmatch(url)
        and len(url) <= 2083
        and not any(one.fullmatch(url) for one in exclude)
        for url in URLS
    ]
    assert [line == "+" for line in done.stdout.split()] == expected
    assert True in expected
    assert False in expected
