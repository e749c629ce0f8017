"""Users' patterns: what matches, which engine runs them, and that none of them can hang a crawl."""

from __future__ import annotations

import logging
import re
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from larmspider.errors import ConfigError
from larmspider.urls import backtracking
from larmspider.urls import patterns as re2_set
from larmspider.urls.backtracking import slow_string
from larmspider.urls.host_pattern import HostPattern, host_matcher
from larmspider.urls.patterns import PatternSet, Re2Set, compile_pattern

needs_re2 = pytest.mark.skipif(re2_set.re2 is None, reason="google-re2 is not installed")


@pytest.fixture(params=["re2", "re"])
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Both engines: with google-re2 and as if it were not installed."""
    if request.param == "re":
        monkeypatch.setattr(re2_set, "re2", None)
    elif re2_set.re2 is None:
        pytest.skip("google-re2 is not installed")
    name: str = request.param
    return name


@pytest.mark.parametrize(
    "text, url, expected",
    [
        (r"https?://[^/]*\.example/.*", "http://docs.example/a", True),
        (r"https?://[^/]*\.example/.*", "http://docs.other/a", False),
        (r"https?://[^/]*\.example/.*", "xhttp://docs.example/a", False),
        (r"http://h/", "http://h/a", False),
        (r"HTTP://H/[a-c]", "http://h/C", True),
        (r"http://h/.", "http://h/\n", True),
        (r"^http://h/$", "http://h/", True),
        (r"a|http://h/.*|b", "http://h/x", True),
        (r"a|b", "ab", False),
        (r"", "", True),
        (r"", "http://h/", False),
    ],
)
def test_the_whole_url_must_match(engine: str, text: str, url: str, expected: bool) -> None:
    """Case-insensitive, a dot is any character: the same on both engines."""
    pattern = compile_pattern(text, name="LARM_RESTRICT")
    assert pattern.fullmatch(url) is expected
    assert (pattern.text, pattern.engine) == (text, engine)
    assert PatternSet([text], name="LARM_RESTRICT").match(url) == (text if expected else None)


@needs_re2
def test_re2_patterns_make_no_noise(caplog: pytest.LogCaptureFixture) -> None:
    """The ordinary case logs nothing."""
    with caplog.at_level(logging.DEBUG):
        compile_pattern("a.*", name="LARM_RESTRICT")
        PatternSet(["a.*"], name="LARM_RESTRICT")
    assert caplog.records == []


@needs_re2
@pytest.mark.parametrize(
    "text, matching, other, why",
    [
        (r"http://h/(?!private).*", "http://h/a", "http://h/private", "invalid perl operator: (?!"),
        (r".*(?<!\.exe)", "http://h/a", "http://h/a.exe", "invalid perl operator: (?<"),
        (r"http://(\w+)/\1", "http://h/h", "http://h/a", r"invalid escape sequence: \1"),
        (r"http://h/a++b", "http://h/aab", "http://h/aa", "bad repetition operator: ++"),
        (r"http://h/a{2,2000}", "http://h/aaa", "http://h/a", "invalid repetition size"),
        (r"(?x) http://h/ a #", "http://h/a", "http://h/b", "invalid"),
        (r"http://h/(?!x)[[]a", "http://h/[a", "http://h/a", "(?!"),
    ],
)
def test_what_re2_refuses_runs_on_python(
    text: str, matching: str, other: str, why: str, caplog: pytest.LogCaptureFixture
) -> None:
    """With a warning that names the pattern and says why."""
    pattern = compile_pattern(text, name="LARM_RESTRICT")
    assert pattern.engine == "re"
    assert pattern.fullmatch(matching)
    assert not pattern.fullmatch(other)
    [record] = caplog.records
    assert record.levelno == logging.WARNING
    assert "LARM_RESTRICT" in record.getMessage()
    assert repr(text) in record.getMessage()
    assert why in record.getMessage()


def test_a_missing_re2_is_said(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The warning of a pattern that RE2 would take says why it does not."""
    monkeypatch.setattr(re2_set, "re2", None)
    compile_pattern("a.*", name="LARM_RESTRICT")
    assert "google-re2 is not installed" in caplog.text


@pytest.mark.parametrize(
    "text, message",
    [
        ("(a", r"missing \), unterminated subpattern at position 0"),
        ("http://h/[z-a]", r"bad character range z-a at position 10"),
        ("*", "nothing to repeat at position 0"),
        ("(?!b)a{1,99999999999999999999}", "repetition number is too large"),
        ("(?<=a*)b", "look-behind requires fixed-width pattern"),
    ],
)
def test_what_neither_engine_takes_is_an_error(engine: str, text: str, message: str) -> None:
    """The message names setting, pattern, reason and position, and says what it expects."""
    for make in (
        lambda: compile_pattern(text, name="SCOPE"),
        lambda: PatternSet([text], name="SCOPE"),
    ):
        with pytest.raises(ConfigError, match=message) as raised:
            make()
        assert str(raised.value).startswith("SCOPE")
        assert repr(text) in str(raised.value)
        assert "expected" in str(raised.value)


