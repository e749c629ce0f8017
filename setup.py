"""For scrapyd-deploy, which runs this file, and writes one that knows no pyproject.toml if there is
none. Everything is said in pyproject.toml."""

from setuptools import setup

setup()
