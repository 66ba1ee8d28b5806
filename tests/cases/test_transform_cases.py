"""Cases D: what a step alone shows, in real child processes."""

from __future__ import annotations

import hashlib
import io
import os
import shutil
import socket
import time
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from PIL import Image

from domain.outcomes import Again, Dead, Done
from domain.recipes import Parameter, Step
from jobs.sandbox import Limits, Sandbox
from jobs.steps import (
    PRELOADED,
    NotApplicable,
    Output,
    Performed,
    StepTask,
    parse_parameters,
    perform,
)

FILES = Path(__file__).parent / "files"
Perform = Callable[..., Performed]


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    sandbox = Sandbox(slots=2, modules=PRELOADED)
    yield sandbox
    sandbox.close()


@pytest.fixture
def step(sandbox: Sandbox, tmp_path: Path) -> Perform:
    """Performs a step for one of the case files, or for bytes under a name."""
    counter = iter(range(1000))

    def run(use: str, file: str, body: bytes | None = None, **given: object) -> Performed:
        limits = given.pop("limits", Limits(wall_s=20))
        attempt, media_type = given.pop("attempt", 1), given.pop("media_type", "")
        assert isinstance(limits, Limits)
        assert isinstance(attempt, int)
        path = FILES / file
        if body is not None:
            path = tmp_path / f"body-{next(counter)}"
            path.write_bytes(body)
        folder = tmp_path / f"scratch-{next(counter)}"
        folder.mkdir()
        task = StepTask(
            step=Step(name="it", use=use, parameters=_parameters(use, given)),
            input_path=path,
            input_sha256=hashlib.sha256(path.read_bytes()).hexdigest(),
            input_size_bytes=path.stat().st_size,
            media_type=str(media_type),
            name=file,
            folder=folder,
            attempt=attempt,
        )
        return perform(task, limits=limits, sandbox=sandbox)

    return run


def _parameters(use: str, given: dict[str, object]) -> tuple[tuple[str, Parameter], ...]:
    parsed = parse_parameters(use, given)
    assert not isinstance(parsed, str), parsed
    return parsed


def only(performed: Performed) -> Output:
    assert isinstance(performed, Done), performed
    assert not isinstance(performed.result, NotApplicable), performed
    (output,) = performed.result
    return output


def picture_of(performed: Performed) -> Image.Image:
    with Image.open(only(performed).path) as picture:
        picture.load()
        return picture


def text_of(performed: Performed) -> str:
    return only(performed).path.read_text(encoding="utf-8")


@pytest.mark.req("D5")
def test_the_plain_good_case_gives_text_and_picture(step: Perform) -> None:
    text = text_of(step("text", "pdf-ok-2-pages.pdf"))
    picture = step("preview", "pdf-ok-2-pages.pdf", width=300)
    assert "Rechnung 2026-0001\nBetrag 119,00 EUR" in text
    assert "Seite zwei\nEnde" in text
    assert only(picture).media_type == "image/png"
    assert picture_of(picture).size == (300, 425)


@pytest.mark.req("D6")
@pytest.mark.parametrize("use", ["text", "preview", "metadata"])
@pytest.mark.parametrize(
    "file,reason",
    [
        ("pdf-encrypted-user-password.pdf", "encrypted"),
        ("pdf-truncated.pdf", "damaged: it is truncated, its end is missing"),
        ("html-login-page-named.pdf", "is text/html"),
        ("pdf-page-tree-loop.pdf", "damaged"),
        ("zero-byte.pdf", "empty file"),
    ],
)
def test_d01_d02_d03_d05_what_cannot_be_read_is_dead_at_once(
    step: Perform, use: str, file: str, reason: str
) -> None:
    started = time.monotonic()
    assert step(use, file) == Dead(reason=reason)
    assert time.monotonic() - started < 5


def test_d03_content_decides_where_nothing_was_announced(step: Perform) -> None:
    page = (FILES / "html-login-page-named.pdf").read_bytes()
    assert step("preview", "page", page) == Done(NotApplicable(reason="not for text/html"))
    assert only(step("text", "page", page)).media_type == "text/plain"


