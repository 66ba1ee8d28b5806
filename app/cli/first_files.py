"""The first ``laufzettel.toml`` and ``.env`` of an installation."""

from __future__ import annotations

import base64
import json
import os
import string
from pathlib import Path
from urllib.parse import urlsplit

from app.clock import SystemDice
from domain import profiles
from domain.addresses import host_of, is_loopback, is_private
from domain.profiles import Profile
from domain.profiles.standard import STANDARD_WEBHOOKS
from domain.schemes import STANDARD_SCHEME, Scheme

_TOML = string.Template("""\
# Laufzettel: signed webhooks about files in; every file processed once, every receiver told once.
# Shown values are the defaults unless a comment says otherwise. Secrets stand in .env beside this
# file, and here only their names: "env:NAME". Check what you wrote with: laufzettel check

[laufzettel]
database  = "sqlite:///var/laufzettel.db"     # or "postgresql://user@host/db"
broker    = "memory:"                         # or "redis://…", "amqp://…"
artifacts = "file:var/artifacts"              # or "s3://bucket/prefix?endpoint=…&region=…"
listen    = "127.0.0.1:8080"
base_url  = "http://127.0.0.1:8080"           # how receivers reach this installation

# Who announces files. Its webhooks go to <base_url>/hooks/$source.
[sources.$source]
profile   = "$profile"
$secrets
tolerance = "5m"                              # how old a signed timestamp may be
max_body  = "1 MiB"
$scheme
[sources.$source.download]
hosts     = ["127.0.0.1:9001"]                # where the files' bytes may come from; "send" uses it
# auth    = "bearer env:SOURCE_TOKEN"         # where the files are not public
max_size  = "5 GiB"
$maps
# What is done with a file. The first recipe that matches applies.
[recipes.documents]
sources    = ["$source"]
transforms = [
  { name = "checksum", use = "checksum" },
  # { name = "text", use = "text" },
  # { name = "preview", use = "preview", width = 640, required = false },
]
notify     = ["$destination"]

# Who is told when a file is finished.
[destinations.$destination]
url     = $url
secrets = ["env:$destination_secret"]         # the receiver verifies with the same secret
private = $private                            # loopback and private addresses are allowed
timeout = "10s"
""")
_SCHEME = """\
algorithm = "sha256"                          # or "sha512"
encoding  = "hex"                             # or "base64"
signature = "header:X-Signature"              # write the source's own header
signed    = "{header:X-Timestamp}.{body}"     # literal text, {header:NAME}, {body}, …
timestamp = "header:X-Timestamp"
"""
_MAPS = string.Template("""
# Where the fields are in a webhook: JSON Pointers, or "header:NAME".
[sources.$source.map]
event_id = "/id"
type     = "/event"
file_id  = "/data/file/id"
version  = "/data/file/version"
name     = "/data/file/name"
url      = "/data/file/url"

# The source's words, and what they mean here.
[sources.$source.types]
"file.uploaded" = "version"                   # or deleted, restored, renamed, lifecycle, ignore
"file.deleted"  = "deleted"
""")
_DOT_ENV = string.Template("""\
# The secrets that laufzettel.toml names. Keep this file out of version control.
$source_line
$destination_secret=$fresh_destination
""")
_DESTINATION = "receiver"


def write_first_files(folder: Path, *, profile: str, destination: str) -> str:
    """Write both files, or neither and say the name of the one that is there already."""
    paths = (folder / "laufzettel.toml", folder / ".env")
    for path in paths:
        if path.exists():
            return str(path)
    values = _values(profile, destination)
    folder.mkdir(parents=True, exist_ok=True)
    _write(paths[1], _DOT_ENV.substitute(values), mode=0o600)
    _write(paths[0], _TOML.substitute(values), mode=0o644)
    return ""


def next_commands(folder: Path, *, profile: str, destination: str) -> str:
    """What to type now, and what to edit before where the example cannot know it."""
    go_there = "" if folder == Path() else f"  cd {folder}\n"
    source = _source_name(profile)
    edits = ""
    receive = "  laufzettel receive\n" if is_loopback(host_of(destination)) else ""
    if not is_private(host_of(destination)):
        edits = f"Write into {folder / 'laufzettel.toml'} the base_url that receivers reach.\n"
    return (
        f"Wrote {folder / 'laufzettel.toml'} and {folder / '.env'} with fresh secrets.\n{edits}"
        f"Next:\n{go_there}"
        "  laufzettel check\n"
        "  laufzettel run                  # and, in other terminals:\n"
        f"{receive}"
        f"  laufzettel send {source} FILE"
    )


def _values(profile: str, destination: str) -> dict[str, str]:
    source = _source_name(profile)
    chosen = profiles.profile(profile) or STANDARD_WEBHOOKS
    is_own = profile == "hmac"
    secret_name = f"{source.upper().replace('-', '_')}_SECRET"
    return {
        "source": source,
        "profile": profile,
        "secrets": _secrets_line(chosen, secret_name),
        "scheme": _SCHEME if is_own else _unsigned_line(chosen),
        "maps": _MAPS.substitute(source=source) if is_own else "",
        "destination": _DESTINATION,
        "destination_secret": f"{_DESTINATION.upper()}_SECRET",
        "url": json.dumps(destination, ensure_ascii=False),
        "private": "true" if is_private(urlsplit(destination).hostname or "") else "false",
        "source_line": _dot_env_line(chosen, secret_name),
        "fresh_destination": _fresh_secret(STANDARD_SCHEME),
    }


def _source_name(profile: str) -> str:
    return {"standard-webhooks": "inbox", "hmac": "documents"}.get(profile, profile)


def _secrets_line(profile: Profile, name: str) -> str:
    if profile.needs_secrets:
        return f'secrets   = ["env:{name}"]'
    return "# this source signs with a certificate of its own: there is no secret"


def _unsigned_line(profile: Profile) -> str:
    if profile.has_signed_id:
        return ""
    return (
        "unsigned  = true                              # its event id is not signed, see its page\n"
    )


def _dot_env_line(profile: Profile, name: str) -> str:
    if not profile.needs_secrets:
        return ""
    scheme = profile.schemes[0] if profile.schemes else Scheme()
    given = "" if profile.name == "standard-webhooks" else "# Put the source's own secret here:\n"
    return f"{given}{name}={_fresh_secret(scheme)}"


def _fresh_secret(scheme: Scheme) -> str:
    dice = SystemDice()
    key = dice.salt() + dice.salt()
    text = key.hex() if scheme.key_form == "hex" else base64.b64encode(key).decode()
    return scheme.key_prefix + text


def _write(path: Path, text: str, *, mode: int) -> None:
    # "Exclusive" closes the gap between looking and writing: nothing is ever overwritten.
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
