"""Reads the file, and what stands beside it, into one ``Config`` or all that is wrong with it."""

from __future__ import annotations

import codecs
import tomllib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TypeVar

from app.config.destination_tables import read_destination
from app.config.environment import read_dot_env
from app.config.fingerprint import digest, fingerprints
from app.config.installation_table import read_installation
from app.config.patience import read_auth, read_http_url, read_retention
from app.config.recipe_tables import read_recipe
from app.config.source_tables import read_source
from app.config.table import Problem, Reading, Table
from app.config.values import (
    Alerts,
    Auth,
    Config,
    ConfiguredRecipe,
    Destination,
    Invalid,
    OAuth2,
    Retention,
    Source,
    TracePlan,
)

FILE_LIMIT_BYTES = 4 * 2**20

PartT = TypeVar("PartT", Source, ConfiguredRecipe, Destination)


def load(path: Path, environ: Mapping[str, str]) -> Config | Invalid:
    """Read ``path`` and the ``.env`` beside it; ``environ`` wins over the latter."""
    raw = _read_toml(path)
    if isinstance(raw, Problem):
        return Invalid((raw,))
    folder = path.parent.absolute()
    dot_env = read_dot_env(folder / ".env")
    reading = Reading(path.name, folder, {**dot_env.values, **environ})
    for number in dot_env.bad_lines:
        reading.problems.append(Problem(".env", f"line {number}", "cannot be read", "NAME=value"))
    if dot_env.is_open:
        what = "others on this machine can read it"
        reading.notes.append(Problem(".env", "", what, "chmod 600 .env"))
    config = _read_config(path, raw, reading)
    return Invalid(tuple(reading.problems)) if reading.problems else config


def _read_toml(path: Path) -> dict[str, object] | Problem:
    try:
        with path.open("rb") as file:
            content = file.read(FILE_LIMIT_BYTES)
        if content.startswith(codecs.BOM_UTF8):
            mend = "save it as UTF-8 without one"
            return Problem(path.name, "", "begins with a byte order mark", mend)
        return tomllib.loads(content.decode())
    except FileNotFoundError:
        mend = "create one with: laufzettel init, or name it with --config"
        return Problem(str(path), "", "there is no such file", mend)
    except OSError as error:
        return Problem(str(path), "", f"cannot be read ({error.strerror})", "mend its rights")
    except UnicodeDecodeError:
        return Problem(path.name, "", "is not UTF-8", "save it as UTF-8")
    except tomllib.TOMLDecodeError as error:
        return Problem(path.name, "", f"is not TOML: {error}", "mend that line")


def _read_config(path: Path, raw: Mapping[str, object], reading: Reading) -> Config:
    top = Table(raw, path="", reading=reading)
    installation = read_installation(top.table("laufzettel"))
    retention = read_retention(top, Retention())
    step_auth: dict[str, Auth] = {}
    config = Config(
        path=path,
        installation=installation,
        sources=tuple(
            source
            for name, table in top.tables("sources")
            if (source := read_source(name, table, retention=retention))
        ),
        recipes=tuple(
            read_recipe(name, table, retention=retention, auths=step_auth)
            for name, table in top.tables("recipes")
        ),
        destinations=tuple(
            read_destination(name, table) for name, table in top.tables("destinations")
        ),
        alerts=_read_alerts(top.table("alerts")),
        retention=retention,
        digest=digest(raw),
        fingerprints=fingerprints(raw),
        step_auth=step_auth,
        traces=_read_traces(top.table("traces")),
        notes=tuple(reading.notes),
    )
    top.finish()
    _check_links(config, top)
    return config


def _read_alerts(table: Table) -> Alerts:
    default = Alerts()
    alerts = Alerts(
        notify=table.texts("notify"),
        silent_source_s=table.seconds("silent_source", default.silent_source_s),
        oldest_waiting_s=table.seconds("oldest_waiting", default.oldest_waiting_s),
    )
    table.finish()
    if any(place.startswith("mailto:") for place in alerts.notify):
        what = "nothing is sent by mail yet"
        mend = "name a destination, which may pass it on"
        table.reading.notes.append(Problem(table.reading.file, "alerts.notify", what, mend))
    return alerts


def _read_traces(table: Table) -> TracePlan:
    auth = read_auth(table)
    if isinstance(auth, OAuth2):
        mend = 'write "bearer env:NAME", "basic USER env:NAME" or "header NAME env:NAME"'
        table.complain("auth", "is of a kind that no collector takes", mend)
        auth = None
    plan = TracePlan(
        endpoint=read_http_url(table, "endpoint"),
        auth=auth,
        share=table.number("share", 1.0, least=0.0, most=1.0),
    )
    table.finish()
    return plan


def _check_links(config: Config, top: Table) -> None:
    reading = top.reading
    sources = {name for name, _ in top.tables("sources")}
    destinations = {place.name for place in config.destinations}
    for configured in config.recipes:
        recipe = configured.recipe
        key = f"recipes.{recipe.name}"
        _check_known(recipe.sources, sources, f"{key}.sources", reading)
        _check_known(recipe.notify, destinations, f"{key}.notify", reading)
    places = [name for name in config.alerts.notify if not name.startswith("mailto:")]
    _check_known(places, destinations, "alerts.notify", reading)
    _check_was(config.sources, lambda source: (source.name, source.was), "sources", reading)
    _check_was(config.destinations, lambda place: (place.name, place.was), "destinations", reading)
    _check_was(config.recipes, lambda made: (made.recipe.name, made.was), "recipes", reading)


def _check_known(names: Iterable[str], known: set[str], key: str, reading: Reading) -> None:
    for name in names:
        if name not in known:
            mend = f"name one of: {', '.join(sorted(known))}" if known else "configure it first"
            reading.report(key, f"names {name}, which is not configured", mend)


def _check_was(
    parts: tuple[PartT, ...],
    names: Callable[[PartT], tuple[str, tuple[str, ...]]],
    section: str,
    reading: Reading,
) -> None:
    taken = {names(part)[0] for part in parts}
    for name, was in map(names, parts):
        for old in was:
            if old in taken:
                mend = "a former name can belong to one part only"
                reading.report(f"{section}.{name}.was", f"names {old}, which is in use", mend)
            taken.add(old)
