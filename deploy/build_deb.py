"""Builds dist/larmspider_VERSION_ARCHITECTURE.deb from a wheel of larmspider.

    python deploy/build_deb.py dist/larmspider-1.0.0-py3-none-any.whl dist

Needs the Debian packages debhelper, dpkg-dev and python3-venv. Pip fetches what larmspider needs,
or takes it from the folder that PIP_FIND_LINKS names.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
from email.utils import formatdate
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
NEEDED = ("dpkg-deb", "dh")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("wheel", type=Path)
    parser.add_argument("folder", type=Path, nargs="?", default=Path("dist"))
    given = parser.parse_args()
    if missing := [name for name in NEEDED if shutil.which(name) is None]:
        print(f"{', '.join(missing)}: not installed (debhelper, dpkg-dev)", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory(prefix="deb-") as temporary:
        source = Path(temporary) / "larmspider"
        shutil.copytree(ROOT / "deploy" / "debian", source / "debian")
        shutil.copy(ROOT / "deploy" / "larmspider.service", source / "debian")
        shutil.copy(given.wheel, source)
        version = debian_version(given.wheel.name.split("-")[1])
        (source / "debian" / "changelog").write_text(
            f"larmspider ({version}) unstable; urgency=medium\n\n"
            "  * CHANGELOG.md has the changes.\n\n"
            f" -- The larmspider project <larmspider@localhost>  {formatdate()}\n",
            "utf-8",
        )
        done = subprocess.run(
            ["debian/rules", "binary"],
            cwd=source,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        built = list(Path(temporary).glob("larmspider_*.deb"))
        if done.returncode or not built:
            print(done.stdout, file=sys.stderr)
            return 1
        given.folder.mkdir(parents=True, exist_ok=True)
        print(shutil.copy(built[0], given.folder))
    return 0


def debian_version(version: str) -> str:
    """1.0.0rc1 comes before 1.0.0: 1.0.0~rc1."""
    return re.sub(r"(?<=\d)(a|b|rc|\.dev)", r"~\1", version)


if __name__ == "__main__":
    sys.exit(main())
