"""PDF from office documents, through LibreOffice; what they link to is never fetched."""

from __future__ import annotations

import re
import shutil
import subprocess
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from xml.parsers import expat
from xml.sax.saxutils import escape, quoteattr

from jobs.steps import media, office_parts
from jobs.steps.kinds import ChildTask, Field, Hopeless, Made, Postponed, Said, StepKind

PROGRAM = "soffice"
_EXTERNAL = "external links not loaded"
# LibreOffice's way to say that it set up its profile and wants to be started again.
_RESTART = 81
_ENVIRONMENT = {"LC_ALL": "C.UTF-8", "PATH": "/usr/local/bin:/usr/bin:/bin"}

KIND = StepKind(
    use="pdf",
    release=1,
    target=f"{__name__}:run",
    media_types=media.OFFICE,
    fields={
        "timeout": Field("duration", default=120, least=1, most=3600),
        "memory": Field("size", default=4 * 1024**3, least=512 * 1024**2),
    },
    tools=(PROGRAM,),
)
# Even a reference that we do not know must not be followed, and no macro may run.
_SETTINGS = """<?xml version="1.0" encoding="UTF-8"?>
<oor:items xmlns:oor="http://openoffice.org/2001/registry">
<item oor:path="/org.openoffice.Office.Common/Security/Scripting"><prop
 oor:name="MacroSecurityLevel" oor:op="fuse"><value>3</value></prop></item>
<item oor:path="/org.openoffice.Office.Common/Security/Scripting"><prop
 oor:name="DisableMacrosExecution" oor:op="fuse"><value>true</value></prop></item>
<item oor:path="/org.openoffice.Office.Common/Security/Scripting"><prop
 oor:name="BlockUntrustedRefererLinks" oor:op="fuse"><value>true</value></prop></item>
<item oor:path="/org.openoffice.Office.Writer/Content/Update"><prop oor:name="Link"
 oor:op="fuse"><value>0</value></prop></item>
<item oor:path="/org.openoffice.Office.Calc/Content/Update"><prop oor:name="Link"
 oor:op="fuse"><value>1</value></prop></item>
</oor:items>
"""
# Fields that read other files or ask other programs while a document is opened.
_LOADING_FIELDS = re.compile(
    r"\b(?:INCLUDE(?:PICTURE|TEXT)|DDE(?:AUTO)?|IMPORT|LINK|RD)\b", re.IGNORECASE
)


def run(task: ChildTask) -> Said:
    """Convert a copy of the document that refers to nothing outside itself."""
    if (program := _program()) is None:
        return Postponed(reason="LibreOffice is not installed on this worker: install soffice")
    copy = task.folder / f"document{media.extension(task.media_type)}"
    limit_bytes = task.limits.unpacked_bytes
    try:
        with office_parts.opened(task.input_path, limit_bytes=limit_bytes) as parts:
            had_links = _copy_without_links(parts, copy)
    except office_parts.UnreadableError as error:
        return Hopeless(reason=str(error))
    return _convert(program, copy, task.folder, note=_EXTERNAL if had_links else "")


def _program() -> str | None:
    """The program itself: the starter before it wants a /tmp that it can write to."""
    found = shutil.which(PROGRAM, path=_ENVIRONMENT["PATH"])
    if found is None:
        return None
    itself = Path(found).resolve().with_name("soffice.bin")
    return str(itself) if itself.is_file() else found


def _convert(program: str, copy: Path, folder: Path, *, note: str) -> Said:
    profile = folder / "profile"
    (profile / "user").mkdir(parents=True)
    (profile / "user" / "registrymodifications.xcu").write_text(_SETTINGS, encoding="utf-8")
    profile_option = f"-env:UserInstallation=file://{profile}"
    options = ["--headless", "--norestore", "--nolockcheck", "--nodefault", "--nofirststartwizard"]
    order = ["--convert-to", "pdf", "--outdir", str(folder), str(copy)]
    code = _execute([program, profile_option, *options, *order], folder)
    if code == _RESTART:
        code = _execute([program, profile_option, *options, *order], folder)
    shutil.rmtree(profile, ignore_errors=True)
    if code != 0:
        return Postponed(reason=f"LibreOffice: exit status {code}")
    result = copy.with_suffix(".pdf")
    # LibreOffice ends with 0 also where it could not read the document.
    if not result.is_file() or media.found(result) != media.PDF:
        return Postponed(reason="no output", is_last_chance=True)
    return (Made(file=result.name, media_type=media.PDF, note=note),)


