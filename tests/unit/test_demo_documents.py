from __future__ import annotations

import io
from collections import Counter

import pypdfium2
import pytest
from PIL import Image

from app.cli.demo import pdf
from app.cli.demo.documents import Document, documents
from app.cli.demo.pdf_lock import rc4

ALL = documents(seed=1)


def pages(content: bytes, password: str | None = None) -> list[str]:
    opened = pypdfium2.PdfDocument(content, password=password)
    texts = [page.get_textpage().get_text_range() for page in opened]
    opened.close()
    return texts


def of(flaw: str) -> Document:
    return next(document for document in ALL if document.flaw == flaw)


def test_there_are_forty_documents_and_more_of_every_kind_and_some_have_versions() -> None:
    endings = Counter(document.name.rpartition(".")[2] for document in ALL)
    assert len(ALL) >= 40
    assert set(endings) == {"pdf", "docx", "png", "jpg", "csv"}
    assert {len(document.versions) for document in ALL} == {1, 2, 3}
    assert len({document.file_id for document in ALL}) == len(ALL)
    contents = [content for document in ALL for content in document.versions]
    assert len(set(contents)) == len(contents)


def test_the_same_seed_makes_the_same_bytes_and_another_one_others() -> None:
    assert documents(seed=1) == ALL
    assert documents(seed=2) != ALL


def test_every_invoice_opens_with_its_text_on_every_page() -> None:
    for document in ALL:
        if document.name.endswith(".pdf") and not document.flaw:
            number = document.file_id.removeprefix("INV-")
            for version, content in enumerate(document.versions, start=1):
                for text in pages(content):
                    assert f"Rechnung {number}, Fassung {version}" in text


def test_a_locked_pdf_opens_with_its_password_only() -> None:
    (content,) = of("encrypted").versions
    with pytest.raises(pypdfium2.PdfiumError, match="password"):
        pages(content)
    assert "Rechnung 0091" in pages(content, "geheim")[0]


def test_a_truncated_pdf_does_not_open() -> None:
    with pytest.raises(pypdfium2.PdfiumError):
        pages(of("truncated").versions[0])


def test_signs_that_pdf_uses_itself_are_text_like_any_other() -> None:
    content = pdf.written((("(a) \\ b) (c €ß",),), title="x")
    assert pages(content)[0].strip() == "(a) \\ b) (c €ß"


def test_pictures_are_pictures() -> None:
    for document in ALL:
        if document.media_type.startswith("image/"):
            with Image.open(io.BytesIO(document.versions[0])) as image:
                assert image.size == (620, 420)


def test_the_cipher_is_rc4() -> None:
    assert rc4(b"Key", b"Plaintext").hex() == "bbf316e8d940af0ad3"
    assert rc4(b"Key", rc4(b"Key", b"again")) == b"again"
