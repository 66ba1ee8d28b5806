from __future__ import annotations

import base64
from pathlib import Path

import pytest

from app.config import Config, Invalid, findings, load
from domain.addresses import is_loopback, is_private

LONG = "whsec_" + base64.b64encode(b"x" * 24).decode()
OTHER = "whsec_" + base64.b64encode(b"y" * 24).decode()
SHORT = "whsec_" + base64.b64encode(b"x" * 23).decode()
SOURCE = '[sources.s]\nsecrets = ["env:IN"]\n'
SCHEME = """
[sources.s]
profile = "hmac"
secrets = ["env:KEY"]
signature = "header:X-Signature"
SIGNED
[sources.s.map]
event_id = "header:X-Id"
type = "/type"
file_id = "/file"
url = "/url"
"""


def read(folder: Path, text: str, **environ: str) -> Config | Invalid:
    path = folder / "laufzettel.toml"
    path.write_text(text)
    given = {"IN": LONG, "OUT": OTHER, "KEY": "k" * 24, **environ}
    return load(path, given)


def found(folder: Path, text: str, **environ: str) -> list[tuple[str, str]]:
    config = read(folder, text, **environ)
    assert isinstance(config, Config), config
    return [(finding.level, finding.problem.key) for finding in findings(config)]


def test_a_sound_file_has_no_findings(tmp_path: Path) -> None:
    text = '[destinations.d]\nurl = "http://127.0.0.1:1/"\nprivate = true\nsecrets = ["env:OUT"]\n'
    assert found(tmp_path, SOURCE + text) == []


def test_a_short_secret_is_warned_of(tmp_path: Path) -> None:
    assert found(tmp_path, SOURCE, IN=SHORT) == [("warning", "sources.s.secrets")]


def test_one_secret_under_two_names_is_warned_of(tmp_path: Path) -> None:
    text = SOURCE + '[sources.t]\nsecrets = ["env:OUT"]\n'
    assert found(tmp_path, text, OUT=LONG) == [("warning", "sources.t.secrets")]


def test_plain_http_to_another_machine_is_warned_of(tmp_path: Path) -> None:
    text = (
        '[laufzettel]\nbase_url = "https://slips.example"\n'
        '[destinations.d]\nurl = "http://erp.example/"\nsecrets = ["env:OUT"]\n'
    )
    assert found(tmp_path, text) == [("warning", "destinations.d.url")]


def test_a_loopback_base_url_does_not_reach_another_machine(tmp_path: Path) -> None:
    text = '[destinations.d]\nurl = "https://erp.example/"\nsecrets = ["env:OUT"]\n'
    assert found(tmp_path, text) == [("error", "laufzettel.base_url")]


@pytest.mark.req("A7")
def test_an_identity_from_unsigned_bytes_is_refused_unless_said_otherwise(tmp_path: Path) -> None:
    refused = read(tmp_path, SCHEME.replace("SIGNED", ""))
    assert isinstance(refused, Invalid)
    assert [problem.key for problem in refused.problems] == ["sources.s.map.event_id"]
    allowed = SCHEME.replace("SIGNED", "unsigned = true")
    assert found(tmp_path, allowed) == [("warning", "sources.s")] * 2
    lines = "signed = '{header:x-id}.{header:x-time}.{body}'\ntimestamp = 'header:X-Time'"
    assert found(tmp_path, SCHEME.replace("SIGNED", lines)) == []


def test_an_unsigned_time_and_an_old_hash_are_warned_of(tmp_path: Path) -> None:
    lines = "signed = '{header:X-Id}.{body}'\ntimestamp = 'header:X-Time'\nalgorithm = 'sha1'"
    assert found(tmp_path, SCHEME.replace("SIGNED", lines)) == [
        ("warning", "sources.s"),
        ("warning", "sources.s"),
    ]


PRIVATE = [
    "http://127.0.0.1/",
    "http://2130706433/",
    "http://0x7f000001/",
    "http://0177.0.0.1/",
    "http://[::ffff:10.0.0.1]/",
    "http://[fd00::1]/",
    "http://169.254.169.254/",
    "http://100.64.0.1/",
    "http://localhost./",
    "ftp://x/",
    "http://user:pw@host/",
]


@pytest.mark.req("E11")
@pytest.mark.parametrize("url", PRIVATE)
def test_an_address_that_is_private_by_its_number_is_refused(tmp_path: Path, url: str) -> None:
    refused = read(tmp_path, f'[destinations.d]\nurl = "{url}"\nsecrets = ["env:OUT"]\n')
    assert isinstance(refused, Invalid)
    assert {problem.key for problem in refused.problems} == {"destinations.d.url"}
    assert "pw" not in str(refused.problems[0])


def test_numbers_of_hosts_are_read_as_the_c_library_reads_them() -> None:
    assert is_loopback("0x7f.1")
    assert is_loopback("127.1")
    assert is_private("10.1")
    for host in ("192.88.99.1", "224.0.0.1", "168.63.129.16", "64:ff9b::a00:1", "2002:a00:1::"):
        assert is_private(host), "what is refused at sending is refused when it is written"
    assert not is_private("64:ff9b::808:808")
    assert not is_private("8.8.8.8")
    assert not is_private("erp.example")
    assert not is_private("1.2.3.4.5")
    assert not is_private("256.256.256.256")