def test_d04_a_page_of_size_0_has_text_and_a_picture(step: Perform) -> None:
    assert "Rechnung 2026-0001" in text_of(step("text", "pdf-zero-size-page.pdf"))
    assert only(step("preview", "pdf-zero-size-page.pdf")).media_type == "image/png"


def test_d05_a_loop_among_cross_references_is_read(step: Perform) -> None:
    started = time.monotonic()
    assert "Loop sample" in text_of(step("text", "pdf-xref-prev-loop.pdf"))
    assert time.monotonic() - started < 5


@pytest.mark.req("D6")
@pytest.mark.parametrize("use", ["text", "preview"])
def test_d06_a_document_that_never_ends_is_killed(step: Perform, use: str) -> None:
    started = time.monotonic()
    ended = step(use, "pdf-nested-forms-hang.pdf")
    assert time.monotonic() - started < 22
    # This one takes 250 MB/s: memory ends it long before the time does.
    assert isinstance(ended, Dead)
    assert "took too long" in ended.reason
    assert only(step("text", "pdf-ok-2-pages.pdf")).note == ""


def test_d06_with_memory_enough_the_time_limit_ends_it(step: Perform) -> None:
    limits = Limits(wall_s=2, memory_bytes=4 * 1024**3)
    started = time.monotonic()
    ended = step("preview", "pdf-nested-forms-hang.pdf", limits=limits)
    assert ended == Dead(reason="took too long")
    assert 2 <= time.monotonic() - started < 4


@pytest.mark.req("D6")
def test_d07_a_stream_that_swells_is_read_whole_or_refused(step: Perform) -> None:
    text = text_of(step("text", "pdf-stream-bomb-150mb.pdf"))
    assert "BEFORE" in text
    assert "AFTER" in text
    small = step("text", "pdf-stream-bomb-150mb.pdf", limits=Limits(memory_bytes=100 * 1024**2))
    assert isinstance(small, Dead)
    assert "too large unpacked" in small.reason


def test_d08_all_of_five_thousand_pages_are_read(step: Perform) -> None:
    output = only(step("text", "pdf-5000-pages.pdf"))
    assert output.path.read_text().count("Same text on every page") == 5000
    assert output.note == ""
    assert len(list(only(step("preview", "pdf-5000-pages.pdf")).path.parent.iterdir())) == 1


def test_d08_pages_beyond_the_limit_are_cut_and_it_says_so(step: Perform) -> None:
    output = only(step("text", "pdf-5000-pages.pdf", pages=500))
    assert output.path.read_text().count("Same text on every page") == 500
    assert output.note == "first 500 pages"


@pytest.mark.req("D6")
def test_d09_a_picture_bomb_is_refused_by_its_header(step: Perform) -> None:
    little = Limits(memory_bytes=100 * 1024**2)
    ended = step("preview", "png-bomb-30000x30000.png", limits=little)
    assert ended == Dead(reason="900 megapixels, limit 50")


def test_d09_a_picture_just_over_the_limit_is_refused_too(step: Perform) -> None:
    body = io.BytesIO()
    Image.new("1", (10_000, 5_001)).save(body, format="PNG")
    assert step("preview", "a.png", body.getvalue()) == Dead(reason="51 megapixels, limit 50")


@pytest.mark.req("D6")
@pytest.mark.parametrize("use", ["text", "metadata", "pdf"])
def test_d10_an_office_bomb_is_refused(step: Perform, use: str) -> None:
    little = Limits(memory_bytes=150 * 1024**2)
    ended = step(use, "docx-bomb-120mb.docx", limits=little)
    assert ended == Dead(reason="too large unpacked")


def test_d10_a_directory_that_lies_about_sizes_helps_no_bomb(step: Perform) -> None:
    body = bytearray((FILES / "docx-bomb-120mb.docx").read_bytes())
    with zipfile.ZipFile(io.BytesIO(body)) as archive:
        real = archive.getinfo("word/document.xml").file_size
    lying = bytes(body).replace(real.to_bytes(4, "little"), (1000).to_bytes(4, "little"))
    assert lying != bytes(body)
    ended = step("text", "a.docx", lying)
    assert ended in {Dead(reason="damaged"), Dead(reason="too large unpacked")}


