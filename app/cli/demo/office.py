"""Word documents and pictures, made on the spot."""

from __future__ import annotations

import io
import zipfile
from xml.sax.saxutils import escape

_WHEN = (2026, 11, 30, 10, 0, 0)
_XML = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'
_PACKAGE = "http://schemas.openxmlformats.org/package/2006"
_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
_MAIN = "application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"
_TYPES = (
    f'{_XML}<Types xmlns="{_PACKAGE}/content-types">'
    '<Default Extension="rels" '
    'ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
    f'<Override PartName="/word/document.xml" ContentType="{_MAIN}"/></Types>'
)
_RELATIONS = (
    f'{_XML}<Relationships xmlns="{_PACKAGE}/relationships"><Relationship Id="rId1" '
    f'Type="{_OFFICE}/officeDocument" Target="word/document.xml"/></Relationships>'
)


def docx(lines: tuple[str, ...]) -> bytes:
    """A Word document with one paragraph a line."""
    paragraphs = "".join(
        f'<w:p><w:r><w:t xml:space="preserve">{escape(line)}</w:t></w:r></w:p>' for line in lines
    )
    document = f'{_XML}<w:document xmlns:w="{_WORD}"><w:body>{paragraphs}</w:body></w:document>'
    parts = {
        "[Content_Types].xml": _TYPES,
        "_rels/.rels": _RELATIONS,
        "word/document.xml": document,
    }
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in parts.items():
            # Fixed times: the same seed makes the same bytes.
            archive.writestr(zipfile.ZipInfo(name, _WHEN), text, zipfile.ZIP_DEFLATED)
    return target.getvalue()


def picture(lines: tuple[str, ...], *, form: str, shade: int) -> bytes:
    """A scan: lines of text on tinted paper, as ``PNG`` or ``JPEG``."""
    from PIL import Image, ImageDraw

    paper = (255, 250 - shade % 40, 235 - shade % 90)
    image = Image.new("RGB", (620, 420), paper)
    pen = ImageDraw.Draw(image)
    pen.rectangle((16, 16, 604, 404), outline=(40, 60, 120), width=3)
    for number, line in enumerate(lines):
        pen.text((40, 40 + 22 * number), line, fill=(20, 20, 20))
    target = io.BytesIO()
    image.save(target, form)
    return target.getvalue()
