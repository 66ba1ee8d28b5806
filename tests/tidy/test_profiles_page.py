from __future__ import annotations

import importlib.util
from pathlib import Path

MAKER = Path(__file__).parents[2] / "docs/make_profiles.py"


def test_the_page_about_profiles_says_what_they_do() -> None:
    spec = importlib.util.spec_from_file_location("make_profiles", MAKER)
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    page = (MAKER.parent / "reference/profiles.md").read_text(encoding="utf-8")
    assert page == made.page(), "run: python docs/make_profiles.py"