CATASTROPHIC = [
    r"(?=a)(a+)+$",
    r"(?!x)(a|a?)+",
    r"https?://wiki\.example/(x+x+)+y(?!z)",
    r"(?!x).*(?:foo/|foo/foo/)+#",
]
MORE_CATASTROPHIC = [
    r"(?!x)(a|aa)+",
    r"(?!x)([a-z]+)*[0-9]",
    r"https?://[^/]+/(?!private)([a-z]+/?)*\.html",
    r"(?!x)http://h/(\w+\d*)+_",
    r"http://h/(.*)(.*)(.*)(.*)(.*)(?<=z)q",
    r"(\w+)\1(?:ab|(?:ab)+)*#",
]


@pytest.mark.parametrize(
    "text",
    [
        *CATASTROPHIC,
        *(pytest.param(one, marks=pytest.mark.acceptance) for one in MORE_CATASTROPHIC),
    ],
)
def test_catastrophic_backtracking_is_an_error(text: str) -> None:
    """Found in bounded time, with an example of a URL that hangs."""
    before = time.monotonic()
    with pytest.raises(
        ConfigError, match=r"SCOPE: pattern .* takes more than .* for a URL such as"
    ):
        compile_pattern(text, name="SCOPE")
    assert time.monotonic() - before < backtracking.WALL_SECS


@needs_re2
def test_re2_needs_no_trial() -> None:
    """The same nested repetition is harmless there: linear, so accepted and fast."""
    pattern = compile_pattern(r"(a+)+$", name="SCOPE")
    assert pattern.engine == "re2"
    before = time.process_time()
    assert not pattern.fullmatch("a" * 5000 + "!")
    assert time.process_time() - before < 0.5


@pytest.mark.parametrize(
    "text",
    [
        r"http://h/(?!private/).*",
        r"https?://([^/]+\.)?example/(?!.*(logout|delete)).*",
        r".*(?<!\.(exe|zip|iso))",
        r"(?!.*/(cgi-bin|private|tmp)/).*\.(html?|php|jsp|aspx?)(\?.*)?",
        r"https?://([^/]+)/.*/\1/.*",
        r"^(?=.*docs)(?=.*library).*$",
        pytest.param(r"(?!x).*a.*b.*", marks=pytest.mark.acceptance),
    ],
)
def test_ordinary_patterns_pass_the_trial(text: str) -> None:
    """Linear and quadratic ones: slow at worst, never hanging."""
    assert slow_string(text, re.IGNORECASE | re.DOTALL, "fullmatch") is None


@pytest.mark.acceptance
def test_a_search_is_tried_as_a_search() -> None:
    """Looking from every position makes a square of a line, and a cube of a square."""
    text = r"a[^b]*a[^b]*c(?!x)"
    assert slow_string(text, re.IGNORECASE | re.DOTALL, "fullmatch") is None
    assert slow_string(text, re.IGNORECASE | re.DOTALL, "search") is not None


def test_a_trial_without_an_answer_fails_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A child that dies at once, or is out of time, accepts nothing."""
    child = backtracking._CHILD
    monkeypatch.setattr(backtracking, "_CHILD", "session_ids.py")
    with pytest.raises(ConfigError, match="could not be tried in a process of its own"):
        compile_pattern("(?!a)b", name="SCOPE")
    monkeypatch.setattr(backtracking, "_CHILD", child)
    monkeypatch.setattr(backtracking, "WALL_SECS", 0.001)
    with pytest.raises(ConfigError, match=r"could not be tried|takes more than"):
        compile_pattern("(?!a)b", name="SCOPE")


def test_a_trial_works_from_a_zip_file(tmp_path: Path) -> None:
    """The program of the trial's process is text: a file inside an archive cannot be run."""
    package = Path(backtracking.__file__).parents[1]
    with zipfile.ZipFile(tmp_path / "larmspider.zip", "w") as archive:
        for file in package.rglob("*.py"):
            archive.write(file, file.relative_to(package.parent))
    code = (
        "from larmspider.urls import backtracking as b\n"
        "assert '.zip' in b.__file__, b.__file__\n"
        "print(b.slow_string('(?!a)b', 0, 'fullmatch'))"
    )
    options = {"cwd": tmp_path, "env": {"PYTHONPATH": str(tmp_path / "larmspider.zip")}}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, **options
    )
    assert (done.stdout, done.stderr) == ("None\n", "")


# -- sets -----------------------------------------------------------------------------------------


