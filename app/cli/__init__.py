"""The command line. Every module here is light: what is heavy is imported inside a command."""

from __future__ import annotations

import typer

from app.cli import explain, listen, parted, receive, send, serve, setup, tokens, upkeep
from app.cli.demo.command import demo
from app.cli.screen import DEFAULT_CONFIG, ConfigOption, UrlOption

app = typer.Typer(
    name="laufzettel",
    no_args_is_help=True,
    rich_markup_mode=None,  # rich costs a third of a second before the first line
    add_completion=False,
    # A traceback is for developers, and must never show a local value.
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command()(setup.init)
app.command()(setup.check)
app.command()(serve.run)
app.command()(parted.web)
app.command()(parted.worker)
app.command()(demo)
app.command()(explain.explain)
app.command()(receive.receive)
app.command()(send.send)
app.command()(listen.listen)
app.command()(upkeep.migrate)
app.command()(upkeep.replay)
app.command()(upkeep.verify)
app.add_typer(tokens.app, name="tokens")


@app.callback()
def laufzettel(
    context: typer.Context, config: ConfigOption = DEFAULT_CONFIG, url: UrlOption = ""
) -> None:
    """Signed webhooks about files in; every file processed once, every receiver told once."""
    given = {"config": str(config), "url": url}
    context.default_map = {
        name: {**given, **dict.fromkeys(getattr(command, "commands", ()), given)}
        for name, command in getattr(context.command, "commands", {}).items()
    }


def main() -> None:
    """Run the command that the arguments name."""
    app()
