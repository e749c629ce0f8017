"""OpenSearch's jars by Maven, and our program that starts a node: once, into a cache.

The cache is larmspider-tests/ in XDG_CACHE_HOME (~/.cache), 100 MB. What is built is named for
pom.xml and OpenSearchNode.java, so a change of these builds anew.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
from hashlib import sha256
from pathlib import Path

_HERE = Path(__file__).parent
_SOURCES = ("pom.xml", "OpenSearchNode.java", "log4j2.properties")
_BUILD_SECS = 900
"""Maven loads 50 MB."""
PROGRAMS = ("java", "javac", "mvn")


def missing_programs() -> list[str]:
    return [name for name in PROGRAMS if shutil.which(name) is None]


def class_path() -> str:
    """The class path of OpenSearchNode. Raises RuntimeError."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "larmspider-tests"
    name = sha256(b"".join((_HERE / source).read_bytes() for source in _SOURCES)).hexdigest()[:16]
    built = cache / f"opensearch-{name}"
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / "lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        if not (built / "classpath").exists():
            shutil.rmtree(built, ignore_errors=True)
            built.mkdir()
            _build(cache / "maven", built)
        return f"{built}:{(built / 'classpath').read_text()}"


def _build(repository: Path, built: Path) -> None:
    jars = built / "jars"
    _run(
        *("mvn", "-q", "-B", "-f", str(_HERE / "pom.xml"), f"-Dmaven.repo.local={repository}"),
        *("dependency:build-classpath", f"-Dmdep.outputFile={jars}"),
    )
    path = jars.read_text().strip()
    _run("javac", "-cp", path, "-d", str(built), str(_HERE / "OpenSearchNode.java"))
    shutil.copy(_HERE / "log4j2.properties", built)
    jars.write_text(path)
    jars.rename(built / "classpath")  # last: now it is complete


def _run(*command: str) -> None:
    ran = subprocess.run(command, capture_output=True, text=True, timeout=_BUILD_SECS, check=False)
    if ran.returncode:
        raise RuntimeError(f"{command[0]}: {(ran.stdout + ran.stderr).strip()[-2000:]}")