def test_an_empty_set_never_matches(engine: str) -> None:
    """Neither as a whole nor by a part."""
    for mode in ("fullmatch", "search"):
        patterns = PatternSet([], name="LARM_KNOWN_PATHS", mode=mode)  # type: ignore[arg-type]
        assert patterns.match("http://h/") is None
        assert patterns.match("") is None
        assert len(patterns) == 0


@pytest.mark.parametrize(
    "patterns, url, expected",
    [
        (["/b/", "/a/", "/a/b/"], "http://h/a/b/", "/b/"),
        (["/x/", "/a/", "/b/"], "http://h/a/b/", "/a/"),
        (["/x/(?!y)", "/b/", "/a/"], "http://h/a/b/", "/b/"),
        (["/b/(?!y)", "/a/"], "http://h/a/b/", "/b/(?!y)"),
        (["/a/", "/b/(?!y)"], "http://h/a/b/", "/a/"),
        (["/x/", "/b/(?!y)", "/a/(?!y)"], "http://h/a/b/", "/b/(?!y)"),
        (["/x/", "/y/(?!y)"], "http://h/a/b/", None),
    ],
)
def test_search_gives_the_first_pattern(
    patterns: list[str], url: str, expected: str | None
) -> None:
    """The lowest index wins, whichever engine a pattern runs on."""
    assert PatternSet(patterns, name="LARM_KNOWN_PATHS", mode="search").match(url) == expected


def test_fullmatch_is_the_default_mode_of_sets(engine: str) -> None:
    """A part of a URL is not enough then."""
    patterns = ["http://h/", "/a", ".*/a"]
    assert PatternSet(patterns, name="SCOPE").match("http://h/a") == ".*/a"
    assert PatternSet(patterns, name="SCOPE", mode="search").match("http://h/a") == "http://h/"
    assert len(PatternSet(patterns, name="SCOPE")) == 3


def test_an_error_names_the_pattern_of_a_set(engine: str) -> None:
    """By its index, from 0."""
    with pytest.raises(ConfigError, match=r"SCOPE\[1\]: pattern '\(' does not compile"):
        PatternSet(["a", "(", "b"], name="SCOPE")


@needs_re2
@settings(max_examples=40)
@given(
    st.lists(st.from_regex(r"[ab/]{1,3}[*?]?(\|[ab])?", fullmatch=True), max_size=8),
    st.text("ab/", max_size=8),
    st.sampled_from(["fullmatch", "search"]),
)
def test_a_set_agrees_with_its_patterns_one_by_one(
    patterns: list[str], url: str, mode: re2_set.Mode
) -> None:
    """One pass over all gives what Python's re gives for each in turn."""
    expected = next((p for p in patterns if getattr(re.compile(p), mode)(url)), None)
    assert PatternSet(patterns, name="SCOPE", mode=mode).match(url) == expected


