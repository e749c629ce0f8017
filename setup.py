"""Everything is said in pyproject.toml, but for the user's pages, which the wheel has from docs/
(larmspider help). scrapyd-deploy runs this file, too."""

import shutil
import sys
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py


class WithGuide(build_py):
    """Copies docs/*.md into larmspider/guide of the build."""

    def run(self) -> None:
        super().run()
        if self.editable_mode or "bdist_egg" in sys.argv:  # an egg has the package alone
            return
        guide = Path(self.build_lib) / "larmspider" / "guide"
        guide.mkdir(parents=True, exist_ok=True)
        for page in (Path(__file__).parent / "docs").glob("*.md"):
            shutil.copy(page, guide)


setup(cmdclass={"build_py": WithGuide})
