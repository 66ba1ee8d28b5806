"""Make the pages about profiles and sources: ``python docs/make_profiles.py``."""

from __future__ import annotations

import json
import sys
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs/reference/profiles.md"
SOURCES = ROOT / "docs/reference/sources"
FACTS = ROOT / "docs/sources.toml"
SAMPLES = ROOT / "tests/vectors/payloads.json"
sys.path.insert(0, str(ROOT))

from domain import profiles  # noqa: E402
from domain.profiles import Profile  # noqa: E402
from domain.profiles.values import Where  # noqa: E402
from domain.schemes import Scheme  # noqa: E402

INTRO = """# Source profiles

A profile says how one provider's deliveries are verified, read and answered. `profile = "NAME"` in
`[sources.X]` chooses it; everything in `[sources.X.map]` and `[sources.X.types]` goes before it.
This page is made from the profiles (`python docs/make_profiles.py`); a test keeps it true. What to
set up at each provider is on [a page of its own](sources/README.md).

- **Proof**: which bytes are signed. `{body}` are the bytes as they arrived, `{header:NAME}` a
  header's value as it arrived. "A password" means that nothing is signed: whoever knows the value,
  or reads it on the way, can tell us anything. Use TLS, and narrow who can reach the address.
- **Event id**: what a repeat is recognised by. Where a provider signs no id, fields of the signed
  body stand for it.
- **Order**: what decides which version is newer. "arrival" means that the provider tells no order:
  then the last to arrive counts, and a late delivery can win.
- A file's version, where none is told, is its SHA-256, else the event id: then every event is a new
  version.
- `changed` means that the provider only says "look again": the event is recorded, and what changed
  has to be asked from the provider.
- `{host}` in a download address is the first of `[sources.X.download] hosts`; without it, set
  `url` in the map.

"""

ALLOW = {
    "aws-sns": "`allow` lists the ARNs of the topics that may speak; without it all is refused.",
    "aws-s3": "`allow` lists the ARNs of the topics that may speak through SNS.",
    "google-drive": "`allow` lists the channels that may speak; empty: each with the token.",
    "azure-event-grid": "`allow` lists the origins that get consent, else `eventgrid.azure.net`.",
    "cloudevents": "`allow` lists the origins that get consent, else `eventgrid.azure.net`.",
    "hubspot": "`allow` lists the names of properties whose value is a file's id.",
}
PROOFS = {
    "aws-sns": "RSA over named fields of the message; the certificate only from Amazon SNS itself",
    "aws-s3": "as `aws-sns`; through EventBridge a password in header `authorization`",
    "microsoft-graph": "a password: `clientState` of every entry",
    "sharepoint": "a password: `clientState` of every entry",
    "google-drive": "a password: header `x-goog-channel-token`",
    "dropbox-sign": "HMAC-SHA256, hex, over `event_time` and `event_type` in the event",
    "contentful": "HMAC-SHA256, hex, over method, address, the headers it names, and body",
    "hubspot": "HMAC-SHA256, base64, over method, address, body and time",
    "cloudinary": "SHA-1 or SHA-256, hex, of body, time and secret",
    "hmac": "as `algorithm`, `signed`, `signature` and the like say",
}


def page() -> str:
    found = [profiles.profile(name) for name in profiles.names()]
    return INTRO + "\n".join(_section(profile) for profile in found if profile is not None)


def source_pages() -> dict[str, str]:
    """A page for each profile, by the name of its file."""
    facts = tomllib.loads(FACTS.read_text(encoding="utf-8"))
    samples: dict[str, dict[str, Any]] = {}
    for sample in json.loads(SAMPLES.read_text(encoding="utf-8")):
        if sample["kind"] == "event" or sample["provider"] not in samples:
            samples.setdefault(sample["provider"].replace("_", "-"), sample)
    found = {name: profiles.profile(name) for name in profiles.names()}
    pages = {
        f"{name}.md": _source_page(profile, facts[name], samples.get(_SAMPLE_OF.get(name, name)))
        for name, profile in found.items()
        if profile is not None
    }
    lines = [f"- [{p.title or n}]({n}.md)" for n, p in found.items() if p is not None]
    return pages | {"README.md": INDEX + "\n".join(lines) + "\n"}


_SAMPLE_OF = {"standard-webhooks-v1a": "standard-webhooks", "aws-eventbridge": ""}
INDEX = """# Sources

A page for each system that can announce files: what to set up there, what is signed, how it
repeats. All are made from the profiles (`python docs/make_profiles.py`), [side by
side](../profiles.md). A system that is not here and signs in a common way needs no code: see
[how to add one](../../how-to/add-a-provider.md).

Set-up and rights are directions: screens and names move. "(check)" marks figures that were not read
in the provider's own documentation.

"""


