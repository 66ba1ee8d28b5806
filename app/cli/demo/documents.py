"""The documents of the sample platform: invoices, letters, scans and lists, and two broken ones.

All are made on the spot from a seed: the same seed gives the same bytes.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import Literal

from app.cli.demo import office, pdf
from app.cli.demo.pdf_lock import Lock
from app.clock import SeededDice

_PDF, _PNG, _JPEG, _CSV = "application/pdf", "image/png", "image/jpeg", "text/csv"
_DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
_COMPANIES = (
    "Bäckerei Öztürk",
    "Müller & Söhne GmbH",
    "Ateliers Lefèvre",
    "Nordwind Logistik AG",
    "Čapek s.r.o.",
    "Hansen Elektro",
)
_GOODS = ("Schrauben M6", "Kabel 3x1,5", "Papier A4", "Mehl Typ 550", "Dichtung 12 mm", "Lampe E27")
_PROJECTS = ("P-100", "P-200", "P-300")
Flaw = Literal["", "truncated", "encrypted"]


@dataclass(frozen=True, slots=True)
class Document:
    """A file of the platform: its versions from 1, and what is wrong with all of them."""

    file_id: str
    name: str
    media_type: str
    project: str
    versions: tuple[bytes, ...] = field(repr=False)
    flaw: Flaw = ""


def documents(*, seed: int = 1) -> tuple[Document, ...]:
    """At least 40 documents of seven kinds; some have two or three versions."""
    press = _Press(SeededDice(seed))
    invoices = (press.invoice(number, versions=_versions(number)) for number in range(1, 23))
    letters = (press.letter(number, versions=_versions(number)) for number in range(1, 9))
    scans = (press.scan(number, form="PNG") for number in range(1, 6))
    photos = (press.scan(number, form="JPEG") for number in range(6, 10))
    lists = (press.listing(number, charset="utf-8") for number in range(1, 4))
    old_lists = (press.listing(number, charset="cp1252") for number in range(4, 6))
    return (*invoices, *letters, *scans, *photos, *lists, *old_lists, *press.broken())


def _versions(number: int) -> int:
    return 3 if number % 7 == 0 else 2 if number % 3 == 0 else 1


@dataclass(slots=True)
class _Press:
    dice: SeededDice

    def invoice(self, number: int, *, versions: int) -> Document:
        made = tuple(
            pdf.written(self._pages(number, version), title=f"Rechnung {number:04d}")
            for version in range(1, versions + 1)
        )
        return self._document(f"INV-{number:04d}", f"Rechnung {number:04d}.pdf", _PDF, made)

    def letter(self, number: int, *, versions: int) -> Document:
        made = tuple(
            office.docx((f"Lieferschein {number:04d}, Fassung {version}", *self._lines(12)))
            for version in range(1, versions + 1)
        )
        return self._document(f"LET-{number:04d}", f"Lieferschein {number:04d}.docx", _DOCX, made)

    def scan(self, number: int, *, form: Literal["PNG", "JPEG"]) -> Document:
        lines = (f"Beleg {number:04d}", *self._lines(8))
        made = office.picture(lines, form=form, shade=self._upto(90))
        ending, kind = ("png", _PNG) if form == "PNG" else ("jpg", _JPEG)
        return self._document(f"SCN-{number:04d}", f"Beleg {number:04d}.{ending}", kind, (made,))

    def listing(self, number: int, *, charset: str) -> Document:
        rows = [f"{n};{self._pick(_GOODS)};{self._upto(900)},{n:02d} €" for n in range(1, 41)]
        text = "\r\n".join(["Nummer;Ware;Größe und Preis", *rows, ""])
        name = f"Stückliste {number:04d}.csv"
        return self._document(f"LST-{number:04d}", name, _CSV, (text.encode(charset),))

    def broken(self) -> tuple[Document, Document]:
        whole = pdf.written(self._pages(90, 1), title="Rechnung 0090")
        half = whole[: len(whole) // 4]
        lock = Lock("geheim", hashlib.sha256(b"INV-0091").digest()[:16])
        locked = pdf.written(self._pages(91, 1), title="Rechnung 0091", lock=lock)
        return (
            self._document("INV-0090", "Rechnung 0090 (halb).pdf", _PDF, (half,), "truncated"),
            self._document("INV-0091", "Rechnung 0091 (zu).pdf", _PDF, (locked,), "encrypted"),
        )

    def _document(
        self, file_id: str, name: str, kind: str, made: tuple[bytes, ...], flaw: Flaw = ""
    ) -> Document:
        return Document(file_id, name, kind, self._pick(_PROJECTS), made, flaw)

    def _pages(self, number: int, version: int) -> tuple[pdf.Page, ...]:
        count = 1 + (number + version) % 4
        head = (f"Rechnung {number:04d}, Fassung {version}", f"An: {self._pick(_COMPANIES)}", "")
        return tuple(
            (*head, *self._lines(18), "", f"Seite {page} von {count}")
            for page in range(1, count + 1)
        )

    def _lines(self, count: int) -> tuple[str, ...]:
        return tuple(
            f"{n:2d}. {self._pick(_GOODS)}  {1 + self._upto(40)} Stück, {self._upto(500)},50 EUR"
            for n in range(1, count + 1)
        )

    def _pick(self, choices: tuple[str, ...]) -> str:
        return choices[self._upto(len(choices))]

    def _upto(self, limit: int) -> int:
        return int(self.dice.jitter() * limit)
