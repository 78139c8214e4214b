"""Every family gets its recorded traffic again: it sends the same and measures the same, and a changed one does not."""

from dataclasses import replace

import numpy as np

from cosim.core.types import COMMAND
from cosim.execution.hardware.traffic.player import PlaybackConnection, play
from cosim.execution.hardware.traffic.recorded_driver import RecordedConnection, RecordedDriver
from cosim.execution.hardware.traffic.traffic_log import TrafficLog, calls_of
from cosim.rig.rig import Rig
from cosim.rig.sections.rig_spec import read_rig

from .families import Bench
from .marks import in_memory, on_lines

CYCLES = 40


def contexts(path):
    spec = read_rig(path)
    return spec.drivers[0], Rig(spec, interpret=True).contexts[spec.drivers[0].name]


def record(case, folder, patch):
    """The entries of a driver that is opened, enabled, commanded, stopped and closed."""
    with Bench(case, folder) as bench:
        spec, context = contexts(folder / "rig.yaml")
        bench.lend(patch)
        log = TrafficLog((spec.name,))
        traffic = log.of(spec.name)
        context = replace(context, tap=lambda link: RecordedConnection(link, traffic))
        bench.driver = RecordedDriver(spec.family.load(spec.plugin.params, context), traffic)
        bench.open(sorted(bench.driver.modes)[0])
        for k in range(CYCLES):
            bench.write(position=bench.out.position + 1e-3 * k, velocity=0.1, effort=0.05 * k / CYCLES)
            bench.read()
        bench.driver.stop()
        bench.read()
        bench.driver.close()
    log.end(0)
    assert log.lost == [0]
    return log.take(1 << 20)


def played(path, entries, change=lambda driver: None):
    spec, context = contexts(path)
    link = PlaybackConnection("playback")
    driver = spec.family.load(spec.plugin.params, replace(context, ends=(link, None)))
    change(driver)
    return play(driver, link, calls_of(entries))


@on_lines
def test_a_driver_repeats_its_traffic(case, tmp_path, monkeypatch):
    entries = record(case, tmp_path, monkeypatch)
    for _ in range(2):
        found = played(tmp_path / "rig.yaml", entries)
        assert found.first is None and not found.differing and not found.mixed and found.missing is None
        assert found.measured >= CYCLES and found.sent >= CYCLES and found.received >= CYCLES


@in_memory
def test_a_changed_scale_is_found_in_the_first_call_that_it_changes(case, tmp_path, monkeypatch):
    """Of efforts alone: before the first command with an effort a driver does the same."""
    entries = record(case, tmp_path, monkeypatch)

    def change(driver):
        if driver.interpreted is not None:
            fill = driver.interpreted.fill
            driver.interpreted.fill = lambda rows: fill((q, v, 1.5 * effort, *gains) for q, v, effort, *gains in rows)
        else:
            exact = driver.units.drive_effort
            driver.units.drive_effort = lambda effort: [1.5 * value for value in exact(effort)]

    first = played(tmp_path / "rig.yaml", entries, change).first
    assert first is not None and (first.call, first.what) == ("write", "item")
    assert first.recorded != first.now
    commands = [call.begin.content for call in calls_of(entries) if call.what == "write"]
    efforts = [np.frombuffer(given.numbers).reshape(len(COMMAND), -1)[2, 0] for given in commands]
    resolution = 0.001  # N·m, coarser than any command's
    assert 0 < efforts[commands.index(first.given)] < 2 * (efforts[1] + resolution)


@in_memory
def test_a_changed_direction_is_found_where_it_is_measured_or_sent_first(case, tmp_path, monkeypatch):
    entries = record(case, tmp_path, monkeypatch)

    def change(driver):
        driver.units.scale[0] *= -1.0

    found = played(tmp_path / "rig.yaml", entries, change)
    assert found.first is not None and found.first.what in ("item", "position")
    assert found.first.run_ns == 0 and found.calls  # to its end, whatever it does
