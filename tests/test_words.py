"""The words of docs and code get no harder to read: limits for each file, which only go down.

    python -m tests.test_words     # writes the present values as limits, tests/words.toml

Two measures: the share of sentences over 35 words on each page of the docs, and the hard phrases in
docs and code (HARD). A page that words.toml does not name may have 2% long sentences; a file that
it does not name may have no hard phrase.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
LIMITS = Path(__file__).with_name("words.toml")
LONG_WORDS = 35
USUAL_SHARE = 2.0
"""Percent of a page's sentences that may be long."""
BETTER_SHARE = 1.0
"""Points by which a page is better than its limit before the limit has to go down."""
BETTER_COUNT = 100
"""Hard phrases in all by which files are better than their limits before these have to go down."""

HARD = [
    (r"\b(?:so|as) many\b(?! as\b)", "the number and its unit"),
    (r"\b(?:that|those|the one) of\b", "the noun"),
    (r"\b(?:nobody|somebody|whoever)\b", "user, operator, worker, component"),
    (r"\b(?:is|are|was|were) (?:had|told|reckoned|asked for|gone on with)\b", "who does what"),
    (r"\b(?:go|goes|going|went) on with\b", "continue"),
    (r"\bask(?:s|ed)? again\b", "retry, fetch again"),
    (r"\b(?:anew|in vain|all the same|for there (?:is|are))\b", "again, without result, anyway"),
    (r"\bwhat (?:is|was) (?:not )?[a-z]+ed\b", "the noun: stored pages, queued URLs"),
    (r"\bis no [a-z]+ of\b", "is not a"),
    (r"\bequally (?:many|much)\b", "the same number of ..."),
    (r"\bin each other\b(?!')", "nested"),
    (r"\banother [a-z]+ than\b", "a ... other than"),
    (r'[,;] "" for one\b', '"" if it is one'),
    (r"\ban own\b", "the noun: this worker's, a separate, a field of LARM_FIELDS"),
]
"""Phrases, and what to say instead."""
_HARD = re.compile("|".join(pattern for pattern, _ in HARD), re.IGNORECASE)
_BEGINS = r"(?:Of|What|Such|So|Whose)\b"
"""How no sentence begins: name the thing first."""
_BEGINS_IN_CODE = re.compile(rf'(?:"|#\s*|[.!?]\s+)({_BEGINS}) [a-z]')


