"""Every family gets its recorded traffic again: it sends the same and measures the same, and a changed one does not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cosim.hardware.traffic.playback import PlaybackConnection
from cosim.hardware.traffic.player import play
from cosim.hardware.traffic.recorded_calls import calls_of
from cosim.hardware.traffic.recorded_connection import RecordedConnection
from cosim.hardware.traffic.recorded_driver import RecordedDriver
from cosim.hardware.traffic.traffic_log import TrafficLog
from cosim.rig.rig import Rig
from cosim.rig.sections.rig_spec import read_rig

from .families import Bench, cases

CASES = [case for case in cases() if not case.compiled]
CYCLES = 40


def contexts(path):
    spec = read_rig(path)
    return spec.drivers[0], Rig(spec, interpret=True).contexts[spec.drivers[0].name]


def record(case, folder):
    """The entries of a driver that is opened, enabled, commanded, stopped and closed."""
    with Bench(case, folder) as bench:
        spec, context = contexts(folder / "rig.yaml")
        log = TrafficLog((spec.name,))
        traffic = log.of(spec.name)
        context = replace(context, tap=lambda link: RecordedConnection(link, traffic))
        bench.driver = RecordedDriver(spec.family.load(spec.plugin.params, context), traffic)
        bench.open(sorted(bench.driver.modes)[0])
        for k in range(CYCLES):
            bench.write(position=bench.out.position + 1e-3 * k, velocity=0.1, effort=0.01 * k / CYCLES)
            bench.read()
        bench.driver.stop()
        bench.read()
        bench.driver.close()
    assert log.lost == [0]
    return log.take(1 << 20)


def played(path, entries, change=lambda driver: None):
    spec, context = contexts(path)
    link = PlaybackConnection("playback")
    driver = spec.family.load(spec.plugin.params, replace(context, ends=(link, None)))
    change(driver)
    return play(driver, link, calls_of(entries))


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_driver_repeats_its_traffic(case, tmp_path):
    entries = record(case, tmp_path)
    for _ in range(2):
        found = played(tmp_path / "rig.yaml", entries)
        assert found.first is None and not found.differing and not found.mixed and found.gap is None
        assert found.measured >= CYCLES and found.sent >= CYCLES and found.received >= CYCLES


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_changed_scale_is_found_at_the_first_changed_item(case, tmp_path):
    entries = record(case, tmp_path)

    def change(driver):
        driver.units.scale[0] *= 1.001

    found = played(tmp_path / "rig.yaml", entries, change)
    assert found.first is not None
    print(found.first)
