"""Cases that a configuration alone shows: A-08, E-12 on saving, G-02 and G-03 in log lines."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from app.config import Config, Invalid, load
from app.telemetry import log

FILES = Path(__file__).parent / "files"
SECRET = "whsec_QUJDREVGR0hJSktMTU5PUFFSU1RVVldY"
ADDRESSES = [
    "http://127.0.0.1/",
    "http://2130706433/",
    "http://0x7f000001/",
    "http://0177.0.0.1/",
    "http://[::ffff:10.0.0.1]/",
    "http://[fd00::1]/",
    "http://169.254.169.254/",
    "http://100.64.0.1/",
    "http://localhost./",
]


def read(folder: Path, text: str, **environ: str) -> Config | Invalid:
    path = folder / "laufzettel.toml"
    path.write_text(text)
    return load(path, environ)


@pytest.mark.req("A15")
@pytest.mark.parametrize("environ", [{}, {"IN": ""}])
def test_a_08_a_source_whose_secret_is_unset_or_empty_is_never_open(
    tmp_path: Path, environ: dict[str, str]
) -> None:
    refused = read(tmp_path, '[sources.s]\nsecrets = ["env:IN"]\n', **environ)
    assert isinstance(refused, Invalid)
    (problem,) = refused.problems
    assert (problem.file, problem.key) == ("laufzettel.toml", "sources.s.secrets")
    assert problem.mend.startswith("set IN")


@pytest.mark.req("E11")
@pytest.mark.parametrize("url", ADDRESSES)
def test_e_12_a_private_address_is_refused_and_an_explicit_word_opens_it(
    tmp_path: Path, url: str
) -> None:
    text = f'[destinations.d]\nurl = "{url}"\nsecrets = ["env:OUT"]\n'
    refused = read(tmp_path, text, OUT=SECRET)
    assert isinstance(refused, Invalid)
    assert [problem.key for problem in refused.problems] == ["destinations.d.url"]
    assert isinstance(read(tmp_path, f"{text}private = true\n", OUT=SECRET), Config)


@pytest.mark.req("E11")
@pytest.mark.parametrize("url", ["ftp://x/", "http://user:pw@host/"])
def test_e_12_no_word_opens_another_scheme_or_a_password(tmp_path: Path, url: str) -> None:
    text = f'[destinations.d]\nurl = "{url}"\nsecrets = ["env:OUT"]\nprivate = true\n'
    refused = read(tmp_path, text, OUT=SECRET)
    assert isinstance(refused, Invalid)
    assert "pw" not in str(refused.problems[0])


@pytest.mark.req("F8")
def test_g_02_a_hostile_name_stays_within_its_line(log_lines: io.StringIO) -> None:
    names = [line for line in (FILES / "names.jsonl").read_text().splitlines() if line]
    for line in names:
        log.warning("delivery.refused", reason=str(json.loads(line)))
    records = log_lines.getvalue().splitlines()
    assert len(records) == len(names)
    assert all(json.loads(record)["event"] == "delivery.refused" for record in records)


@pytest.mark.req("F7")
def test_g_03_an_address_is_shown_without_user_and_query(log_lines: io.StringIO) -> None:
    log.info("message.sent", url="https://user:pa55@erp.example/in?token=t0ken")
    assert "pa55" not in log_lines.getvalue()
    assert "t0ken" not in log_lines.getvalue()
    assert "https://erp.example/in" in log_lines.getvalue()