def pages() -> list[Path]:
    tops = [ROOT / name for name in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md")]
    return [*tops, *sorted((ROOT / "docs").rglob("*.md"))]


def sentences(markdown: str) -> list[str]:
    """The sentences of paragraphs, items of lists and cells of tables, without markup. A piece of
    code is one word; blocks of code and headings do not count."""
    text = re.sub(r"^```.*?^```$|<!--.*?-->", "", markdown, flags=re.MULTILINE | re.DOTALL)
    blocks: list[list[str]] = [[]]
    for line in text.splitlines():
        if line.startswith("    ") and not blocks[-1]:
            continue  # code
        if not line.strip() or line.startswith("#"):
            blocks.append([])
        elif line.startswith("|"):
            blocks += [[cell] for cell in re.split(r"(?<!\\)\|", line)]
            blocks.append([])
        elif item := re.match(r"\s*(?:[-*]|\d+\.) (.*)", line):
            blocks.append([item[1]])
        else:
            blocks[-1].append(line)
    found = []
    for block in blocks:
        prose = re.sub(r"`[^`]+`", "x", " ".join(block)).replace("**", "")
        prose = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", prose)
        found += re.split(r"(?<=[.!?])\s+", " ".join(prose.split()))
    return [one for one in found if re.search(r"\w", one)]


def hard_in_docs(markdown: str) -> list[str]:
    """The hard phrases of a page."""
    found = []
    for one in sentences(markdown):
        if (begin := re.match(_BEGINS, one)) and not one.endswith("?"):
            found.append(f"{begin[0]} ...")
        found += [match[0] for match in _HARD.finditer(one)]
    return found


def hard_in_code(source: str) -> list[str]:
    """The hard phrases of docstrings, comments and messages, also across lines. Names in code are
    no such phrases."""
    prose = re.sub(r"\"?\s*\n\s*(?:#|f?\")?\s*", " ", source)
    begins = [f"{match[1]} ..." for match in _BEGINS_IN_CODE.finditer(source)]
    return [match[0] for match in _HARD.finditer(prose)] + begins


@cache
def long_shares() -> dict[str, float]:
    """The percentage of long sentences of each page, by its path."""
    shares = {}
    for page in pages():
        lengths = [len(one.split()) for one in sentences(page.read_text("utf-8"))]
        long = sum(length > LONG_WORDS for length in lengths)
        shares[name_of(page)] = round(100 * long / max(1, len(lengths)), 1)
    return shares


@cache
def hard_phrases() -> dict[str, list[str]]:
    """The hard phrases of each file that has any, by its path."""
    docs = {name_of(page): hard_in_docs(page.read_text("utf-8")) for page in pages()}
    modules = sorted((ROOT / "larmspider").rglob("*.py"))
    code = {name_of(path): hard_in_code(path.read_text("utf-8")) for path in modules}
    return {name: found for name, found in (docs | code).items() if found}


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def limits() -> tuple[dict[str, float], dict[str, int]]:
    """Percentages of long sentences, and counts of hard phrases."""
    read = tomllib.loads(LIMITS.read_text("utf-8"))
    return read["long"], read["hard"]


def worse() -> Iterator[str]:
    """A line for each file that is over its limit."""
    shares, counts = limits()
    for name, share in long_shares().items():
        if share > (most := shares.get(name, USUAL_SHARE)):
            yield f"{name}: {share}% of the sentences have over {LONG_WORDS} words, limit {most}%"
    for name, found in hard_phrases().items():
        if len(found) > (limit := counts.get(name, 0)):
            yield f"{name}: {len(found)} hard phrases, limit {limit}: {', '.join(sorted(found))}"


def test_no_file_got_harder_to_read() -> None:
    """Moved code takes its phrases along: ``python -m tests.test_words`` moves the limit."""
    instead = "\n".join(f"  {pattern}: say {better}" for pattern, better in HARD)
    assert not (found := [*worse()]), "\n".join([*found, "Instead of", instead])


def test_limits_go_down() -> None:
    """Where a page or the code became easier to read, and where a file has gone."""
    shares, counts = limits()
    now = long_shares()
    high = {
        name: f"limit {limit}%, now {now.get(name, 0.0)}%"
        for name, limit in shares.items()
        if limit > max(USUAL_SHARE, now.get(name, 0.0)) + BETTER_SHARE
    }
    left = sum(counts.values()) - sum(map(len, hard_phrases().values()))
    assert not high, "lower the limits: python -m tests.test_words"
    assert left <= BETTER_COUNT, "lower the limits: python -m tests.test_words"


def test_sentences_are_told_apart() -> None:
    page = """# What is here

One `a b. c` [two](x.md#y). **Three.** Four
five?

    code, no. sentence

    more

- six
  seven
- eight

| a | b \\| c |
|---|---|
| Nine. Ten | |

```
What.
```
"""
    assert sentences(page) == [
        *("One x two.", "Three.", "Four five?", "six seven", "eight", "a", "b \\| c"),
        *("Nine.", "Ten"),
    ]


def test_hard_phrases_are_found() -> None:
    page = "So it waits. What is it? Whoever asks is told that it goes on with as many as before."
    assert hard_in_docs(page) == ["So ...", "Whoever", "is told", "goes on with"]
    code = """'''Two pages.'''
x = 1  # one in so
# many
# What follows.
raise ValueError(
    "h is no"
    " host of ours"
)
"""
    assert hard_in_code(code) == ["so many", "is no host of", "What ..."]


def test_limits_are_written(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """High limits go down, and limits of deleted files go away. More hard phrases than all limits
    together allow are refused."""
    shares, counts = limits()
    monkeypatch.setattr("tests.test_words.LIMITS", tmp_path / "words.toml")
    write(shares | {"gone.md": 9.0}, counts | {"gone.py": 1_000})
    main()
    assert limits()[0].keys() <= long_shares().keys()
    assert limits()[1] == {name: len(found) for name, found in hard_phrases().items()}
    write(shares, {"README.md": 1})
    with pytest.raises(SystemExit, match=r"hard phrases, limit 1$"):
        main()


def write(shares: Mapping[str, float], counts: Mapping[str, int]) -> None:
    lines = ["# Limits of tests/test_words.py: they only go down (python -m tests.test_words)."]
    lines += ["", "[long]  # percent of sentences over 35 words, where that is over 2"]
    lines += [f'"{name}" = {share}' for name, share in sorted(shares.items())]
    lines += ["", "[hard]  # hard phrases"]
    lines += [f'"{name}" = {count}' for name, count in sorted(counts.items())]
    LIMITS.write_text("\n".join(lines) + "\n", "utf-8")


def main() -> None:
    """Writes the present values as limits. A moved file takes its hard phrases along. A new page
    has at most 2% long sentences."""
    shares, counts = limits()
    hard = {name: len(found) for name, found in hard_phrases().items()}
    if sum(hard.values()) > sum(counts.values()):
        raise SystemExit(f"{sum(hard.values())} hard phrases, limit {sum(counts.values())}")
    long = {name: min(share, shares.get(name, 0.0)) for name, share in long_shares().items()}
    write({name: share for name, share in long.items() if share > USUAL_SHARE}, hard)


if __name__ == "__main__":
    main()