def test_d11_the_text_is_there_and_the_links_are_noted(step: Perform) -> None:
    output = only(step("text", "docx-external-links.docx"))
    assert "Text before the linked picture" in output.path.read_text()
    assert output.note == "external links not loaded"


@pytest.mark.req("D5")
def test_an_office_text_has_exactly_its_characters(step: Perform) -> None:
    lines = text_of(step("text", "docx-minimal.docx")).splitlines()
    assert lines[0] == "Lieferschein 4711"
    assert {"ß", "€"} <= set(lines[1])


def test_d12_the_listing_shows_all_names_escaped(step: Perform, tmp_path: Path) -> None:
    lines = text_of(step("archive", "zip-traversal-names.zip")).splitlines()
    assert len(lines) == 7
    assert lines[0].endswith("ok/readme.txt")
    assert all(line.endswith("points outside") for line in lines[1:])
    assert not list(tmp_path.rglob("laufzettel-escape-*"))


def test_d13_a_turned_photograph_is_upright(step: Perform) -> None:
    picture = picture_of(step("preview", "jpeg-exif-orientation-6.jpg"))
    assert picture.mode == "RGB"
    width, height = picture.size
    assert height == 2 * width
    assert _dominant(picture, width - 5, 5) == "green"
    assert _dominant(picture, 5, 5) == "red"
    assert _dominant(picture, width // 2, height - 5) == "blue"
    assert not picture.getexif()
    assert set(picture.info) <= {"dpi"}


def _dominant(picture: Image.Image, x: int, y: int) -> str:
    pixel = picture.getpixel((x, y))
    assert isinstance(pixel, tuple)
    return ("red", "green", "blue")[pixel.index(max(pixel))]


def test_d13_print_colours_become_screen_colours(step: Perform) -> None:
    picture = picture_of(step("preview", "jpeg-cmyk-red.jpg"))
    pixel = picture.getpixel((60, 60))
    assert isinstance(pixel, tuple)
    red, green, blue = pixel
    assert (red > 240, green < 20, blue < 20) == (True, True, True)


def test_a_picture_keeps_its_colour_and_is_never_blown_up(step: Perform) -> None:
    picture = picture_of(step("preview", "png-ok-64x64.png"))
    assert picture.size == (64, 64)
    assert picture.getpixel((10, 10)) == (10, 120, 60)


def test_d14_both_character_sets_give_the_same_text(step: Perform) -> None:
    marked, unmarked = step("text", "csv-utf8-bom.csv"), step("text", "csv-latin1.csv")
    assert text_of(marked) == text_of(unmarked)
    assert text_of(marked).startswith("id;name;betrag")
    assert "Müller" in text_of(marked)
    assert "Straße" in text_of(marked)
    assert (only(marked).note, only(unmarked).note) == ("charset utf-8", "charset windows-1252")


STUBBORN = "trap '' TERM; setsid sh -c 'trap \"\" TERM HUP; sleep 1000' & sleep 1000"


@pytest.mark.req("D6")
def test_d15_children_of_a_converter_die_with_it(step: Perform) -> None:
    started = time.monotonic()
    ended = step("command", "a.txt", b"x", run=["sh", "-c", STUBBORN], timeout="1s")
    assert ended == Dead(reason="took too long")
    assert time.monotonic() - started < 3
    assert not _running("sleep 1000")


def test_d15_a_hundred_jobs_leave_no_process_behind(step: Perform) -> None:
    step("command", "a.txt", b"x", run=["true"])
    before = len(_running(""))
    for _ in range(100):
        step("command", "a.txt", b"x", run=["sh", "-c", "sleep 1000 & exit 3"])
    assert len(_running("")) <= before
    assert not _running("sleep 1000")


def _running(words: str) -> list[str]:
    """Command lines, among our own descendants, that hold these words."""
    family = {os.getpid()}
    lines: list[str] = []
    for pid in sorted(int(entry.name) for entry in Path("/proc").glob("[0-9]*")):
        try:
            parent = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
            line = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
        except (OSError, ValueError):
            continue
        if parent in family:
            family.add(pid)
            if words in line:
                lines.append(line)
    return lines


@pytest.mark.parametrize(
    "script",
    ["exit 0", ": > {output}", "echo '<html>' > {output}", "ln -s /etc/passwd {output}"],
)
def test_d16_ok_with_nothing_made_is_tried_once_more(step: Perform, script: str) -> None:
    run = ["sh", "-c", script]
    first = step("command", "a.txt", b"x", run=run, produces="application/pdf")
    second = step("command", "a.txt", b"x", run=run, produces="application/pdf", attempt=2)
    assert first == Again(reason="no output")
    assert second == Dead(reason="no output")


def test_c13_an_empty_file_has_a_checksum_and_nothing_else(step: Perform) -> None:
    assert step("text", "zero-byte.txt") == Dead(reason="empty file")
    empty = hashlib.sha256(b"").hexdigest()
    assert text_of(step("checksum", "zero-byte.pdf")) == f"sha256 {empty}\n"


@pytest.mark.req("D6")
@pytest.mark.skipif(shutil.which("soffice") is None, reason="LibreOffice is not installed")
def test_d11_a_converter_fetches_nothing_that_the_document_links_to(step: Perform) -> None:
    with socket.create_server(("127.0.0.1", 18099)) as listener:
        listener.settimeout(0)
        output = only(step("pdf", "docx-external-links.docx"))
        with pytest.raises(BlockingIOError):
            listener.accept()
    assert output.note == "external links not loaded"
    text = text_of(step("text", "a.pdf", output.path.read_bytes()))
    assert "Text before the linked picture" in text
    assert socket.gethostname() not in text


@pytest.mark.skipif(shutil.which("soffice") is not None, reason="LibreOffice is installed")
def test_without_libreoffice_the_reason_says_what_to_install(step: Perform) -> None:
    ended = step("pdf", "docx-minimal.docx")
    assert isinstance(ended, Again)
    assert "install soffice" in ended.reason


@pytest.mark.req("D5")
def test_a_command_gets_its_input_and_gives_its_output(step: Perform) -> None:
    run = ["sh", "-c", "tr a-z A-Z < {input} > {output}"]
    assert text_of(step("command", "a.txt", b"hello; $(id)", run=run)) == "HELLO; $(ID)"
    assert text_of(step("command", "a.txt", b"to stdout", run=["cat", "{input}"])) == "to stdout"


def test_a_command_is_never_read_by_a_shell(step: Perform) -> None:
    run = ["echo", "$(id)", "; id", "{input}"]
    assert text_of(step("command", "a.txt", b"x", run=run)).startswith("$(id) ; id ")


def test_a_command_that_fails_says_how(step: Perform) -> None:
    run = ["sh", "-c", "echo first >&2; echo 'no such page' >&2; exit 3"]
    failed = step("command", "a.txt", b"x", run=run)
    assert failed == Again(reason="exit status 3: no such page")
    for_good = step("command", "a.txt", b"x", run=run, permanent=["3"])
    assert for_good == Dead(reason="exit status 3: no such page")
    missing = step("command", "a.txt", b"x", run=["no-such-program"])
    assert missing == Again(reason="no-such-program can't be started: No such file or directory")


def test_a_command_cannot_change_its_input(step: Perform, tmp_path: Path) -> None:
    run = ["sh", "-c", "echo changed > {input}; echo made > {output}"]
    assert isinstance(step("command", "a.txt", b"original", run=run), Done)
    assert (tmp_path / "body-0").read_bytes() == b"original"


def test_a_command_takes_only_the_types_it_names(step: Perform) -> None:
    performed = step("command", "a.txt", b"x", run=["true"], types=["image/*"])
    assert performed == Done(NotApplicable(reason="not for text/plain"))
