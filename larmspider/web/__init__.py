"""The web application: a crawl seen and controlled from the browser (docs/operations.md).

Here belong pages, templates, sign-in and the server. What the pages show is read by status/ and
reports/; what an operator may do is in control/.
"""

from larmspider.web.extension import WebExtension

__all__ = ["WebExtension"]
