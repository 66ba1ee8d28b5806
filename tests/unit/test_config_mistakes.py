from __future__ import annotations

import re
from pathlib import Path

import pytest

from app.config import Invalid, load

SECRET = "whsec_QUJDREVGR0hJSktMTU5PUFFSU1RVVldY"


def problems(folder: Path, text: str) -> list[str]:
    path = folder / "laufzettel.toml"
    path.write_text(text)
    invalid = load(path, {"IN": SECRET, "OUT": SECRET, "TOKEN": "t0ken-value"})
    assert isinstance(invalid, Invalid)
    return [str(problem) for problem in invalid.problems]


WRONG = [
    ("tolerance = 300", 'sources.contracts.tolerance: is a whole number → write "300s"'),
    ('tolerance = "5 minutes"', 'sources.contracts.tolerance: cannot be read → write it like "5m"'),
    ('max_body = "1 MB/s"', 'sources.contracts.max_body: cannot be read → write it like "1 MiB"'),
    ('same = "byte"', "did you mean bytes?"),
    ('volatile = ["/x"]', 'sources.contracts.volatile: means nothing with same = "bytes"'),
    ('volatile = ["x"]', "sources.contracts.volatile: holds something that is no JSON Pointer"),
    ('keep_body = "masked"', "sources.contracts.private_fields: is empty"),
    ('algorithm = "sha256"', 'means something only with profile = "hmac"'),
    ('profile = "hmax"', "did you mean hmac?"),
    ("unsigned = 1", "sources.contracts.unsigned: is a whole number → write true or false"),
    ('was = ["contracts"]', "sources.contracts.was: names contracts, which is in use"),
    ("download = 3", "sources.contracts.download: is a whole number, a table is wanted"),
    ('types = { "a" = "versions" }', "sources.contracts.types.a: is none of the words"),
    (
        'map = { name = "data.name" }',
        "sources.contracts.map.name: a JSON Pointer begins with a slash",
    ),
]


@pytest.mark.parametrize("line, words", WRONG)
def test_what_is_wrong_names_file_key_and_mend(tmp_path: Path, line: str, words: str) -> None:
    text = f'[sources.contracts]\nsecrets = ["env:IN"]\n{line}\n'
    found = problems(tmp_path, text)
    assert any(words in problem for problem in found), found
    assert all(re.fullmatch(r"laufzettel\.toml: \S+: .+ → .+", problem) for problem in found)


WRONG_DESTINATIONS = [
    ('url = "ftp://x/"', "destinations.d.url: is no http or https address"),
    ('url = "http://user:pw@host/"', "destinations.d.url: holds a user or a password"),
    ('url = "https://x:99999/"', "destinations.d.url: is no http or https address"),
    ('method = "GET"', "destinations.d.method"),
    ('on_dead = "block"', 'destinations.d.on_dead: is "block" without an order'),
    ('unclear = "ask"', "destinations.d.ask: and unclear do not fit"),
    ('unclear = "ask"\nask = "GET https://x/"', 'write "GET https://…/{message_id}"'),
    ('types = ["file.gone"]', "destinations.d.types: has unknown types (file.gone)"),
    ("permanent = [200]", "destinations.d.permanent"),
    ('delivered = { pointer = "/ok" }', "destinations.d.delivered.pointer"),
    ('delivered = { status = ["9xx"] }', "destinations.d.delivered.status"),
    ('auth = "bearer t0ken-value"', "destinations.d.auth: a secret stands in the file itself"),
    ('auth = "digest x"', "destinations.d.auth: cannot be read"),
    ('secrets = ["env:TOKEN"]', "env:TOKEN leads to no signing secret"),
    (f'secrets = ["{SECRET}"]', "destinations.d.secrets: a secret stands in the file itself"),
    ('proxy = "http://me:t0ken-value@proxy"', "destinations.d.proxy: holds a literal password"),
    ('headers = { "webhook-id" = "x" }', "is set by Laufzettel itself"),
    ('ca = "absent.pem"', "destinations.d.ca: names no file"),
    ("concurrency = 0", "destinations.d.concurrency: is 0 → write a number from 1 to 1000"),
    ('body = { x = "/y" }\nformat = "standard"', "destinations.d.body: and format do not fit"),
]


@pytest.mark.parametrize("lines, words", WRONG_DESTINATIONS)
def test_a_wrong_destination_is_refused_without_repeating_a_secret(
    tmp_path: Path, lines: str, words: str
) -> None:
    url = "" if "url =" in lines else 'url = "https://erp.example/"\n'
    found = problems(tmp_path, f"[destinations.d]\n{url}{lines}\n")
    assert any(words in problem for problem in found), found
    assert not any("t0ken" in problem or SECRET in problem for problem in found)


WRONG_INSTALLATIONS = [
    ('database = "postgresql://me:t0ken@host/db"', "laufzettel.database: holds a literal password"),
    ('database = "mysql://host/db"', "laufzettel.database: begins with none of"),
    ('database = "sqlite:///:memory:"', "laufzettel.database: names no place on disk"),
    ('broker = "kafka://x"', "laufzettel.broker: begins with none of"),
    ('listen = "localhost"', "laufzettel.listen: is no address with a port"),
    ('trusted_proxies = ["proxy"]', "laufzettel.trusted_proxies"),
    ('database_direct = "postgresql://x/y"', "means nothing on SQLite"),
]


@pytest.mark.parametrize("line, words", WRONG_INSTALLATIONS)
def test_a_wrong_installation_is_refused(tmp_path: Path, line: str, words: str) -> None:
    found = problems(tmp_path, f"[laufzettel]\n{line}\n")
    assert any(words in problem for problem in found), found
    assert not any("t0ken" in problem for problem in found)
