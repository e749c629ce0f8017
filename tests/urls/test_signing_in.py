"""Which URLs are links to one login form, and which are pages of their own."""

import pytest

from larmspider.urls.signing_in import form_of, sign_in


@pytest.mark.parametrize(
    "link, form",
    [
        ("/login?next=/page/7", "/login"),
        ("/login/?next=%2Fpage%2F7&lang=de", "/login/?lang=de"),
        ("/users/sign_in?return_to=http%3A%2F%2Fh%2Fa", "/users/sign_in"),
        ("/user/login?destination=node/17", "/user/login"),
        ("/user/register?destination=node/17%23comment-form", "/user/register"),
        ("/signup?redirect=/a", "/signup"),
        ("/join/sign-up?continue=/a", "/join/sign-up"),
        ("/login_form?came_from=http://h/a", "/login_form"),
        ("/accounts/password/reset/?next=/a", "/accounts/password/reset/"),
        ("/users/password/new?return_to=/a", "/users/password/new"),
        ("/lost-password.php?back=/a", "/lost-password.php"),
        (
            "/accounts/google/login/?process=login&next=/a",
            "/accounts/google/login/?process=login",
        ),
        ("/login/github?r=/a", "/login/github"),
        ("/auth/google_oauth2?origin=http://h/a", "/auth/google_oauth2"),
        (
            "/oauth/authorize?client_id=x&redirect_uri=http://h/a&state=9f8e7d",
            "/oauth/authorize?client_id=x",
        ),
        ("/konto/anmelden?ziel=/a", "/konto/anmelden"),
        ("/registrieren?von=/a", "/registrieren"),
        ("/fr/se-connecter?retour=/a", "/fr/se-connecter"),
        ("/saml/login?RelayState=/a", "/saml/login"),
        ("/cas/login?service=http%3A%2F%2Fh%2Fa", "/cas/login"),
        ("/Account/Login.aspx?ReturnUrl=%2fa", "/Account/Login.aspx"),
        ("/index.php?title=Special:UserLogin&returnto=Start", "/index.php?title=Special:UserLogin"),
        ("/index.php?action=login&redirect=a", "/index.php?action=login"),
    ],
)
def test_a_link_to_a_login_is_the_form_without_the_way_back(link, form):
    assert form_of(f"http://h{link}") == f"http://h{form}"


@pytest.mark.parametrize(
    "url",
    [
        "/login", "/wiki/Login", "/docs/login?lang=de", "/docs/login?page=2",
        "/search?q=login&next=/a", "/page?next=2", "/list?continue=abc", "/redirect?redirect=/a",
        "/articles/login-problems?next=/a", "/docs/oauth/authorize/errors/redirect?page=3",
        "/blog/sign-up-numbers?from=/2026", "/catalog?url=/a", "/forum?action=view&next=/register",
        "/case/7?next=8", "/accounts/?next=/a",
    ],
)  # fmt: skip
def test_other_urls_keep_their_parameters(url):
    assert form_of(f"http://h{url}") is None


def test_a_command_at_each_page_is_one_form():
    one, other = sign_in("http://h/Start?action=login"), sign_in("http://h/Other?action=login")
    assert (one.name, other.name) == ("http://h/?action=login", "http://h/?action=login")
