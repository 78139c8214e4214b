"""What every driver refuses, and what a stop at any moment does: the base of all families, over each of them."""

import math
from collections.abc import Callable
from itertools import count

import pytest

from cosim.errors import RunError
from tests.conformance.families import stepped_cases
from tests.conformance.marks import drivers
from tests.conformance.wires import Desk
from tests.drivers.bench import refused
from tests.kit.clock import MS


@pytest.fixture
def desk(case, tmp_path, monkeypatch) -> Desk:
    return Desk(case, tmp_path, monkeypatch)


def calls_in_a_wrong_order(desk: Desk) -> list[str]:
    driver, wire = desk.driver, desk.wire

    def write(validity: int = MS, **fields) -> None:
        command = desk.command(**fields)
        command.valid_until_ns = wire.t_ns + validity
        driver.write(command, wire.t_ns + MS)

    said = [refused(driver.enable, "effort"), refused(driver.clear)]
    driver.stop()
    driver.open()
    said += [refused(driver.enable, "dance"), refused(write)]
    driver.enable("effort")
    sent = len(wire.sent)
    said += [refused(lambda: write(-MS))]
    said += [refused(lambda value=value: write(effort=[0.0, value])) for value in (math.nan, math.inf, 1e39)]
    assert len(wire.sent) == sent
    driver.stop()
    driver.close()
    driver.close()
    return [*said, refused(driver.enable, "effort")]


def test_calls_in_a_wrong_order_are_refused_alike(tmp_path, monkeypatch, said):
    """In the same words by every family."""
    found = set()
    for case in stepped_cases():
        with monkeypatch.context() as patch:
            found.add(tuple(calls_in_a_wrong_order(Desk(case, tmp_path, patch))))
    (words,) = found
    said(words)


def stopped_after(desk: Desk, number: int) -> None:
    """A signal or another thread stops the driver when it has sent so many more items."""
    send, numbers = desk.wire.send, count(1)

    def stopping(item, deadline_ns):
        send(item, deadline_ns)
        if next(numbers) == number:
            desk.wire.send = send
            desk.driver.stop()

    desk.wire.send = stopping


def every_stop_wins(desk: Desk, action: Callable[[], object], before: Callable[[], object]) -> None:
    """Wherever it comes: the action is refused, and no motor is on."""
    number = 1
    while True:
        before()
        stopped_after(desk, number)
        try:
            action()
        except RunError as error:
            assert str(error) == "the motors of a, b were stopped; enable the driver first"
        else:
            if vars(desk.wire).pop("send", None) is not None and desk.driver._is_on:
                break  # it was not stopped: there were fewer items
        for _ in range(30):
            desk.wire.step()
            assert not any(motor.requested for motor in desk.motors), number
        number += 1
    assert number > 1


@drivers
def test_a_stop_while_drives_are_switched_on_wins(desk):
    desk.driver.open()
    every_stop_wins(desk, lambda: desk.driver.enable("effort"), desk.driver.stop)


@drivers
def test_no_command_follows_a_stop(desk):
    desk.driver.open()

    def on() -> None:
        desk.driver.stop()
        desk.driver.enable("effort")
        desk.cycle(2, effort=0.05)

    every_stop_wins(desk, lambda: desk.cycle(1, effort=0.05), on)
