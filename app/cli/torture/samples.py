"""Files for one's own recipes: of the demo's documents those that each recipe takes."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from app.cli.demo.documents import Document, documents
from app.cli.demo.platform import path_of
from app.cli.demo.sender import ed25519
from app.cli.torture.places import Places
from app.config import Config, Source
from app.web.proofs import primitives
from domain import profiles
from domain.profiles import Mapped, SourceEvent, Verified
from domain.recipes import Candidate, Recipe, choose

_MOST_OF_A_RECIPE = 6
_MOST = 12
_BEGAN = datetime(2026, 1, 1, tzinfo=UTC)
_VARIABLE = re.compile(r"\[[^\]]*\]|[*?]")


@dataclass(frozen=True, slots=True)
class Sample:
    """A file of a source that one recipe takes, in two versions; ``type`` is the source's word."""

    source: str
    recipe: str
    type: str
    file_id: str
    name: str
    media_type: str
    project: str
    contents: tuple[bytes, bytes] = field(repr=False)

    def event(self, version: int, outside: str) -> SourceEvent:
        """What the source tells of this version."""
        content = self.contents[version - 1]
        return replace(
            _event(self.file_id, version, outside),
            type=self.type,
            name=self.name,
            project=self.project,
            size_bytes=len(content),
            media_type=self.media_type,
        )


def pool(config: Config, seed: int) -> tuple[Sample, ...]:
    """At most a dozen files, some for each recipe of each source, each with an id of its own."""
    made = [d for d in documents(seed=seed) if not d.flaw]
    recipes = tuple(configured.recipe for configured in config.recipes)
    found = [
        sample
        for source in config.sources
        for recipe in recipes
        if source.name in recipe.sources
        for sample in list(_taken(source, recipe, recipes, made))[:_MOST_OF_A_RECIPE]
    ]
    # The first of each recipe before the second of any.
    spread = sorted(found, key=lambda sample: _rank(sample, found))[:_MOST]
    return tuple(replace(s, file_id=f"T-{number}") for number, s in enumerate(spread, start=1))


def _rank(sample: Sample, found: list[Sample]) -> int:
    kin = [s for s in found if (s.source, s.recipe) == (sample.source, sample.recipe)]
    return kin.index(sample)


def _taken(
    source: Source, recipe: Recipe, recipes: tuple[Recipe, ...], made: list[Document]
) -> Iterator[Sample]:
    """What reaches this recipe, as it is, else renamed so that its filters let it through."""
    for word in _words(source, recipe):
        as_they_are = [_sample(source, recipe, word, document) for document in made]
        fitted = [_fitted(sample, recipe) for sample in as_they_are]
        found = [s for s in as_they_are if _reaches(s, recipe, recipes)]
        yield from found or [s for s in fitted if _reaches(s, recipe, recipes)]


def _words(source: Source, recipe: Recipe) -> list[str]:
    words = [w for w, action in source.ready.types.items() if action == "version" and "*" not in w]
    return [w for w in words if not recipe.type or fnmatch.fnmatchcase(w, recipe.type)][:1]


def _sample(source: Source, recipe: Recipe, word: str, document: Document) -> Sample:
    first, *later = document.versions
    contents = (first, later[0] if later else first + b"\n")
    return Sample(
        source.name,
        recipe.name,
        word,
        document.file_id,
        document.name,
        document.media_type,
        document.project,
        contents,
    )


def _fitted(sample: Sample, recipe: Recipe) -> Sample:
    is_of_kind = not recipe.media_type or fnmatch.fnmatchcase(sample.media_type, recipe.media_type)
    return replace(
        sample,
        name=_example(recipe.name_pattern) or sample.name,
        media_type=sample.media_type if is_of_kind else _example(recipe.media_type),
        project=recipe.project or sample.project,
    )


def _example(pattern: str) -> str:
    """Something that the pattern takes."""
    plain = {"*": "torture", "?": "x"}
    return _VARIABLE.sub(lambda found: plain.get(found[0]) or found[0][1], pattern)


def _reaches(sample: Sample, recipe: Recipe, recipes: tuple[Recipe, ...]) -> bool:
    seen = Candidate(
        source=sample.source,
        type=sample.type,
        name=sample.name,
        project=sample.project,
        media_type=sample.media_type,
        size_bytes=max(map(len, sample.contents)),
    )
    return choose(recipes, seen) == recipe


# -- whether a source can be played ---------------------------------------------------------------


def is_playable(source: Source, places: Places) -> bool:
    """Whether a delivery of this source can be made and is read as it was meant."""
    event = replace(_event("T-0", 1, places.outside), name="probe.txt", size_bytes=1)
    hook = f"{places.url}/hooks/{source.name}"
    ready, now = signing(source), event.occurred_at or _BEGAN
    request = profiles.compose(ready, event, hook, now, ed25519=ed25519)
    if isinstance(request, profiles.Refused):
        return False
    if not isinstance(profiles.verify(source.ready, request, now, primitives()), Verified):
        return False
    reading = profiles.read(source.ready, request, now)
    told = reading.events if isinstance(reading, Mapped) else ()
    return [_said(each) for each in told] == [_said(event)]


def _said(event: SourceEvent | profiles.Rejected) -> tuple[str | None, ...]:
    if not isinstance(event, SourceEvent):
        return ()
    return (event.file_id, event.version, event.url, event.event_id)


def signing(source: Source) -> profiles.Source:
    """The source as its own system signs: with the first of its secrets."""
    return replace(source.ready, keys=source.ready.keys[:1])


def _event(file_id: str, version: int, outside: str) -> SourceEvent:
    return SourceEvent(
        event_id=f"evt-{file_id}-{version}",
        type="",
        action="version",
        file_id=file_id,
        version=str(version),
        url=f"http://{outside}{path_of(file_id, str(version))}",
        sequence=version,
        occurred_at=_BEGAN + timedelta(minutes=version),
    )
