from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta

from app.clock import Clock, Dice, SeededDice, SettableClock, SystemClock, SystemDice

NOW = datetime(2026, 11, 30, 10, 15, 30, tzinfo=UTC)


def test_the_machines_clock_is_aware_and_its_spans_never_run_back() -> None:
    clock: Clock = SystemClock()
    assert clock.now().tzinfo is UTC
    assert clock.monotonic() <= clock.monotonic()
    assert not clock.wait(threading.Event(), -1)


def test_a_settable_clock_moves_only_when_told() -> None:
    clock = SettableClock(NOW)
    assert (clock.now(), clock.monotonic()) == (NOW, 0)
    clock.advance(5)
    assert (clock.now(), clock.monotonic()) == (NOW + timedelta(seconds=5), 5)


def test_waiting_on_a_settable_clock_ends_when_it_moves_or_the_event_comes() -> None:
    clock, moved, called = SettableClock(NOW), threading.Event(), threading.Event()

    def wait() -> None:
        clock.wait(moved, 3600)
        called.set()

    waiter = threading.Thread(target=wait)
    waiter.start()
    clock.advance(3600)
    waiter.join(10)
    assert called.is_set()
    moved.set()
    assert clock.wait(moved, 3600)


def test_seeded_dice_repeat_themselves_and_system_dice_do_not() -> None:
    assert [SeededDice(7).jitter(), SeededDice(7).salt()] == [
        SeededDice(7).jitter(),
        SeededDice(7).salt(),
    ]
    dice: Dice = SystemDice()
    assert dice.salt() != dice.salt()
    assert len(dice.salt()) == 16
    assert 0 <= dice.jitter() < 1
