from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

from app.config import Config, load
from domain import profiles

MAKER = Path(__file__).parents[2] / "docs/make_profiles.py"
FOLDER = MAKER.parent / "reference/sources"
SECRETS = {
    "STANDARD_WEBHOOKS_V1A_SECRET": "whpk_QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVphYmNkZWY=",
    "CONTENTFUL_SECRET": "k" * 64,
}


@pytest.fixture(scope="module")
def maker() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_profiles", MAKER)
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


def test_the_page_about_profiles_says_what_they_do(maker: ModuleType) -> None:
    page = (MAKER.parent / "reference/profiles.md").read_text(encoding="utf-8")
    assert page == maker.page(), "run: python docs/make_profiles.py"


def test_each_profile_has_its_page_and_no_page_is_left_over(maker: ModuleType) -> None:
    kept = {path.name: path.read_text(encoding="utf-8") for path in FOLDER.glob("*.md")}
    assert kept == maker.source_pages(), "run: python docs/make_profiles.py"
    assert {f"{name}.md" for name in profiles.names()} == kept.keys() - {"README.md"}


@pytest.mark.parametrize("name", [name for name in profiles.names() if name != "hmac"])
def test_the_configuration_on_a_page_can_be_used(name: str, tmp_path: Path) -> None:
    page = (FOLDER / f"{name}.md").read_text(encoding="utf-8")
    text = "\n".join(re.findall(r"```toml\n(.*?)```", page, re.DOTALL))
    (tmp_path / "laufzettel.toml").write_text(text)
    named = re.findall(r"env:(\w+)", text)
    environ = {n: SECRETS.get(n, "whsec_QUJDREVGR0hJSktMTU5PUFFSU1RVVldY") for n in named}
    config = load(tmp_path / "laufzettel.toml", environ)
    assert isinstance(config, Config), config
    assert config.sources[0].ready.profile.name == name
