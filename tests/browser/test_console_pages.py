"""The console in Chromium: by keyboard alone, in both languages, with hostile names."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from playwright.sync_api import Page

from app.store import tables as t
from tests.installations import Installation, event, found
from tests.scenes import HOSTILE

MENU = {
    "en-GB": (
        "Overview",
        "Files",
        "Dead letters",
        "Messages",
        "Destinations",
        "Sources",
        "Log",
        "Replay",
        "Jobs",
        "Deliveries",
        "Who did what",
    ),
    "de-DE": (
        "Übersicht",
        "Dateien",
        "Unzustellbar",
        "Nachrichten",
        "Ziele",
        "Quellen",
        "Protokoll",
        "Nachspielen",
        "Aufträge",
        "Zustellungen",
        "Wer was tat",
    ),
}
PICTURES = Path(__file__).parents[2] / "docs/pictures"
WHY = "asked for by accounting"

# The least contrast of any text with what is behind it, and where.
_CONTRAST = """() => {
  const light = (c) => {
    const [r, g, b] = c.map((v) => v / 255).map((v) => v <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4);
    return .2126 * r + .7152 * g + .0722 * b;
  };
  const parse = (text) => text.match(/[\\d.]+/g).map(Number);
  const behind = (node) => {
    for (let at = node; at; at = at.parentElement) {
      const found = parse(getComputedStyle(at).backgroundColor);
      if (found.length < 4 || found[3] > 0) return found.slice(0, 3);
    }
    return [255, 255, 255];
  };
  let least = [99, ""];
  for (const node of document.body.querySelectorAll("*")) {
    const has = [...node.childNodes].some((c) => c.nodeType === 3 && c.data.trim());
    if (!has || !node.checkVisibility() || node.closest(".skip")) continue;
    const [a, b] = [light(parse(getComputedStyle(node).color)), light(behind(node))];
    const ratio = (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
    if (ratio < least[0]) least = [ratio, node.outerHTML.slice(0, 200)];
  }
  return least;
}"""
# Fields without a name, pictures without words, links without text.
_NAMELESS = """() => [...document.querySelectorAll("input:not([type=hidden]), select, button, a, img, summary")]
  .filter((n) => n.checkVisibility() && !(n.labels?.length || n.getAttribute("aria-label") || n.innerText?.trim()
    || n.hasAttribute("alt")))
  .map((n) => n.outerHTML.slice(0, 200))"""


@pytest.mark.req("F4")
@pytest.mark.parametrize("tongue", MENU)
def test_every_page_is_reached_by_keyboard_alone(open_desk: Any, tongue: str) -> None:
    desk = open_desk(locale=tongue)
    desk.sign_in()
    for name in MENU[tongue]:
        desk.follow(name)
        assert desk.page.inner_text("h1") == name
        assert desk.page.get_attribute("html", "lang") == tongue[:2]
        assert desk.page.evaluate(_NAMELESS) == []


@pytest.mark.req("F2")
def test_a_dead_file_is_found_understood_and_retried_by_keyboard(
    open_desk: Any, running: Installation
) -> None:
    desk = open_desk()
    desk.sign_in()
    desk.tab_to("Find a file")
    desk.page.keyboard.type("scan 10")
    with desk.page.expect_navigation():
        desk.page.keyboard.press("Enter")
    desk.follow("Scan 10.pdf")
    assert "protected by a password" in desk.text
    before = len(found(running, t.events, type="JobRetried"))
    desk.press("Retry")
    desk.say(WHY)
    assert "It is recorded" in desk.text
    assert len(found(running, t.events, type="JobRetried")) == before + 1
    desk.follow("Who did what")
    assert WHY in desk.text


@pytest.mark.req("F2")
def test_dead_letters_are_brought_back_by_keyboard(open_desk: Any, running: Installation) -> None:
    desk = open_desk(locale="de-DE")
    desk.sign_in()
    desk.follow("Unzustellbar")
    many = len(found(running, t.jobs, state="dead", error="is encrypted"))
    desk.follow("Diese neu versuchen …")
    assert f"{many} passen; {many} würden neu versucht." in desk.text
    desk.tab_to("Grund, fürs Protokoll")
    desk.page.keyboard.type("Passwort entfernt")
    with desk.page.expect_navigation():
        desk.page.keyboard.press("Enter")
    assert f"{many} passten; {many} werden neu versucht." in desk.text
    assert found(running, t.jobs, state="dead", error="is encrypted") == []


@pytest.mark.req("F2")
def test_a_destination_is_paused_and_resumed_by_keyboard(
    open_desk: Any, running: Installation
) -> None:
    desk = open_desk()
    desk.sign_in()
    desk.follow("Destinations")
    desk.press("Pause")
    desk.say("the ERP is being moved")
    assert "the ERP is being moved" in desk.text
    assert [row.what for row in found(running, t.controls)] == ["destination:erp"]
    desk.press("Resume")
    desk.say("it is back")
    assert found(running, t.controls) == []


@pytest.mark.req("E5")
def test_messages_and_conflicts_are_settled_by_keyboard(
    open_desk: Any, running: Installation
) -> None:
    desk = open_desk()
    desk.sign_in()
    (unclear,) = found(running, t.messages, state="unclear")
    desk.go(f"/messages/{unclear.id}")
    desk.press("It arrived")
    desk.say(WHY)
    assert found(running, t.messages, id=unclear.id)[0].state == "delivered"
    (conflict,) = found(running, t.deliveries, verdict="conflict")
    desk.go(f"/deliveries/dlv_{conflict.id}")
    desk.press("Dismiss")
    desk.say("the source made a mistake")
    assert found(running, t.deliveries, id=conflict.id)[0].settled == "dismissed"


@pytest.mark.req("F3")
def test_the_past_is_shown_and_the_log_compared_by_keyboard(
    open_desk: Any, running: Installation
) -> None:
    desk = open_desk()
    desk.sign_in()
    desk.follow("Replay")
    desk.follow("Compare now")
    desk.page.get_by_text("0 rows differ").wait_for()
    desk.tab_to("Name, or any whole id")
    desk.page.keyboard.type("f-0")
    desk.page.keyboard.press("Tab")
    desk.page.keyboard.type(str(found(running, t.positions)[6].position))
    with desk.page.expect_navigation():
        desk.page.keyboard.press("Enter")
    assert "This is how the file was at" in desk.text
    desk.follow("Show it as it is now")


@pytest.mark.req("F4")
def test_an_open_page_shows_what_is_new_and_leaves_who_writes_alone(
    open_desk: Any, running: Installation
) -> None:
    desk = open_desk()
    desk.sign_in()
    desk.follow("Files")
    running.send(event(id="evt-new", file_id="f-new", file_name="Ganz neu.pdf"))
    desk.page.get_by_text("Ganz neu.pdf").wait_for()
    (row,) = found(running, t.files, file_id="f-new")
    desk.go(f"/files/{row.stream}")
    desk.page.get_by_text("live", exact=True).wait_for()
    desk.press("Hold")
    desk.page.keyboard.press("Tab")
    desk.page.keyboard.type("half a rea")
    running.send(event(id="evt-new-2", file_id="f-new", file_version=2, file_name="Ganz neu.pdf"))
    desk.page.get_by_text("news wait until you are done here").wait_for()
    desk.page.keyboard.type("son")
    with desk.page.expect_navigation():
        desk.page.keyboard.press("Enter")
    desk.follow("Who did what")
    assert "half a reason" in desk.text


@pytest.mark.req("F7")
def test_a_hostile_name_is_text_on_every_page(open_desk: Any, running: Installation) -> None:
    desk = open_desk()
    desk.sign_in()
    (row,) = found(running, t.files, name=HOSTILE)
    for path in ("/files", f"/files/{row.stream}", "/dead-letters", "/jobs", "/log"):
        desk.go(path)
        assert desk.page.locator("img[src='x']").count() == 0
        assert desk.page.locator("main b").count() == 0
    desk.go(f"/files/{row.stream}")
    assert desk.page.inner_text("h1") == HOSTILE
    assert HOSTILE in desk.page.title()


SHOWN = (
    ("overview", ""),
    ("files", "/files"),
    ("slip", "/files/{done}"),
    ("slip-failed", "/files/{failed}"),
    ("dead-letters", "/dead-letters"),
    ("messages", "/messages"),
    ("message", "/messages/{message}"),
    ("destinations", "/destinations"),
    ("sources", "/sources"),
    ("log", "/log"),
    ("replay", "/replay"),
    ("jobs", "/jobs"),
    ("deliveries", "/deliveries"),
    ("audit", "/audit"),
    ("sign-in", "/sign-in"),
)


@pytest.mark.req("F4")
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_page_can_be_read_in_light_and_dark_and_on_a_phone(
    open_desk: Any,
    running: Installation,
    theme: str,
    tmp_path: Path,
    request: pytest.FixtureRequest,
) -> None:
    keeps = request.config.getoption("--keep-pictures")
    folder = PICTURES if keeps else tmp_path
    desk = open_desk(color_scheme=theme, viewport={"width": 1180, "height": 820})
    desk.sign_in()
    for name, path in SHOWN:
        desk.go(path.format(**places(running)))
        least, where = desk.page.evaluate(_CONTRAST)
        assert least >= 4.5, (name, where)
        taken(desk.page, folder / f"{name}-{theme}.png", whole=name.startswith("slip"))
        desk.page.set_viewport_size({"width": 360, "height": 740})
        wide = desk.page.evaluate("() => document.scrollingElement.scrollWidth")
        assert wide <= 360, name
        if name == "slip":
            taken(desk.page, folder / f"{name}-phone-{theme}.png")
        desk.page.set_viewport_size({"width": 1180, "height": 820})


def taken(page: Page, path: Path, *, whole: bool = False) -> None:
    """A picture of a page, small enough to be kept with the documentation."""
    image = Image.open(io.BytesIO(page.screenshot(full_page=whole))).convert("RGB")
    image.quantize(200, dither=Image.Dither.NONE).save(path, optimize=True)


def places(running: Installation) -> dict[str, str]:
    """What the pages of single things are about."""
    return {
        "done": found(running, t.files, file_id="f-0")[0].stream,
        "failed": found(running, t.files, file_id="f-20")[0].stream,
        "message": found(running, t.messages, reference="ERP-4711")[0].id,
    }


def test_the_theme_is_chosen_by_hand_too(open_desk: Any) -> None:
    desk = open_desk(color_scheme="light")
    desk.sign_in()
    light = desk.page.evaluate("() => getComputedStyle(document.body).backgroundColor")
    desk.follow("Dark")
    assert desk.page.evaluate("() => getComputedStyle(document.body).backgroundColor") != light
    desk.follow("Deutsch")
    assert desk.page.get_attribute("html", "lang") == "de"
