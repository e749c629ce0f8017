"""larmspider/urls/normalizer.py: the forms of URLs by a crawl's settings."""

from __future__ import annotations

from scrapy.settings import Settings

from larmspider.urls.normalizer import UrlForms, forms_from_settings


def test_the_parts_of_a_crawl_have_one_memo() -> None:
    """Its settings are frozen. Others may change yet, and have one for each that asks."""
    settings = Settings({"LARM_CANONICAL_RULES": "never"})
    early = forms_from_settings(settings)
    settings.set("LARM_CANONICAL_RULES", "always")
    settings.freeze()
    late = forms_from_settings(settings)
    assert early("http://h/A").normalized == "http://h/A"
    assert late("http://h/A").normalized == "http://h/a"
    assert UrlForms.from_settings(settings) is UrlForms.from_settings(settings)
    assert UrlForms.from_settings(settings)("http://h/A") is late("http://h/A")
    assert UrlForms.from_settings(settings) is not UrlForms.from_settings(settings.copy())
