"""One's own configuration, with stand-ins for all that is real: nothing of it is reached.

Store, broker and artifacts are in the scratch area; sources, receivers, token services and the
services of ``http`` steps are played by one server on this machine. Recipes, steps, profiles,
secrets, orders, filters and formats stay as they are.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from app.cli.demo.platform import path_of
from app.cli.torture.places import Places
from app.cli.torture.samples import is_playable
from app.config import Auth, Config, Destination, Download, Installation, OAuth2, Source
from app.config.secret import SecretUrl
from app.config.values import ConfiguredRecipe, TracePlan
from domain import profiles
from domain.breaker import BreakerPolicy
from domain.profiles import SourceSettings
from domain.recipes import Parameter, Step
from domain.schedule import RetryPolicy

_BASE_S, _CAP_S, _OPEN_S, _TIMEOUT_S = 0.02, 0.2, 0.2, 5.0
_TEMPLATE = path_of("FILE", "VERSION").replace("FILE", "{file_id}").replace("VERSION", "{version}")


def in_scratch(config: Config, places: Places) -> Config:
    """The configuration with a stand-in for everything outside the scratch area."""
    return replace(
        config,
        installation=_installation(config.installation, places),
        sources=tuple(_source(source, places) for source in config.sources),
        recipes=tuple(_recipe(each, places.outside) for each in config.recipes),
        destinations=tuple(_destination(each, places.outside) for each in config.destinations),
        alerts=replace(config.alerts, notify=()),
        step_auth={k: _auth(a, places.outside) or a for k, a in config.step_auth.items()},
        traces=TracePlan(),
    )


def notes(config: Config, places: Places) -> Iterator[str]:
    """What is played and not tried in its real form, in words."""
    place = config.installation
    if not place.is_embedded:
        yield f"a SQLite file in the scratch area stands in for {place.database.shown}"
    if not place.broker.reveal().startswith("memory:"):
        yield f"wake-ups stay in the process, not in {place.broker.shown}"
    if place.artifacts_path is None:
        yield f"a folder in the scratch area stands in for {place.artifacts.shown}"
    for source in config.sources:
        if not is_playable(_as_itself(source, places), places):
            name = source.ready.profile.name
            yield f"source {source.name}: signed as standard-webhooks, for {name} cannot be played"
        if source.changes is not None or source.download.fresh_link:
            yield f"source {source.name}: its change feed and fresh links are not asked"
    for told in config.destinations:
        if told.ca or told.client_cert or told.proxy:
            yield f"destination {told.name}: reached without its proxy and certificates"


def _installation(place: Installation, places: Places) -> Installation:
    return replace(
        place,
        database=SecretUrl("sqlite:///store.db"),
        database_direct=None,
        broker=SecretUrl("memory:"),
        artifacts=SecretUrl("file:artifacts"),
        listen_host="127.0.0.1",
        listen_port=places.port,
        base_url=places.url,
        public_url=places.url,
        trusted_proxies=(),
        sign_in=None,
        tls=None,
        database_path=places.folder / "store.db",
        artifacts_path=places.folder / "artifacts",
    )


# -- sources --------------------------------------------------------------------------------------


def _source(source: Source, places: Places) -> Source:
    own = _as_itself(source, places)
    return own if is_playable(own, places) else _in_standard_words(source, places)


def _as_itself(source: Source, places: Places) -> Source:
    settings = source.ready.settings
    if "{" in str(settings.mapping.url):
        url = f"http://{places.outside}{_TEMPLATE}"
        settings = replace(settings, mapping=replace(settings.mapping, url=url))
    ready = profiles.prepare(replace(settings, host=places.outside))
    download = _download(source.download, places.outside)
    if not isinstance(ready, profiles.Source):
        return replace(source, download=download, changes=None)
    # The first of several secrets signs; acceptance takes them all.
    return replace(source, ready=ready, download=download, changes=None)


def _in_standard_words(source: Source, places: Places) -> Source:
    known = source.ready.settings
    settings = SourceSettings(
        secrets=(places.secret,), tolerance_s=known.tolerance_s, host=places.outside
    )
    ready = profiles.prepare(settings)
    if not isinstance(ready, profiles.Source):
        raise TypeError(ready[0].reason)
    download = _download(source.download, places.outside)
    return replace(source, ready=ready, download=download, changes=None, same="bytes", volatile=())


def _download(download: Download, outside: str) -> Download:
    return replace(
        download,
        hosts=(outside,),
        auth=_auth(download.auth, outside),
        total_s=None,
        fresh_link="",
        retry=_quick(download.retry),
        breaker=_brief(download.breaker),
    )


# -- recipes and destinations ---------------------------------------------------------------------


def _recipe(configured: ConfiguredRecipe, outside: str) -> ConfiguredRecipe:
    steps = tuple(_step(step, outside) for step in configured.recipe.steps)
    return replace(configured, recipe=replace(configured.recipe, steps=steps))


def _step(step: Step, outside: str) -> Step:
    if step.use != "http":
        return step
    told: dict[str, Parameter] = {"url": f"http://{outside}/step", "private": True}
    return replace(step, parameters=tuple(sorted({**dict(step.parameters), **told}.items())))


def _destination(place: Destination, outside: str) -> Destination:
    ask = f"http://{outside}/ask/{place.name}/{{message_id}}" if place.ask else ""
    return replace(
        place,
        url=f"http://{outside}/tell/{place.name}",
        auth=_auth(place.auth, outside),
        ca=None,
        client_cert=None,
        proxy=None,
        ask=ask,
        timeout_s=min(place.timeout_s, _TIMEOUT_S),
        rate_per_s=None,
        retry=_quick(place.retry),
        breaker=_brief(place.breaker),
        private=True,
    )


def _auth(auth: Auth | None, outside: str) -> Auth | None:
    if isinstance(auth, OAuth2):
        return replace(auth, token_url=f"http://{outside}/token")
    return auth


def _quick(retry: RetryPolicy) -> RetryPolicy:
    """Soon again and never given up: what is tried here are crashes, not the patience."""
    return replace(retry, base_s=_BASE_S, cap_s=_CAP_S, attempts=None)


def _brief(breaker: BreakerPolicy) -> BreakerPolicy:
    return replace(breaker, open_s=_OPEN_S)
