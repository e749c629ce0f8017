"""The mapping of an index has all fields of our own index."""

from __future__ import annotations

import json

from larmspider.index.anchors import NO_LINKS
from larmspider.index.schema import indexed_page
from larmspider.items import Page
from larmspider.plugins.opensearch.connection import template
from larmspider.plugins.opensearch.documents import DocumentMaker


def test_a_document_has_no_field_that_the_mapping_lacks() -> None:
    page = Page(
        "http://wiki.example/hr/a.html",
        mime="text/html",
        title="Druckertreiber",
        text="Ein Druckertreiber für alle Drucker, --prefix",
        language="de",
        fetched=1e9,
        fields={"room": ["1"]},
        digest="ab",
        body=b"x",
    )
    ((_, document),) = DocumentMaker("english").documents(
        indexed_page(page, "ab"), NO_LINKS, 1, ["a:open"]
    )
    assert json.loads(document).keys() <= template("english")["mappings"]["properties"].keys()