@needs_re2
@pytest.mark.parametrize("count", [500, 2000])
def test_sets_too_large_for_their_memory_are_split(count: int) -> None:
    """RE2 refuses to compile them, or compiles them and never matches: neither is silent here."""
    patterns = [f"/word{index}.{{0,40}}end{index}/" for index in range(count)]
    found = Re2Set(patterns, "search")
    for index in (0, 1, count // 2, count - 1):
        assert found.first(f"http://h/word{index}/x/end{index}/") == index
    assert found.first("http://h/word0/x/end1/") is None


@needs_re2
def test_a_set_that_compiles_but_never_matches_is_split(monkeypatch: pytest.MonkeyPatch) -> None:
    """RE2 says so only in its log; here a set of more than three patterns does it."""

    class Small(re2_set.re2.Set):  # type: ignore[misc]
        added = 0

        def Add(self, pattern: str) -> int:  # noqa: N802 - RE2's name
            self.added += 1
            return int(super().Add(pattern))

        def Match(self, text: str) -> list[int] | None:  # noqa: N802 - RE2's name
            return super().Match(text) if self.added <= 3 else None

    monkeypatch.setattr(re2_set.re2, "Set", Small)
    found = Re2Set([f"/{letter}/" for letter in "abcdefg"], "search")
    assert [found.first(f"http://h/{letter}/") for letter in "abcdefgh"] == [*range(7), None]


@needs_re2
def test_sets_with_little_memory_match_all_their_patterns(monkeypatch: pytest.MonkeyPatch) -> None:
    """However often they have to be split."""
    patterns = [f"/w{index}.{{0,9}}e{index}/" for index in range(200)]
    for kilobytes in range(40, 400, 40):
        monkeypatch.setattr(re2_set, "SET_BYTES", kilobytes << 10)
        found = Re2Set(patterns, "search")
        for index in range(200):
            assert found.first(f"http://h/w{index}/x/e{index}/") == index


# larmspider/urls/host_pattern.py: which hosts, schemes and ports a pattern is meant for.


@pytest.mark.parametrize(
    "pattern, scheme, host, port, expected",
    [
        ("wiki", "https", "wiki", 443, True),
        ("wiki", "http", "wiki", 80, True),
        ("wiki", "https", "wiki", 8443, False),
        ("wiki", "https", "wiki", 80, False),
        ("wiki:8443", "https", "wiki", 8443, True),
        ("wiki:8443", "https", "wiki", 443, False),
        ("wiki:*", "https", "wiki", 8443, True),
        ("wiki:*", "http", "wiki", 80, True),
        ("https://wiki", "https", "wiki", 443, True),
        ("https://wiki/", "https", "wiki", 443, True),
        ("https://wiki", "http", "wiki", 80, False),
        ("http://wiki:8080", "http", "wiki", 8080, True),
        ("http://wiki:8080", "https", "wiki", 8080, False),
        ("WIKI.Example", "https", "wiki.example", 443, True),
        ("wiki.example.", "https", "wiki.example", 443, True),
        ("wiki.example", "https", "wikixexample", 443, False),
        ("wiki.example", "https", "wiki.example.evil.example", 443, False),
        ("*.intra.example", "https", "a.b.intra.example", 443, True),
        ("*.intra.example", "https", "intra.example", 443, False),
        ("*.intra.example", "https", "a.intra.example.evil.example", 443, False),
        ("*.intra.example", "https", "evilintra.example", 443, False),
        ("wiki?.example", "https", "wiki2.example", 443, True),
        ("wiki?.example", "https", "wiki.example", 443, False),
        ("10.1.*", "http", "10.1.2.3", 80, True),
        ("10.1.*", "http", "10.1.evil.example", 80, False),
        ("10.1.2.?", "http", "10.1.2.3", 80, True),
        ("*", "http", "any.host.example", 80, True),
        ("[::1]:8080", "http", "[::1]", 8080, True),
        ("[0:0::1]", "http", "[::1]", 80, True),
        ("0x7f.1", "http", "127.0.0.1", 80, True),
        ("bücher.example", "https", "xn--bcher-kva.example", 443, True),
    ],
)
def test_matches(pattern: str, scheme: str, host: str, port: int, expected: bool) -> None:
    """Scheme, host and port all count; a pattern without a port means its scheme's own."""
    assert HostPattern.parse(pattern).matches(scheme, host, port) is expected


@pytest.mark.parametrize(
    "pattern, host, expected",
    [
        ("*.Case.example", "a.case.example", True),
        ("wiki?", "wiki", False),
        ("wiki[ab]", "wikib", True),
        ("[::1]:8?", "[::1]:81", True),
        ("[::1]", "1", False),
    ],
)
def test_a_matcher_knows_wildcards_sets_and_addresses(
    pattern: str, host: str, expected: bool
) -> None:
    """One matcher for every setting and file; brackets of an address are no set."""
    assert bool(host_matcher("other", pattern)(host)) is expected
    assert not host_matcher()(host)


@pytest.mark.parametrize(
    "pattern",
    [
        "", "http://", "ftp://wiki", "wiki/path", "wiki?q=1&x=/", "wiki:0", "wiki:99999", "wiki:x",
        "wiki:80:80", "wi ki", "*.bücher.example", "[::1", "wiki#top", "a..b", "[*]",
    ],
)  # fmt: skip
def test_refuses_what_could_never_match(pattern: str) -> None:
    """The error says what it expects."""
    with pytest.raises(ConfigError, match="is not a pattern for hosts"):
        HostPattern.parse(pattern)


def test_a_user_name_in_a_pattern_is_not_shown() -> None:
    """A user name there comes with a password."""
    with pytest.raises(ConfigError) as caught:
        HostPattern.parse("https://joe:canary@wiki")
    assert "canary" not in str(caught.value)


@pytest.mark.parametrize(
    "pattern, bounded",
    [
        ("wiki", True),
        ("*.intra.example", True),
        ("wiki*.example", True),
        ("10.1.*", True),
        ("wiki*", False),
        ("*", False),
        ("wiki.ex?mple", False),
        ("[::1]", True),
    ],
)
def test_knows_whether_strangers_can_match(pattern: str, bounded: bool) -> None:
    """A stranger can have wiki.elsewhere.example, but not our top label or our addresses."""
    assert HostPattern.parse(pattern).is_bounded is bounded


@pytest.mark.parametrize("text", ["wiki", "https://wiki:*", "http://*.intra:8080", "[::1]:1"])
def test_shows_as_it_was_written(text: str) -> None:
    assert str(HostPattern.parse(text)) == text
    assert HostPattern.parse(str(HostPattern.parse(text))) == HostPattern.parse(text)
