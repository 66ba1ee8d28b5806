"""A start that cannot succeed ends with one line: what is wrong, its key, and what mends it."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from tests.commands import laufzettel

UNUSABLE = [
    ("database", "sqlite:////proc/x/y.db"),
    ("database", "sqlite:///file/y.db"),
    ("database", "sqlite:///folder.db"),
    ("database", "postgresql://x@127.0.0.1:1/db"),
    ("artifacts", "file:/proc/x"),
    ("artifacts", "file:file"),
]


def configured(folder: Path, key: str, value: str) -> None:
    (folder / "file").write_text("no folder")
    (folder / "folder.db").mkdir()
    (folder / "laufzettel.toml").write_text(f'[laufzettel]\n{key} = "{value}"\n')


@pytest.mark.parametrize("key, value", UNUSABLE)
def test_a_place_that_cannot_be_used_is_one_line_with_key_and_mend(
    tmp_path: Path, key: str, value: str
) -> None:
    configured(tmp_path, key, value)
    ended = laufzettel("run", folder=tmp_path)
    assert ended.returncode == 1
    errors = [line for line in ended.stderr.splitlines() if line.startswith("error: ")]
    assert "Traceback" not in ended.stderr
    assert len(errors) == 1
    assert errors[0].startswith(f"error: laufzettel.toml: laufzettel.{key}: ")
    assert " → " in errors[0]


@pytest.mark.parametrize(
    "value, words",
    [
        ("s3://", "names no bucket"),
        ("s3:///prefix", "names no bucket"),
        ("s3://b?endpont=http://x", "has unknown settings (endpont)"),
        ("s3://b?endpoint=minio:9000", "has an endpoint that is no http or https address"),
        ("s3://[b", "is no address"),
    ],
)
def test_a_bucket_that_cannot_be_is_named_by_check_already(
    tmp_path: Path, value: str, words: str
) -> None:
    configured(tmp_path, "artifacts", value)
    ended = laufzettel("check", folder=tmp_path)
    assert ended.returncode == 2
    assert ended.stderr.startswith(f"error: laufzettel.toml: laufzettel.artifacts: {words} → ")
    assert len(ended.stderr.splitlines()) == 1


def test_an_unknown_transformation_is_answered_with_those_there_are(tmp_path: Path) -> None:
    (tmp_path / "laufzettel.toml").write_text(
        '[sources.s]\nsecrets = ["env:IN"]\n'
        '[recipes.r]\nsources = ["s"]\ntransforms = [{ name = "a", use = "txt" }]\n'
    )
    secret = "whsec_QUJDREVGR0hJSktMTU5PUFFSU1RVVldY"
    ended = laufzettel("check", folder=tmp_path, IN=secret)
    assert ended.returncode == 1
    assert "recipes.r.transforms[0]: use: no step is called 'txt' → there are: " in ended.stderr


def test_a_taken_address_names_the_key_that_gives_another(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        listen = f"127.0.0.1:{taken.getsockname()[1]}"
        (tmp_path / "laufzettel.toml").write_text(f'[laufzettel]\nlisten = "{listen}"\n')
        ended = laufzettel("run", folder=tmp_path)
    assert ended.returncode == 1
    assert "give another in laufzettel.listen" in ended.stderr
