"""The name of a file that a response sends."""

import pytest

from larmspider.urls.file_names import name_in, name_of


@pytest.mark.parametrize(
    ("disposition", "name"),
    [
        ("attachment; filename=a.csv", "a.csv"),
        ('attachment; filename="a b.csv"; size=3', "a b.csv"),
        ("attachment; filename=\"a.txt\"; filename*=UTF-8''%C3%A4.csv", "ä.csv"),
        ("attachment; filename*=iso-8859-1'de'%E4.csv; filename=a.txt", "ä.csv"),
        ("attachment; filename*=unheard-of''a.csv", "a.csv"),
        ("attachment; filename*=broken; filename=a.csv", "a.csv"),
        ('inline; FileName = "C:\\\\docs\\\\a.csv"', "a.csv"),
        ('attachment; filename="=?UTF-8?B?w6Q=?= =?iso-8859-1?Q?=F6?=.csv"', "äö.csv"),
        ('attachment; filename="=?no-such?Q?a?=.csv"', "=?no-such?Q?a?=.csv"),
        ('filename="a;b.csv"', "a;b.csv"),
        ("attachment", ""),
        ("", ""),
    ],
)
def test_name_in_content_disposition(disposition: str, name: str) -> None:
    assert name_in(disposition) == name


def test_the_first_name_that_says_a_type_counts() -> None:
    assert name_of("", "http://h/get?id=1", "http://h/a.csv") == "http://h/a.csv"
    assert name_of("a.md", "http://h/b.csv") == "a.md"
    assert name_of("a", "http://h/b.csv") == "http://h/b.csv"
    assert name_of("", "http://h/get") == "http://h/get"


@pytest.mark.parametrize("charset", ["idna", "undefined", "punycode", "rot13", "", "no-such"])
def test_a_charset_that_is_none_of_the_standard_is_utf_8(charset: str) -> None:
    """RFC 8187 3.2.1 knows no other; some of Python's codecs raise for odd names."""
    assert name_in(f"attachment; filename*={charset}''b%C3%A4r.pdf") == "bär.pdf"
