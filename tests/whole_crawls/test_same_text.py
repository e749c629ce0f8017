"""The same files on a share, behind nginx, behind a server that knows no types, in a zip and in a
mail: each has the same text everywhere."""

from __future__ import annotations

from binascii import b2a_uu
from email.message import EmailMessage
from pathlib import Path
from urllib.parse import unquote

import pytest

from larmspider.items import part_url
from larmspider.search.searcher import Searcher
from tests.support.crawling import crawl
from tests.support.documents.corpus import SAMPLES, zipped
from tests.support.documents.pictures import XMP, exif, heif, saved
from tests.support.servers.nginx import Nginx
from tests.support.servers.scripted import Request, ScriptedServer

pytestmark = pytest.mark.acceptance

TEXTS = {
    "README": "Read this first: the crane is locked at night.\n",
    "build.sh": "#!/bin/sh\n# builds the harbour\necho done\n",
    "site.yml": "harbour:\n  cranes: 3\n",
    "setup.ps1": "Write-Output 'harbour ready'\r\n",
    "odd.log": "2024-01-01 crane 3 – gestört\n",
    "tool.1": ".TH TOOL 1\n.SH NAME\ntool \\- lifts\n.BI \\-\\-load= tons\n",
    "data.tsv": "crane\tload\nnorth\t30 t\n",
    "drawing.svg": "<svg xmlns='http://www.w3.org/2000/svg'><text>north quay</text></svg>",
    "plan.ics": "BEGIN:VCALENDAR\r\nBEGIN:VEVENT\r\nSUMMARY:Crane test\r\nEND:VEVENT\r\n"
    "END:VCALENDAR\r\n",
    "page.xhtml": '<?xml version="1.0"?><html xmlns="http://www.w3.org/1999/xhtml"><head>'
    "<title>Quay</title></head><body><p>the east quay</p></body></html>",
}
QUERY = (
    '<office:document-content xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0"'
    ' xmlns:db="urn:oasis:names:tc:opendocument:xmlns:database:1.0"><office:body><office:database>'
    '<db:queries><db:query db:name="Late ships" db:command="SELECT ship"/></db:queries>'
    "</office:database></office:body></office:document-content>"
)
FILES = {name: text.encode() for name, text in TEXTS.items()} | {
    f"sample.{name}": sample.body for name, sample in SAMPLES.items()
}
FILES["latin.txt"] = "Schöne Grüße vom Kai, der Kran ist geölt.".encode("latin-1")
MAILS = [f"From: {name}@h.example\nSubject: {name}\n\nfirst {name}\n" for name in ("ada", "bob")]
MEMBERS = {"late.mmdf": "2.eml", "old.rmail": "1.eml", "plan.uu": "plan.docx"}
"""Files whose text is in a part."""
FILES |= {
    "late.mmdf": "".join(f"\1\1\1\1\n{mail}\1\1\1\1\n" for mail in MAILS).encode(),
    "old.rmail": b"BABYL OPTIONS:\n\x1f\x0c\n0,,\n*** EOOH ***\n%b\x1f" % MAILS[0].encode(),
    "plan.uu": b"begin 644 plan.docx\n%b`\nend\n"
    % b"".join(
        b2a_uu(SAMPLES["docx"].body[at : at + 45]) for at in range(0, len(SAMPLES["docx"].body), 45)
    ),
    "ships.odb": zipped(
        {"mimetype": "application/vnd.oasis.opendocument.base", "content.xml": QUERY}
    ),
    "quay.heic": heif(b"heic"),
    "quay.avif": heif(b"avif", is_inside=True, version=1),
    "quay.jpg": saved("JPEG", exif=exif()),
    "quay.webp": saved("WEBP", exif=exif(), xmp=XMP),
}
FILES["program"] = b"\x7fELF" + bytes(range(256)) * 8


def a_mail() -> bytes:
    mail = EmailMessage()
    mail["Subject"], mail["From"] = "All of it", "ada@h.example"
    mail.set_content("See the files.\n")
    for name, body in FILES.items():
        mail.add_attachment(body, maintype="application", subtype="octet-stream", filename=name)
    return mail.as_bytes()


def names() -> list[str]:
    """Names of the files; of an archive or mailbox the name of a part instead."""
    insides = MEMBERS | {f"sample.{name}": sample.part for name, sample in SAMPLES.items()}
    return [f"{name}/{inside}" if (inside := insides.get(name)) else name for name in FILES]


def texts(searcher: Searcher, place: str) -> dict[str, str]:
    """The text of each file in a folder (``http://h``) or in a document (``http://h/x.zip``)."""
    found = {}
    for name in names():
        file, _, part = name.partition("/")
        is_folder = not place.endswith((".zip", ".eml"))
        of_part = part_url(f"{place}/{file}", part) if part else f"{place}/{file}"
        document = searcher.get(of_part if is_folder else part_url(place, name))
        found[name] = "nothing" if document is None else document.text
    return found


def test_a_file_has_the_same_text_wherever_it_lies(tmp_path: Path) -> None:
    share = tmp_path / "share"
    share.mkdir()
    for name, body in FILES.items():
        (share / name).write_bytes(body)
    links = "".join(f"<a href='{name}'>a file</a> " for name in FILES)
    index = b"<title>all</title>" + links.encode()
    (tmp_path / "www").mkdir()
    for name, body in {**FILES, "index.html": index}.items():
        (tmp_path / "www" / name).write_bytes(body)

    def nothing_known(request: Request) -> tuple[int, dict[str, str], bytes]:
        name = unquote(request.target.rpartition("/")[2])
        types = {"": "text/html", "all.zip": "application/zip", "all.eml": "message/rfc822"}
        bodies = {"": index, "all.zip": zipped(dict(FILES)), "all.eml": a_mail(), **FILES}
        if name not in bodies:
            return 404, {}, b""
        return 200, {"Content-Type": types.get(name, "application/octet-stream")}, bodies[name]

    with (
        Nginx({"127.0.0.7": tmp_path / "www"}) as nginx,
        ScriptedServer({"*": nothing_known}) as bare,
    ):
        places = [f"file://{share}", nginx.url("127.0.0.7", ""), bare.url("")]
        seeds = [*(f"{place}/" for place in places), bare.url("/all.zip"), bare.url("/all.eml")]
        places += seeds[3:]
        ran = crawl(" ".join(seeds), tmp_path, LARM_FILE_ROOTS=str(share))
    assert ran.status == 0, ran.err
    searcher = Searcher.open(tmp_path / "crawl" / "index")
    on_share = texts(searcher, places[0])
    assert "nothing" not in on_share.values()
    assert [name for name, text in on_share.items() if not text] == ["program"]
    for place in places[1:]:
        assert texts(searcher, place) == on_share, place
