"""Media types, character sets, pages and office parts: the pure parts of the steps."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from jobs.sandbox import Limits
from jobs.steps import archive, media, pdf, text
from jobs.steps.charsets import NotTextError, characters, guess
from jobs.steps.kinds import ChildTask, Hopeless, Made, Said


@pytest.fixture
def read(tmp_path: Path) -> Callable[[str, bytes], Said]:
    def read(media_type: str, body: bytes) -> Said:
        path = tmp_path / "input"
        path.write_bytes(body)
        return text.run(
            ChildTask(path, "", media_type, tmp_path, {"pages": 10}, Limits(output_bytes=10_000))
        )

    return read


Read = Callable[[str, bytes], Said]


def written(tmp_path: Path) -> str:
    return (tmp_path / "text.txt").read_text(encoding="utf-8")


def package(tmp_path: Path, parts: dict[str, str]) -> bytes:
    with zipfile.ZipFile(tmp_path / "package", "w") as target:
        for name, body in parts.items():
            target.writestr(name, body)
    return (tmp_path / "package").read_bytes()


@pytest.mark.parametrize(
    "announced,name,wanted",
    [
        ("Application/PDF; q=1", "a.txt", media.PDF),
        ("", "A.PDF", media.PDF),
        ("application/octet-stream", "a.docx", media.DOCX),
        ("image/jpg", "", "image/jpeg"),
        ("", "a.unknown", ""),
    ],
)
def test_the_announced_type_decides_else_the_name(announced: str, name: str, wanted: str) -> None:
    assert media.expected(announced, name) == wanted


@pytest.mark.parametrize(
    "content,wanted,contradicts",
    [
        (media.HTML, media.PDF, True),
        (media.HTML, media.CSV, True),
        (media.HTML, media.PLAIN, False),
        (media.ZIP, media.DOCX, False),
        (media.ZIP, media.PDF, True),
        (media.PDF, media.PDF, False),
        (media.PNG, "image/jpeg", True),
        ("image/bmp", media.PLAIN, False),
        ("", media.PDF, False),
        (media.PDF, "application/x-ours", False),
    ],
)
def test_content_contradicts_only_where_it_is_certain(
    content: str, wanted: str, *, contradicts: bool
) -> None:
    assert media.contradicts(content, wanted) is contradicts


@pytest.mark.parametrize(
    "body,codec",
    [
        (b"\xef\xbb\xbfid", "utf-8-sig"),
        ("ü".encode("utf-16"), "utf-16"),
        ("Müller".encode(), "utf-8"),
        (b"M\xfcller \x80", "cp1252"),
        (b"\x81\xfc", "latin-1"),
    ],
)
def test_a_character_set_is_told_from_the_bytes(tmp_path: Path, body: bytes, codec: str) -> None:
    path = tmp_path / "a"
    path.write_bytes(body)
    assert guess(path) == codec
    assert "\ufffd" not in "".join(characters(path, codec))


def test_binary_content_is_no_text(tmp_path: Path, read: Read) -> None:
    (tmp_path / "a").write_bytes(b"a\0b")
    with pytest.raises(NotTextError):
        guess(tmp_path / "a")
    assert read(media.PLAIN, b"a\0b") == Hopeless(reason="is binary, not text")


def test_a_page_gives_its_words_and_nothing_else(tmp_path: Path, read: Read) -> None:
    page = (
        "<!doctype html><head><meta charset=windows-1252><title>T</title><script>x()</script>"
        "<style>p{}</style><p>Stra\u00dfe &amp; <b>mehr</b><table><tr><td>a<td>b</table>"
    )
    assert read(media.HTML, page.encode("cp1252")) == (
        Made(file="text.txt", media_type=media.PLAIN, note="charset windows-1252"),
    )
    assert written(tmp_path) == "T\nStraße & mehr\na\tb\n"


def test_a_text_beyond_the_limit_is_refused_not_cut(read: Read) -> None:
    assert read(media.PLAIN, b"x" * 20_000) == Hopeless(reason="result larger than 0 MiB")


X = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"


@pytest.mark.req("D5")
def test_a_sheet_gives_lines_of_cells(tmp_path: Path, read: Read) -> None:
    shared = (
        f'<sst xmlns="{X}"><si><t>Name</t><rPh><t>no</t></rPh></si><si><r><t>A</t></r></si></sst>'
    )
    sheet = (
        f'<worksheet xmlns="{X}"><sheetData><row><c t="s"><v>0</v></c><c><v>119.5</v></c></row>'
        '<row><c t="inlineStr"><is><t>in</t></is></c><c t="s"><v>99</v></c></row></sheetData>'
        "</worksheet>"
    )
    parts = {"xl/sharedStrings.xml": shared, "xl/worksheets/sheet1.xml": sheet}
    assert isinstance(read(media.XLSX, package(tmp_path, parts)), tuple)
    assert written(tmp_path) == "Name\t119.5\nin\t\n"


def test_slides_are_read_in_their_order(tmp_path: Path, read: Read) -> None:
    parts = {
        f"ppt/slides/slide{n}.xml": f'<s xmlns:a="urn:a"><a:p><a:t>{n}</a:t></a:p></s>'
        for n in (10, 2, 1)
    }
    assert isinstance(read(media.PPTX, package(tmp_path, parts)), tuple)
    assert written(tmp_path) == "1\n2\n10\n"


def test_an_open_document_gives_its_paragraphs(tmp_path: Path, read: Read) -> None:
    body = '<o xmlns:t="urn:t"> <t:h>Kopf</t:h><t:p>a<t:s t:c="3"/>b<t:tab/>c</t:p></o>'
    assert isinstance(read(media.ODT, package(tmp_path, {"content.xml": body})), tuple)
    assert written(tmp_path) == "Kopf\na   b\tc\n"


def test_a_document_that_declares_entities_is_refused(tmp_path: Path, read: Read) -> None:
    bomb = '<!DOCTYPE x [<!ENTITY a "aaaa">]><x><p>&a;</p></x>'
    body = package(tmp_path, {"content.xml": bomb})
    assert read(media.ODT, body) == Hopeless(reason="declares XML entities")


@pytest.mark.parametrize("body", [b"", b"PK\x03\x04nothing", b"just words"])
def test_what_is_no_package_is_damaged(read: Read, body: bytes) -> None:
    assert read(media.DOCX, body) == Hopeless(reason="damaged")


@pytest.mark.parametrize(
    "body,what",
    [
        (b"just words %%EOF", "it has no PDF header"),
        (b"%PDF-1.7\n1 0 obj", "it is truncated, its end is missing"),
        (b"%PDF-1.7\nxref\n%%EOF", "its cross-reference table or its pages are broken"),
    ],
)
def test_of_a_damaged_pdf_is_said_what_is_missing(read: Read, body: bytes, what: str) -> None:
    assert read(media.PDF, body) == Hopeless(reason=f"damaged: {what}")


def test_an_office_document_with_a_password_is_encrypted(read: Read) -> None:
    assert read(media.DOCX, b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1") == Hopeless(reason="encrypted")


@pytest.mark.parametrize(
    "name,shown,outside",
    [
        ("ok/readme.txt", "ok/readme.txt", False),
        ("..\\x", "..\\\\x", True),
        ("a/../../b", "a/../../b", True),
        ("C:x", "C:x", True),
        ("a\u202egpj.exe", "a\\u202egpj.exe", False),
        ("a\nb", "a\\nb", False),
    ],
)
def test_names_in_archives_are_shown_escaped(name: str, shown: str, *, outside: bool) -> None:
    assert archive.escaped(name) == shown
    assert archive.is_outside(name) is outside


@pytest.mark.req("D6")
def test_a_cleaned_document_refers_to_nothing_outside(tmp_path: Path) -> None:
    rels = (
        '<Relationships xmlns="urn:r"><Relationship Id="1" Type="t/image" TargetMode="External"'
        ' Target="http://x/"/><Relationship Id="2" Type="t/hyperlink" TargetMode="External"'
        ' Target="http://y/"/><Relationship Id="3" Type="t/image" Target="a.png"/></Relationships>'
    )
    cleaned, had_links = pdf.clean([rels.encode()], is_relationships=True)
    assert had_links
    assert (b"http://x/" in cleaned, b"http://y/" in cleaned) == (False, True)
    assert b"a.png" in cleaned
    fields = (
        '<w xmlns:w="urn:w"><w:instrText>INCLUDEPICTURE "file:///etc/x"</w:instrText>'
        '<w:fldSimple w:instr="DDEAUTO a b"><w:t>x</w:t></w:fldSimple><w:t>a &amp; b</w:t></w>'
    )
    cleaned, had_links = pdf.clean([fields.encode()], is_relationships=False)
    assert had_links
    assert (b"etc" in cleaned, b"DDE" in cleaned, b"a &amp; b" in cleaned) == (False, False, True)