def _source_page(profile: Profile, facts: dict[str, str], sample: dict[str, Any] | None) -> str:
    name = profile.name
    heads = (("Set-up", "setup"), ("Rights", "rights"), ("Repeats", "retry"), ("Limits", "limits"))
    told = "\n".join(f"## {head}\n\n{facts[key]}\n" for head, key in heads)
    config = _config(profile)
    body = _section(profile).partition("\n")[2].lstrip("\n").partition("\n")[2].lstrip("\n")
    return (
        f'# {profile.title or name}\n\n`profile = "{name}"`. The words of the table are explained '
        f"on [the page of all profiles](../profiles.md).\n\n{body}\n{told}\n"
        f"Address: `https://YOUR-HOST/hooks/{name}`, by the name of the source.\n\n"
        f"## Configuration\n\n{config}{_sample(sample)}"
    )


def _config(profile: Profile) -> str:
    if profile.name == "hmac":
        return "See [a scheme of one's own](../configuration.md#a-scheme-of-ones-own).\n"
    name = profile.name
    lines = [f"[sources.{name}]", f'profile = "{name}"']
    if profile.needs_secrets:
        lines.append(f'secrets = ["env:{name.upper().replace("-", "_")}_SECRET"]')
    if not profile.has_signed_id:
        lines.append("unsigned = true  # the event id is in no signed bytes: see the risk above")
    if name.startswith("aws-s"):
        lines.append('allow   = ["arn:aws:sns:eu-central-1:123456789012:files"]')
    lines += [f"[sources.{name}.download]", 'hosts   = ["files.example.org"]']
    return "```toml\n" + "\n".join(lines) + "\n```\n"


def _sample(sample: dict[str, Any] | None) -> str:
    if sample is None:
        return ""
    head = "\n".join(f"{k}: {v}" for k, v in sample["headers"].items())
    body = sample["body"]
    text = json.dumps(body, indent=1, ensure_ascii=False) if body else "(no body)"
    return f"\n## Sample\n\n```\n{head}\n\n{text}\n```\n"


def _section(profile: Profile) -> str:
    rows = [
        ("Proof", PROOFS.get(profile.name) or _proof(profile.schemes[0])),
        ("Time", _time(profile)),
        ("Event id", _places(profile.mapping.event_id)),
        (
            "File, version",
            f"{_places(profile.mapping.file_id)}, {_places(profile.mapping.version)}",
        ),
        ("Order", _order(profile)),
        ("Download", _places(profile.mapping.url)),
        ("Same", _same(profile)),
        ("Answer", _answer(profile)),
        ("Types", _types(profile)),
    ]
    table = "\n".join(f"| {name} | {text} |" for name, text in rows)
    notes = [ALLOW.get(profile.name, ""), f"**Risk:** {profile.risk}" if profile.risk else ""]
    below = "".join(f"\n{note}\n" for note in notes if note)
    return f"## {profile.name}\n\n{profile.title}\n\n| | |\n| --- | --- |\n{table}\n{below}"


def _proof(scheme: Scheme) -> str:
    where = " or ".join(f"`{place}`" for place in scheme.places)
    if scheme.method == "token":
        return f"a password: {where}{', as Bearer' if scheme.key_form == 'bearer' else ''}"
    key = {"text": "as text", "base64": "base64"}.get(scheme.key_form, scheme.key_form)
    label = f", label `{scheme.prefix}`" if scheme.prefix else ""
    kind = f"HMAC-{scheme.hash.upper().replace('SHA', 'SHA-')}, {scheme.encoding}"
    return f"{kind}, over `{scheme.signed}`; {where}{label}; secret {key}"


def _time(profile: Profile) -> str:
    clock = profile.schemes[0].clock if profile.schemes else None
    if profile.name == "hmac":
        return "as `timestamp` says, 300 s either way"
    if clock is None:
        return "none is signed: a captured delivery can be sent again (it is then a repeat)"
    past = "any age" if clock.past_s is None else f"{clock.past_s:.0f} s old"
    future = "any time" if clock.future_s is None else f"{clock.future_s:.0f} s"
    where = f"header `{clock.header}`" if clock.header else f"entry `{clock.entry}`"
    return f"{where}, up to {past}, {future} ahead"


def _places(where: Where) -> str:
    texts = (where,) if isinstance(where, str) else where
    return ", else ".join(f"`{text}`" for text in texts if text) or "not told"


def _order(profile: Profile) -> str:
    if profile.order == "time":
        return "time" if profile.mapping.occurred_at else "arrival"
    return f"{profile.order}, compared as {profile.comparator}"


def _same(profile: Profile) -> str:
    left = ", ".join(f"`{path}`" for path in profile.volatile)
    return f"{profile.same}{f', without {left}' if left else ''}"


def _answer(profile: Profile) -> str:
    answer = profile.answer
    texts = [f"status {answer.status or 202} within {answer.wait_s:.0f} s"]
    if answer.body:
        texts.append(f'with the text "{answer.body.decode()}"')
    if answer.echo:
        texts.append(f"with header `{answer.echo}` sent back")
    if answer.conflict_status != 409:
        texts.append(f"a conflict is answered {answer.conflict_status}, else it would be repeated")
    return "; ".join(texts)


def _types(profile: Profile) -> str:
    pairs = (f"`{word}` {action}" for word, action in profile.types.items())
    return "; ".join(pairs).replace("|", "\\|")


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    SOURCES.mkdir(exist_ok=True)
    for file, text in source_pages().items():
        (SOURCES / file).write_text(text, encoding="utf-8")
