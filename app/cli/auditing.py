"""``slip export``, ``slip verify``: a file's whole history as one document for auditors."""

from __future__ import annotations

import json
from html import escape
from pathlib import Path
from typing import Annotated, Any

import typer

from app.cli.client import Api, segment
from app.cli.finding import file_of
from app.cli.screen import FAILED, WRONG, refuse
from app.cli.views import View, reading

app = typer.Typer(no_args_is_help=True, help="A file's signed slip: written, and checked offline.")
_LONGEST_BYTES = 256 << 20
_BEGIN, _END = '<script type="application/json" id="slip">', "</script>"


@reading
def export(
    api: Api,
    file: Annotated[str, typer.Argument(metavar="FILE")],
    to: Annotated[Path, typer.Option("--to", metavar="PATH", help="….json, or ….html to read.")],
) -> View:
    """Write a file's slip: what was received, done and told, signed; as JSON or as a page."""
    document = api.get(f"/files/{segment(file_of(api, file))}/slip")
    text = page(document) if to.suffix == ".html" else json.dumps(document, ensure_ascii=False)
    to.write_text(text, encoding="utf-8")
    key = document["signature"]["public_key"]
    said = [f"{to}: {len(document['events'])} events", f"signed by the key {key}"]
    return View({"path": str(to), "public_key": key}, lambda _: said)


@app.command()
def verify(
    path: Annotated[Path, typer.Argument(metavar="PATH")],
    key: Annotated[
        str, typer.Option("--key", help="The public key that the installation told you.")
    ] = "",
) -> None:
    """Check a slip, offline: its signature, hashes, and the values that it names."""
    from app.verify.slip import slip_faults

    document = _read(path)
    faults = slip_faults(document, key=key)
    for fault in faults:
        print(fault)
    if faults:
        raise typer.Exit(FAILED)
    print(f"{len(document['events'])} events of {document['file']}, all as they were signed")
    print(f"the key is {document['signature']['public_key']}", end="")
    print("" if key else ": compare it with what the installation told you, or give --key")


app.command("export")(export)


def _read(path: Path) -> dict[str, Any]:
    try:
        with path.open(encoding="utf-8") as file:
            text = file.read(_LONGEST_BYTES)
        if _BEGIN in text:
            text = text.split(_BEGIN, 1)[1].split(_END, 1)[0].replace("<\\/", "</")
        document = json.loads(text)
    except (OSError, ValueError, RecursionError) as error:
        refuse(f"{path} cannot be read ({type(error).__name__})", "name a slip", status=WRONG)
    if not isinstance(document, dict):
        refuse(f"{path} is no slip", "name a slip", status=WRONG)
    return document


def page(document: dict[str, Any]) -> str:
    """The slip as a page that holds its own signed document; it needs nothing from elsewhere."""
    tables = "".join(
        f"<h2>{title}</h2>{_table(document[name])}"
        for title, name in (
            ("Received", "received"),
            ("Artifacts", "artifacts"),
            ("Told", "messages"),
        )
    )
    log = _table([_shown(event) for event in document["events"]])
    data = json.dumps(document, ensure_ascii=False).replace("</", "<\\/")
    head = escape(f"Slip of {document['file']}, {document['made_at']}")
    signer = escape(document["signature"]["public_key"])
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{head}</title>'
        "<style>body{font:14px sans-serif;margin:2em}table{border-collapse:collapse}"
        "td,th{border:1px solid #999;padding:.3em;text-align:left;word-break:break-all}</style>"
        f"<h1>{head}</h1><p>Signed by <code>{signer}</code>. Check it with "
        f"<code>laufzettel slip verify</code>.</p>{tables}<h2>Log</h2>{log}{_BEGIN}{data}{_END}"
    )


def _shown(event: dict[str, Any]) -> dict[str, Any]:
    told = json.loads(event["body"])
    private = "; ".join(f"{name}: {value}" for name, value in event["private"].items())
    return {
        "position": event["position"],
        "at": told["data"].get("at_ms", ""),
        "event": told["type"],
        "values": private,
        "hash": event["hash"],
    }


def _table(rows: list[dict[str, Any]]) -> str:
    if not rows:
        return "<p>nothing</p>"
    names = list(rows[0])
    head = "".join(f"<th>{escape(name)}</th>" for name in names)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(str(row[name]))}</td>" for name in names) + "</tr>"
        for row in rows
    )
    return f"<table><tr>{head}</tr>{body}</table>"
