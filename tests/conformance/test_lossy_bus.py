"""A bus that loses or repeats messages while the program connects: it is asked again, or named as the cause."""

from typing import Any

import numpy as np
import pytest

from cosim.core.errors import CosimError
from cosim.execution.hardware.emulation.fault_injection import FaultyConnection

from .families import Case, fault
from .marks import drivers
from .wires import Desk

SEEDS = range(2)


def disturb(emulator: Any, seed: int, kind: str, fraction: float) -> None:
    """Lose or repeat this fraction of the messages in each direction."""
    faulty, handle, process = FaultyConnection(seed), emulator.handle, emulator.process
    faulty.begin([fault(kind, fraction=fraction)])

    def disturbed(item: Any, t_ns: int) -> list[Any]:
        arrived = faulty.through([item], t_ns, inward=True)
        return [answer for each in arrived for answer in faulty.through(list(handle(each, t_ns)), t_ns, inward=False)]

    emulator.handle = disturbed
    emulator.process = lambda t_ns: faulty.through(list(process(t_ns)), t_ns, inward=False)


@drivers
@pytest.mark.parametrize("kind", ["drop", "duplicate"])
def test_a_bus_that_spoils_5_percent_of_its_messages_is_asked_again(case: Case, kind: str, tmp_path, monkeypatch):
    (tmp_path / "sound").mkdir()
    with monkeypatch.context() as patch:
        sound = Desk(case, tmp_path / "sound", patch)
        sound.driver.open()
        sound.driver.enable("effort")
    for seed in SEEDS:
        folder = tmp_path / str(seed)
        folder.mkdir()
        with monkeypatch.context() as patch:
            desk = Desk(case, folder, patch)
            disturb(desk.emulator, seed, kind, 0.05)
            desk.driver.open()
            desk.driver.enable("effort")
            for mine, right in zip(settings(desk.driver), settings(sound.driver), strict=True):
                np.testing.assert_array_equal(mine, right)
            desk.driver.close()


def settings(driver: Any) -> tuple[Any, ...]:
    """What a driver knows of its drives."""
    own = getattr(driver, "_settings", None) or getattr(driver, "_own", None) or getattr(driver, "_properties", [])
    return driver.feedforward.limit, driver.feedforward.resolution, np.array(list(map(str, own)))


@drivers
def test_a_bus_that_loses_most_messages_is_named_as_the_cause(case: Case, tmp_path, monkeypatch):
    desk = Desk(case, tmp_path, monkeypatch)
    refused = 0
    for seed in range(4):
        disturb(desk.emulator, seed, "drop", 0.25)
        try:
            desk.driver.open()
            desk.driver.enable("effort")
        except CosimError as error:
            refused += 1
            words = str(error)
            assert desk.wire.name in words or "watchdog" in words, words
            assert "firmware" not in words and "calibrated" not in words and "supply" not in words, words
        desk.driver.close()
    assert refused
