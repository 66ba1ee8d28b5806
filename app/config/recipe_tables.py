"""``[recipes.NAME]``: which files they take, what is done with them, who is told."""

from __future__ import annotations

from typing import Literal

from app.config.patience import check_name, read_auth, read_retention, read_was
from app.config.table import Table
from app.config.values import Auth, ConfiguredRecipe, Retention
from domain.recipes import Parameter, Recipe, Step

_VERSIONS: tuple[Literal["latest", "all"], ...] = ("latest", "all")
_IMPORTANCE: tuple[Literal["normal", "high"], ...] = ("normal", "high")
_STEP_KEYS = ("name", "use", "required")


def read_recipe(
    name: str, table: Table, *, retention: Retention, auths: dict[str, Auth]
) -> ConfiguredRecipe:
    """One recipe; its complaints go to the table's reading.

    The ``auth`` of a step stays as it is written, for a recipe is pinned in the log; what it leads
    to is put into ``auths``.
    """
    check_name(table, name)
    recipe = Recipe(
        name=name,
        sources=table.texts("sources"),
        steps=_read_steps(table, auths),
        notify=table.texts("notify"),
        versions=table.choice("versions", _VERSIONS, "latest"),
        importance=table.choice("importance", _IMPORTANCE, "normal"),
        name_pattern=table.text("name"),
        media_type=table.text("media_type"),
        type=table.text("type"),
        project=table.text("project"),
        max_size_bytes=table.size_bytes("max_size", 0),
    )
    configured = ConfiguredRecipe(
        recipe=recipe, was=read_was(table), retention=read_retention(table, retention)
    )
    if not recipe.sources:
        table.complain("sources", "is missing or empty", 'name them: sources = ["…"]')
    table.finish()
    return configured


def _read_steps(table: Table, auths: dict[str, Auth]) -> tuple[Step, ...]:
    raw = table.of_kind("transforms", list) or []
    for place, item in enumerate(raw):
        if isinstance(item, str):
            mend = f'write {{ name = "{item}", use = "{item}" }}'
            table.complain(f"transforms[{place}]", "is text, a table is wanted", mend)
    steps = tuple(
        _read_step(
            Table(item, path=f"{table.path}.transforms[{place}]", reading=table.reading), auths
        )
        for place, item in enumerate(raw)
        if not isinstance(item, str)
    )
    names = [step.name for step in steps]
    for name in {name for name in names if names.count(name) > 1}:
        table.complain("transforms", f"has two steps named {name}", "name each once")
    return steps


def _read_step(table: Table, auths: dict[str, Auth]) -> Step:
    name, use = table.text("name"), table.text("use")
    if not use:
        table.complain("use", "is missing", 'name the transformation: use = "text"')
    if not name:
        table.complain("name", "is missing", "name the step")
    elif name == "original":
        table.complain("name", "is taken by the file itself", "choose another")
    else:
        check_name(table, name)
    required = table.flag("required", default=True)
    parameters = [
        (key, value)
        for key in sorted(table.names())
        if key not in _STEP_KEYS and (value := _read_parameter(table, key, auths)) is not None
    ]
    return Step(name=name, use=use, required=required, parameters=tuple(parameters))


def _read_parameter(table: Table, key: str, auths: dict[str, Auth]) -> Parameter | None:
    raw = table.raw(key)
    if isinstance(raw, list) and all(isinstance(item, str) for item in raw):
        return tuple(raw)
    if isinstance(raw, str):
        if key == "auth" and (auth := read_auth(table)):
            auths[raw] = auth
        return raw
    if isinstance(raw, (bool, int)):
        return raw
    table.complain(key, "is no parameter", "write text, a whole number, true, false or texts")
    return None
