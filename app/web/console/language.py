"""The words of the console: English is the key, German is looked up."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path

LANGUAGES: Mapping[str, str] = {"en": "English", "de": "Deutsch"}


def chosen(cookie: str, accepted: str) -> str:
    """The language to speak: the one chosen by hand, else the first that the browser wants."""
    if cookie in LANGUAGES:
        return cookie
    wanted = [_weighed(part) for part in accepted[:500].split(",") if part.strip()]
    wanted.sort(key=_preferred)
    return next((tag for _, tag in wanted if tag in LANGUAGES), "en")


def said(language: str, words: str, **values: object) -> str:
    """The words in this language, with the values in their places."""
    told = german().get(words, words) if language == "de" else words
    for name, value in values.items():
        told = told.replace(f"{{{name}}}", str(value))
    return told


@cache
def german() -> Mapping[str, str]:
    """The German for each English words."""
    found: dict[str, str] = json.loads((Path(__file__).parent / "german.json").read_text("utf-8"))
    return found


def _weighed(part: str) -> tuple[float, str]:
    tag, _, weight = part.strip().partition(";q=")
    try:
        return float(weight or 1), tag.strip().lower().partition("-")[0]
    except ValueError:
        return 0.0, tag.strip().lower()


def _preferred(weighed: tuple[float, str]) -> float:
    return -weighed[0]
