"""The fixture of web pages that are served."""

from tests.web.conftest import served

__all__ = ["served"]
