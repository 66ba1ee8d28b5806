"""Numbers and cursors that no column can hold are the client's mistake, and named."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from app.store import tables as t
from app.store.reading.pages import encode_cursor
from tests.installations import Installation, event, found, installed

LARGEST = str(2**63 - 1)
TOO_LARGE = (str(2**63), "9" * 25, "9" * 5000, "-1")


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    with installed(tmp_path_factory.mktemp("numbers")) as installation:
        installation.send(event())
        yield installation


@pytest.fixture(scope="module")
def stream(running: Installation) -> str:
    return str(found(running, t.files)[0].stream)


def asked(running: Installation, path: str, **more: Any) -> tuple[int, str]:
    answer = running.api("GET", path, running.token(), **more)
    return answer.status_code, answer.json().get("detail", "")


@pytest.mark.req("F5")
@pytest.mark.parametrize("number", TOO_LARGE)
@pytest.mark.parametrize(
    "path, name",
    [
        ("/log?after=", "after"),
        ("/files/{}/log?after=", "after"),
        ("/files/{}?at=", "at"),
        ("/log?limit=", "limit"),
        ("/files?limit=", "limit"),
    ],
)
def test_a_number_that_is_none_of_ours_is_400_and_named(
    running: Installation, stream: str, path: str, name: str, number: str
) -> None:
    status, detail = asked(running, path.format(stream) + number)
    assert (status, detail.partition(":")[0]) == (400, name)


@pytest.mark.req("F5")
def test_the_largest_position_is_one(running: Installation, stream: str) -> None:
    assert asked(running, f"/files/{stream}?at={LARGEST}")[0] == 200
    assert asked(running, f"/log?after={LARGEST}")[0] == 200
    assert asked(running, "/files?limit=1")[0] == 200


@pytest.mark.req("F5")
@pytest.mark.parametrize("number", [2**63, -(2**64), 10**30])
@pytest.mark.parametrize("path", ["/files", "/jobs", "/messages", "/audit", "/deliveries"])
def test_a_cursor_with_a_number_that_is_none_of_ours_is_400(
    running: Installation, path: str, number: int
) -> None:
    for key in ((number, "x"), (number,), (1, "\ud800"), (1, "\0")):
        status, detail = asked(running, f"{path}?cursor={encode_cursor(key)}")
        assert (status, detail) == (400, "the cursor is not one of ours")


@pytest.mark.req("F5")
@pytest.mark.parametrize("moment", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"])
def test_the_first_and_the_last_moment_there_are_break_nothing(
    running: Installation, stream: str, moment: str
) -> None:
    when = {"at": moment}
    assert asked(running, f"/files/{stream}", params=when)[0] in {200, 404}
    for path in ("/audit", "/jobs", "/messages"):
        assert asked(running, path, params={"since": moment})[0] == 200