def _execute(argv: list[str], folder: Path) -> int:
    process = subprocess.run(
        argv,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd=folder,
        env={**_ENVIRONMENT, "HOME": str(folder), "TMPDIR": str(folder), "OSL_SOCKET_PATH": "."},
        check=False,
    )
    return process.returncode


def _copy_without_links(parts: office_parts.Parts, copy: Path) -> bool:
    """Write the document anew without what it would load; true if there was any."""
    had_links = False
    with zipfile.ZipFile(copy, "w", zipfile.ZIP_DEFLATED) as target:
        for name in sorted(parts.names, key=lambda name: (name != "mimetype", name)):
            if name.endswith("/"):
                continue
            body: bytes | Iterator[bytes] = parts.chunks(name)
            if name.endswith((".xml", ".rels")):
                chunks = parts.chunks(name)
                body, had_here = clean(chunks, is_relationships=name.endswith(".rels"))
                had_links = had_links or had_here
            with target.open(name, "w") as part:
                for chunk in [body] if isinstance(body, bytes) else body:
                    part.write(chunk)
    return had_links


def clean(chunks: Iterable[bytes], *, is_relationships: bool) -> tuple[bytes, bool]:
    """One XML part without what points outside, and whether there was any."""
    return _Cleaner(is_relationships=is_relationships).clean(chunks)


class _Cleaner:
    """Copies one XML part element by element, leaving out what points outside."""

    def __init__(self, *, is_relationships: bool) -> None:
        self._is_relationships = is_relationships
        self._out: list[str] = ["<?xml version='1.0' encoding='UTF-8' standalone='yes'?>"]
        self._dropped: list[str] = []
        self._had = False
        self._tags: list[str] = []

    def clean(self, chunks: Iterable[bytes]) -> tuple[bytes, bool]:
        parser = expat.ParserCreate()
        parser.buffer_text = True
        parser.ordered_attributes = False
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._text
        parser.StartDoctypeDeclHandler = self._refuse
        try:
            for chunk in chunks:
                parser.Parse(chunk)
            parser.Parse(b"", True)  # noqa: FBT003 - expat takes no keyword here
        except expat.ExpatError as error:
            raise office_parts.UnreadableError("damaged") from error
        return "".join(self._out).encode("utf-8", "replace"), self._had

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        if self._dropped or self._is_loading(tag, attributes):
            self._had = self._had or not self._dropped
            self._dropped.append(tag)
            return
        self._tags.append(tag.rpartition(":")[2])
        written = "".join(f" {key}={quoteattr(value)}" for key, value in attributes.items())
        self._out.append(f"<{tag}{written}>")

    def _end(self, tag: str) -> None:
        if self._dropped:
            self._dropped.pop()
            return
        self._tags.pop()
        self._out.append(f"</{tag}>")

    def _text(self, text: str) -> None:
        if self._dropped:
            return
        if self._tags and self._tags[-1] == "instrText" and _LOADING_FIELDS.search(text):
            self._had = True
            return
        self._out.append(escape(text))

    def _is_loading(self, tag: str, attributes: dict[str, str]) -> bool:
        local = tag.rpartition(":")[2]
        if self._is_relationships:
            return local == "Relationship" and office_parts.is_loaded_from_outside(attributes)
        if local == "fldSimple":
            return bool(_LOADING_FIELDS.search(attributes.get("w:instr", "")))
        href = attributes.get("xlink:href", "")
        return local in office_parts.ODF_LOADING and office_parts.is_outside(href)

    @staticmethod
    def _refuse(*_: object) -> None:
        raise office_parts.UnreadableError("declares XML entities")
