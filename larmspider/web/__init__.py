"""The web application: a crawl seen and controlled from the browser (docs/operations.md).

This room has pages, templates, sign-in and the server. status/ and reports/ read the data that the
pages show; control/ has the actions of an operator.
"""

from larmspider.web.extension import WebExtension

__all__ = ["WebExtension"]
