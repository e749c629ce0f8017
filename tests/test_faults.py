"""benchmarks/faults.py: its table fits the code, and what it says of a fault is so."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks import faults
from benchmarks.faults import BadTableError, Copy, Fault, Log, Outcome, chosen, read_table

FAULTS = read_table()
AREAS = {
    "frontier": 8,
    "traps": 6,
    "revisits": 8,
    "deletes": 7,
    "spellings": 6,
    "cluster": 8,
    "index": 6,
    "search": 9,
    "web": 10,
}
FAULT = Fault("small", "ten is eleven", "one.py", "TEN = 10", "TEN = 11", ("test_one.py",))


def test_each_area_has_its_faults() -> None:
    assert {area: sum(one.area == area for one in FAULTS) for area in AREAS} == AREAS
    assert len(FAULTS) == sum(AREAS.values())


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_each_fault_fits_the_code(fault: Fault) -> None:
    """If you move the code, move the fault in benchmarks/faults.toml."""
    assert fault.problem(faults.ROOT) == ""
    if fault.file.endswith(".py"):
        compile(fault.applied((faults.ROOT / fault.file).read_text("utf-8")), fault.file, "exec")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project of one module and one test."""
    (tmp_path / "larmspider").mkdir()
    (tmp_path / "larmspider" / "__init__.py").touch()
    (tmp_path / "one.py").write_text("TEN = 10\nELEVEN = TEN + 1\n")
    (tmp_path / "test_one.py").write_text(
        "def test_ten():\n    import one\n    assert one.TEN == 10\n"
    )
    return tmp_path


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"old": "TEN = 12"}, "its old text is 0 times in one.py, expected once"),
        ({"old": "TEN"}, "its old text is 2 times in one.py, expected once"),
        ({"file": "two.py"}, "there is no file two.py"),
        ({"new": FAULT.old}, "its new text is the old one"),
        ({"new": "a\nb\nc\nd"}, "its new text has more than 3 lines"),
        ({"tests": ("test_two.py",)}, "there is no file test_two.py"),
        ({"tests": ()}, "it names no tests"),
    ],
)
def test_a_fault_that_does_not_fit_is_named(
    project: Path, change: dict[str, object], problem: str
) -> None:
    assert FAULT.problem(project) == ""
    with pytest.raises(BadTableError, match=r"^'ten is eleven': "):
        faults.check([replace(FAULT, **change)], project)
    assert replace(FAULT, **change).problem(project) == problem


def test_the_copy_is_broken_and_mended_and_the_project_stays(project: Path) -> None:
    with Copy(project) as copy:
        with copy.broken(FAULT):
            assert (copy.root / "one.py").read_text().startswith("TEN = 11\n")
            broken = (copy.root / "one.py").stat().st_mtime
        assert (copy.root / "one.py").read_text() == (project / "one.py").read_text()
        assert (copy.root / "one.py").stat().st_mtime != broken, "else its bytecode would be kept"
    assert not copy.root.exists()
    assert (project / "one.py").read_text().startswith("TEN = 10\n")


def test_the_copy_has_all_but_what_is_made(project: Path) -> None:
    for name in (".venv/x", "crawl/x", "tests/crawl/x", "__pycache__/x", "tests/crawling.py"):
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).touch()
    with Copy(project) as copy:
        found = {path.relative_to(copy.root).as_posix() for path in copy.root.rglob("*")}
    assert {"tests/crawl/x", "tests/crawling.py"} <= found
    assert found.isdisjoint({".venv", "crawl", "__pycache__"})


def test_areas_and_parts_of_names_choose_faults() -> None:
    assert {fault.area for fault in chosen(FAULTS, ["web", "traps"])} == {"web", "traps"}
    assert len(chosen(FAULTS, ["old link texts"])) == 1
    assert chosen(FAULTS, []) == FAULTS
    with pytest.raises(BadTableError, match="--only x-y: no fault has this in its name; expected"):
        chosen(FAULTS, ["x-y"])


def test_a_log_goes_on_until_the_fault_changes(tmp_path: Path) -> None:
    path = tmp_path / "faults.log"
    survived = Outcome(FAULT.name, FAULT.area, caught=False, seconds=1.0, digest=FAULT.digest)
    Log(path).add(survived)
    assert Log(path).of(FAULT, whole=False) == survived
    assert Log(path).of(FAULT, whole=True) is None, "the whole suite has not met it"
    assert Log(path).of(replace(FAULT, new="TEN = 9"), whole=False) is None
    path.write_text("no JSON\n")
    with pytest.raises(BadTableError, match="no log of this command"):
        Log(path)


def test_the_command_lists_and_refuses(capsys: pytest.CaptureFixture[str]) -> None:
    assert faults.main(["--list", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)) == len(FAULTS)
    assert faults.main(["--only", "x-y"]) == 2
    assert capsys.readouterr().err.startswith("faults: --only x-y: ")


@pytest.mark.acceptance
def test_a_test_catches_a_fault_and_another_fault_survives(project: Path) -> None:
    with Copy(project) as copy:
        caught = faults.tried(copy, FAULT, whole=False)
        assert (caught.caught, caught.by) == (True, "test_one.py::test_ten")
        other = replace(FAULT, old="TEN + 1", new="TEN + 2")
        assert faults.tried(copy, other, whole=False).caught is False
        shutil.copy(copy.root / "test_one.py", copy.root / "test_two.py")
        (copy.root / "test_one.py").write_text("def test_ten():\n    assert False\n")
        with pytest.raises(BadTableError, match="fails without the fault, too"):
            faults.tried(copy, FAULT, whole=False)
        with pytest.raises(BadTableError, match="pytest ended with status 2"):
            faults.tried(
                copy, replace(FAULT, file="test_one.py", old="def", new="deff"), whole=False
            )
