from __future__ import annotations

import re

from tests.tidy.tree import ROOT

README = (ROOT / "README.md").read_text(encoding="utf-8")
LINKS = [link.partition("#")[0] for link in re.findall(r"\]\((?!http)([^)]+)\)", README)]


def test_every_link_of_the_front_page_leads_somewhere() -> None:
    assert LINKS
    assert [link for link in LINKS if not (ROOT / link).exists()] == []


def test_the_front_page_leads_to_every_kind_of_page_and_stays_short() -> None:
    wanted = {"docs/how-to/", "docs/reference/profiles.md", "docs/reference/answers.md"}
    assert wanted | {"docs/reference/console.md"} <= set(LINKS)
    assert len(README.splitlines()) <= 70
