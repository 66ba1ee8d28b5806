"""What a command says to do where the API refuses."""

from __future__ import annotations

import pytest
import typer

from app.cli.client import Api, Call, Reply


def test_where_our_side_broke_the_log_says_how_and_no_help_does(
    capsys: pytest.CaptureFixture[str],
) -> None:
    def broken(_: Call) -> Reply:
        return Reply(500, {"title": "Something broke on our side"})

    with pytest.raises(typer.Exit) as ended:
        Api(broken).get("/files")
    assert ended.value.exit_code == 1
    told = capsys.readouterr().err
    assert "Something broke on our side" in told
    assert "api.request.broken" in told
    assert "--help" not in told
