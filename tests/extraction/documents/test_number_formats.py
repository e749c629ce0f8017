"""Numbers as spreadsheets show them (ECMA-376-1 18.8.31)."""

import pytest

from larmspider.extraction.documents.office.number_formats import BUILTIN, shown

EURO = '_-* #,##0.00\\ [$€-407]_-;\\-* #,##0.00\\ [$€-407]_-;_-* "-"??\\ [$€-407]_-;_-@_-'


@pytest.mark.parametrize(
    ("value", "code", "text"),
    [
        (47115, "00000000", "00047115"),
        (4711, "000-000", "004-711"),
        (49301234567, "+00\\ 000\\ 000000", "+49 301 234567"),
        (1001234567, "(000) 000-0000", "(100) 123-4567"),
        (0.195, "0.0%", "19.5%"),
        (0.25, "0 %", "25 %"),
        (1234.5, "#,##0.00", "1,234.50"),
        (2.675, "0.00", "2.68"),
        (-0.001, "0.00", "0.00"),
        (1234.5, '#,##0.00\\ "€"', "1,234.50 €"),
        (1234.5, "$#,##0.00", "$1,234.50"),
        (1234.5, EURO, "1,234.50 €"),
        (-1234.5, EURO, "-1,234.50 €"),
        (0, EURO, "-   €"),
        (-5, "0_);(0)", "(5)"),
        (-1234.5, "#,##0.00;[Red]-#,##0.00", "-1,234.50"),
        (0, '0;-0;"none"', "none"),
        (5, '"Nr. "0', "Nr. 5"),
        (5, 'General" pcs"', "5 pcs"),
        (150, '[>100]"many";"few"', "many"),
        (50, '[>100]"many";"few"', "few"),
        (1234567, "#,##0,", "1,235"),
        (1234567, '0.0,,"M"', "1.2M"),
        (12345, "0.00E+00", "1.23E+04"),
        (0.00012345, "0.00E+00", "1.23E-04"),
        (2.25, "# ?/?", "2 1/4"),
        (0.1234, "0.###", "0.123"),
        (0, "#", ""),
        (3, "@", ""),
        (1e299, "0", ""),
        (5, "0;;;", "5"),
    ],
)
def test_a_number_is_shown_by_its_format(value, code, text):
    assert shown(float(value), code) == text


@pytest.mark.parametrize(
    ("value", "code", "text"),
    [
        (45357, "dd.mm.yyyy", "06.03.2024"),
        (45357, "yyyy\\-mm\\-dd", "2024-03-06"),
        (45357, "d/m/yy", "6/3/24"),
        (45357, "dddd, d mmm yyyy", "Wednesday, 6 Mar 2024"),
        (45357, "[$-407]d. mmmm yyyy", "6. März 2024"),
        (45357, "[$-F800]dddd\\,\\ mmmm\\ dd\\,\\ yyyy", "Wednesday, March 6, 2024 06.03.2024"),
        (45357, "mmmmm", "M"),
        (45357.75, "dd.mm.yyyy hh:mm", "06.03.2024 18:00"),
        (45357.5104166667, "hh:mm:ss", "12:15:00"),
        (0.5, "h:mm AM/PM", "12:00 PM"),
        (1.5, "[h]:mm", "36:00"),
        (0.0423, "mm:ss.0", "00:54.7"),
        (1, "d.m.yyyy", "1.1.1900"),
        (61, "d.m.yyyy", "1.3.1900"),
        (-1, "d.m.yyyy", ""),
        (9e9, "d.m.yyyy", ""),
    ],
)
def test_a_date_is_shown_by_its_format(value, code, text):
    assert shown(float(value), code) == text


def test_dates_since_1904():
    assert shown(43895.0, "dd.mm.yyyy", since_1904=True) == "06.03.2024"


def test_all_builtin_formats_show_something():
    assert all(shown(45357.5, code) for code in BUILTIN.values())
    assert shown(45357.0, BUILTIN[14]) == "06.03.2024 3/6/2024"


@pytest.mark.parametrize(
    "code",
    [
        *("", ";", '"', "[", "[>", "\\", "_", "*", "E+", "0E+", "/", "?/", "0/0", ".", ",", "%"),
        *("[h", "a" * 999, "0" * 999, "#,##0." + "0" * 900, "[>1][<2]", "General General", "[$]"),
        *("yyyy" * 99, "[$-]"),
    ],
)
def test_no_format_is_an_error(code):
    for value in (0.0, -1.5, 1e308, 45357.5, float("inf"), float("nan")):
        assert isinstance(shown(value, code), str)
