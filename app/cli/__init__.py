"""The command line. Every module here is light: what is heavy is imported inside a command."""

from __future__ import annotations

import typer

from app.cli import (
    auditing,
    campaigns,
    completion,
    copies,
    erasing,
    explain,
    listen,
    operate,
    parted,
    places,
    read,
    receive,
    reprocess,
    secrets,
    send,
    serve,
    setup,
    slip,
    standing,
    sweeping,
    tokens,
    upkeep,
)
from app.cli.demo.command import demo
from app.cli.four import FOUR
from app.cli.outputs import guarded
from app.cli.screen import DEFAULT_CONFIG, ConfigOption, UrlOption, refuse
from app.cli.torture.command import torture

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
app.command()(standing.status)
app.command()(read.files)
app.command()(slip.show)
app.command()(read.events)
app.command()(read.log)
app.command()(read.deliveries)
app.command()(read.jobs)
app.command()(read.messages)
app.command()(standing.dead)
app.command("campaigns")(campaigns.campaigns)
app.command()(read.audit)
app.command()(standing.stats)
app.command(epilog=FOUR)(operate.retry)
app.command(epilog=FOUR)(campaigns.redeliver)
app.command(epilog=FOUR)(reprocess.reprocess)
app.command()(operate.resolve)
app.command()(operate.discard)
app.command()(operate.cancel)
app.command()(places.pause)
app.command()(places.resume)
app.command()(places.ping)
app.command()(upkeep.migrate)
app.command(epilog=FOUR)(upkeep.replay)
app.command()(upkeep.verify)
app.command()(secrets.secrets)
app.command()(sweeping.sweep)
app.command()(copies.backup)
app.command()(copies.restore)
app.command()(copies.move)
app.command()(erasing.erase)
app.command()(erasing.hold)
app.command()(erasing.release)
app.command()(torture)
app.command()(completion.completion)
app.add_typer(auditing.app, name="slip")
app.add_typer(tokens.app, name="tokens")


@app.callback()
def laufzettel(
    context: typer.Context, config: ConfigOption = DEFAULT_CONFIG, url: UrlOption = ""
) -> None:
    """Signed webhooks about files in; every file processed once, every receiver told once."""
    told = context.invoked_subcommand or ""
    if url and not _takes_url(context, told):
        refuse(f"--url has no meaning for {told}", "it works on this machine: leave --url out")
    given = {"config": str(config), "url": url}
    context.default_map = {
        name: {**given, **dict.fromkeys(getattr(command, "commands", ()), given)}
        for name, command in getattr(context.command, "commands", {}).items()
    }


def _takes_url(context: typer.Context, told: str) -> bool:
    command = getattr(context.command, "commands", {}).get(told)
    several = getattr(command, "commands", {}).values() or [command]
    return any(each.name == "url" for one in several for each in getattr(one, "params", ()))


def main() -> None:
    """Run the command that the arguments name."""
    guarded(app)
