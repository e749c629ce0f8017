"""Signing in, in Chromium, in three languages, at a real provider on another site."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.server.test_app import Console
from tests.server.test_walk import type_in
from tests.support.servers.oidc import OidcServer
from tests.support.web.axe import findings
from tests.support.web.browser import Browser

pytestmark = pytest.mark.acceptance
WORDS = {
    "en": ("Sign in with Corp", "Your searches find", "password is wrong", "Sign out"),
    "de": ("Mit Corp anmelden", "Ihre Suchen finden", "Passwort ist falsch", "Abmelden"),
    "fr": (
        "Se connecter avec Corp",
        "Vos recherches trouvent",
        "mot de passe est incorrect",
        "déconnecter",
    ),
}


def test_in_three_languages(oidc: OidcServer, tmp_path: Path) -> None:
    """From the wanted page to the provider and back, out here and there, a wrong password; no page
    has a finding of axe-core or an error in the console."""
    oidc.secret_in(tmp_path)
    with Browser() as browser, Console(tmp_path, oidc=oidc.settings) as console:
        console.users.add("ada", "operator", "correct horse")
        # localhost is another site than 127.0.0.1: strict cookies do not come with redirects back
        here = console.url.replace("127.0.0.1", "localhost")
        for language, words in WORDS.items():
            command: Callable[..., Any] = browser.driver.execute_cdp_cmd
            agent = browser.script("return navigator.userAgent")
            named = {"userAgent": agent, "acceptLanguage": language}
            command("Emulation.setUserAgentOverride", named)
            walk(browser, here, words)
            assert browser.find("html").get_attribute("lang") == language
        log = (tmp_path / "audit.log").read_text()
        assert log.count("\tanna@corp\t127.0.0.1\tsign in\tCorp\tdone") == 3
        assert "wrong horse" not in log


def walk(browser: Browser, here: str, words: tuple[str, ...]) -> None:
    link, account, wrong, leave = words
    browser.open(f"{here}/account")
    assert findings(browser) == []
    way = browser.find("a.button")
    assert way.text == link
    way.click()
    browser.until(lambda: browser.find("[name=login]"), "the provider").send_keys("anna")
    type_in(browser, "password", "any")
    browser.find("form [type=submit]").click()
    consent = browser.until(lambda: browser.find("[name=prompt][value=consent]"), "consent")
    consent.submit()
    browser.until(lambda: account in browser.text("main"), "the account")
    assert browser.driver.current_url == f"{here}/account"
    assert "group:hr" in browser.text("main")
    assert findings(browser) == []
    out = browser.find("header form button")
    assert leave in out.text
    out.click()
    browser.until(lambda: browser.find("[name=logout][value=yes]"), "there, too").click()
    browser.until(lambda: browser.driver.current_url == f"{here}/login", "the sign-in page")
    type_in(browser, "name", "ada")
    type_in(browser, "password", "wrong horse")
    browser.find("main form button").click()
    browser.until(lambda: wrong in browser.text("[role=alert]"), "the wrong password")
    assert findings(browser) == []
    browser.errors()  # the answer 403 is in the console
    type_in(browser, "password", "correct horse")
    browser.find("main form button").click()
    browser.until(lambda: browser.find("header form button"), "signed in")
    browser.find("header form button").click()
    browser.until(lambda: browser.all("a.button"), "signed out")
    assert browser.errors() == []
    browser.open(f"{here}/login")
