"""larmspider/urls/acting.py: what acts, and what only looks as if it did."""

from __future__ import annotations

import pytest

from larmspider.urls.acting import acts, changes, without_tokens


@pytest.mark.parametrize(
    "url, word",
    [
        ("http://w/logout", "logout"),
        ("http://w/user/log-out.php", "logout"),
        ("http://w/admin/blog/entry/7/delete/", "delete"),
        ("http://w/delete/17", "delete"),
        ("http://w/page/delete;jsessionid=1", "delete"),
        ("http://w/edit.php?id=4", "edit"),
        ("http://w/user_edit.php", "edit"),
        ("http://w/pages/deletepage.action?id=3", "delete"),
        ("http://w/delete-page/5", "delete"),
        ("http://w/doku.php?id=start&do=revert&rev=7", "revert"),
        ("http://w/doku.php?do=profile_delete", "delete"),
        ("http://w/lib/exe/mediamanager.php?ns=&delete=a.png", "delete"),
        ("http://w/doku.php?id=a&do=x&sectok=ab", "sectok"),
        ("http://w/index.php?title=X&action=watch", "watch"),
        ("http://w/index.php?title=Special:UserLogout", "userlogout"),
        ("http://w/x?op=deleteItem", "delete"),
        ("http://w/x?task[]=remove", "remove"),
        ("http://w/x?_method=put", "put"),
        ("http://w/x?a=1;_wpnonce=ab", "_wpnonce"),
        ("http://w/course/view.php?sesskey=ab", "sesskey"),
    ],
)
def test_acts(url: str, word: str) -> None:
    assert (acts(url) or "").startswith(f'"{word}" in ')


@pytest.mark.parametrize(
    "url",
    [
        "http://w/",
        "http://w",
        "http://delete/",
        "http://w/wiki/Delete",
        "http://w/docs/how-to-delete-a-page",
        "http://w/docs/deletion.html",
        "http://w/editorial.php",
        "http://w/start",
        "http://w/blog/archive/2024",
        "http://w/doku.php?id=how_to_delete",
        "http://w/doku.php?id=start&do=show",
        "http://w/index.php?title=Logout_(album)",
        "http://w/search?q=delete&sort=1",
        "http://w/a%zz?%zz=%zz&&;=",
    ],
)
def test_shows(url: str) -> None:
    assert acts(url) is None


def test_tokens_are_not_for_logs() -> None:
    url = "http://w/x?do=logout;SecTok=ab&a=token&_csrf_token=c&token="
    assert without_tokens(url) == "http://w/x?do=logout;SecTok=***&a=token&_csrf_token=***&token="
    assert without_tokens("http://w/x") == "http://w/x"


@pytest.mark.parametrize(
    "target",
    [
        "abmelden",
        "konto/abmelden?from=7",
        "d%C3%A9connexion",
        "%D0%B2%D1%8B%D0%B9%D1%82%D0%B8",
        "j_spring_security_logout",
        "index.php?page=logout",
        "page/7/delete",
        "delete/7",
        "seite/7/l%C3%B6schen",
        "loeschen.php?id=7",
        "article/7/supprimer",
        "item/7/%D1%83%D0%B4%D0%B0%D0%BB%D0%B8%D1%82%D1%8C",
        "item?%D0%B4%D0%B5%D0%B9%D1%81%D1%82%D0%B2%D0%B8%D0%B5=%D1%83%D0%B4%D0%B0%D0%BB%D0%B8%D1%82%D1%8C",
        "posts/7?_method=delete",
        "posts?op=del&n=7",
        "item/7/edit",
        "delete_item?id=start",
        "removeitem.action?id=7",
        "9f86d081884c/destroy",
    ],
)
def test_signing_out_deleting_and_editing_are_known_without_a_login(target: str) -> None:
    assert changes(f"http://w/{target}")


@pytest.mark.parametrize(
    "target",
    [
        "manual/sql/delete",
        "map/delete?lang=en",
        "sql-delete.html",
        "wiki/abmelden",
        "docs/install",
        "docs/edit/intro",
        "howto/loeschen.html",
        "search?q=logout",
        "how-to-delete-a-page/7",
        "editor/7",
        "install/7",
    ],
)
def test_articles_about_acts_are_fetched_where_nobody_is_signed_in(target: str) -> None:
    assert changes(f"http://w/{target}") is None
