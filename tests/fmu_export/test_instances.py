"""Instances of an FMU: independent of each other, saved and restored to the bit, and what they refuse."""

from __future__ import annotations

import ctypes
from pathlib import Path

import fmpy
import numpy as np
import pytest
from fmpy.fmi1 import FMICallException

from cosim import StoppedRun
from tests.fmu_export.instances import VERSIONS, ImportedUnit, imported, written
from tests.kit.refusals import raised

SWING = """\
name: swing 100%
mechanism:
  bodies:
    - {name: link, joint: hinge, axis: [0, 1, 0], mass: 1 kg, com: [0, 0, -0.5], inertia: [0.1, 0.1, 0.1]}
joints:
  hinge: {initial: {position: 10 deg}, limits: {velocity: 2 rad/s}}
controllers:
  - {name: hold, type: pid, kp: 50, ki: 10, kd: 5, trajectory: {type: quintic, goal: 80 deg, duration: 0.5}}
schedule: {duration: 0.4 s}
"""
KP = "hold.kp/hinge"
PLACES = ("hinge/position", "hinge/command_effort", "energy/work")


@pytest.fixture(params=VERSIONS)
def swing(request, shared_rig, exported):
    """(the rig, its FMU)."""
    return shared_rig(SWING), exported(SWING, request.param)


def test_instances_side_by_side_do_not_know_each_other(swing, tmp_path):
    rig, file = swing
    with imported(file, tmp_path / "a") as a, imported(file, tmp_path / "b") as b:
        a.begin()
        b.begin()
        b.set(KP, 20.0)
        for _ in range(100):
            a.advance(1)
            b.advance(1)
        runs = rig.run(duration=0.1), rig.run(duration=0.1, parameters={"hold.kp": 20.0})
        assert [a[PLACES], b[PLACES]] == [[run[name][100] for name in PLACES] for run in runs]
        assert a[PLACES] != b[PLACES]


def test_fmus_of_different_rigs_share_a_process_and_its_symbols(swing, shared_rig, exported, tmp_path):
    """Loaded so that later libraries could find the symbols of the first."""
    rig, file = swing
    other = shared_rig("mechanisms/four_bar")
    files = file, exported("mechanisms/four_bar", 2)
    expected = rig.run(duration=0.05)["hinge/position"][-1], other.run(duration=0.05)["crank/position"][-1]
    for k, each in enumerate(files):
        folder = fmpy.extract(str(each), str(tmp_path / f"global{k}"))
        (binary,) = Path(folder).glob("binaries/*/*.so")
        ctypes.CDLL(str(binary), mode=ctypes.RTLD_GLOBAL)
    with imported(files[0], tmp_path / "a") as a, imported(files[1], tmp_path / "b") as b:
        for unit in (a, b):
            unit.begin()
            unit.advance(50)
        assert (a[("hinge/position",)][0], b[("crank/position",)][0]) == expected


def test_a_state_is_restored_to_the_bit(swing, tmp_path):
    _, file = swing
    with imported(file, tmp_path / "a") as unit, imported(file, tmp_path / "b") as other:
        unit.begin()
        unit.advance(50)
        unit.set(KP, 60.0)
        state, number = unit.fmu.getFMUState(), unit.number
        content = unit.fmu.serializeFMUState(state)
        unit.advance(30)
        first = unit[PLACES]
        unit.set(KP, 5.0)
        unit.advance(10)
        unit.fmu.setFMUState(state)
        unit.number = number
        unit.advance(30)
        assert unit[PLACES] == first
        other.begin()
        copy = other.fmu.deserializeFMUState(content)
        other.fmu.setFMUState(copy)
        other.number = number
        other.advance(30)
        assert other[PLACES] == first
        unit.fmu.freeFMUState(state)
        other.fmu.freeFMUState(copy)
        assert not unit.messages + other.messages


def test_what_is_no_state_of_this_fmu_is_refused(swing, exported, tmp_path):
    _, file = swing
    version = int(file.stem[-1])
    other = exported("mechanisms/four_bar", version)
    with imported(file, tmp_path / "a") as unit, imported(other, tmp_path / "b") as foreign:
        unit.begin()
        foreign.begin()
        state = foreign.fmu.getFMUState()
        content = foreign.fmu.serializeFMUState(state)
        for wrong in (content, content[:20]):
            with pytest.raises(FMICallException):
                unit.fmu.setFMUState(unit.fmu.deserializeFMUState(wrong))
        with pytest.raises(FMICallException):
            unit.fmu.setFMUState(ctypes.c_void_p())
        # FMPy hands the messages of FMI 2.0 to the instance that was made last
        assert unit.messages + foreign.messages == ["the state belongs to another FMU"] * 3
        foreign.fmu.freeFMUState(state)
        unit.advance(1)


def test_reset_begins_anew_also_at_another_time(swing, tmp_path):
    _, file = swing
    with imported(file, tmp_path / "a") as unit:
        unit.begin()
        unit.set(KP, 5.0)
        unit.advance(20)
        after = unit[PLACES]
        unit.fmu.reset()
        assert unit[(KP,)] == [50.0]
        unit.set(KP, 5.0)
        unit.begin(start=3.0)
        for k in range(20):
            unit.fmu.doStep(3.0 + k * unit.step, unit.step)
        assert unit[PLACES] == after


def test_a_step_of_several_ticks_is_several_steps(swing, tmp_path):
    _, file = swing
    with imported(file, tmp_path / "a") as a, imported(file, tmp_path / "b") as b:
        a.begin()
        b.begin()
        a.advance(10, ticks=7)
        b.advance(70)
        assert a[PLACES] == b[PLACES]


def test_outputs_may_be_read_at_any_time_without_effect(swing, tmp_path):
    _, file = swing
    with imported(file, tmp_path / "a") as a, imported(file, tmp_path / "b") as b:
        a.begin()
        b.begin()
        for _ in range(50):
            _ = a[PLACES]
            a.advance(1)
        b.advance(50)
        assert a[PLACES] == b[PLACES]


def test_steps_that_are_no_ticks_are_refused(swing, said, tmp_path):
    _, file = swing
    with imported(file, tmp_path / "a") as unit:
        unit.begin()
        unit.advance(3)
        before = unit[PLACES]
        for time, step in ((3e-3, 1.5e-3), (3e-3, 0.0), (3e-3, -1e-3), (3e-3, 1e-4), (5e-3, 1e-3), (np.nan, 1e-3)):
            with pytest.raises(FMICallException):
                unit.fmu.doStep(time, step)
        said(unit.messages)
        assert unit[PLACES] == before
        unit.advance(1)


def test_what_cannot_be_set_is_refused(swing, said, tmp_path):
    _, file = swing
    with imported(file, tmp_path / "a") as unit:
        unit.begin()
        for name, value in ((KP, -1.0), (KP, np.nan), ("hinge/position", 1.0)):
            with pytest.raises(FMICallException):
                unit.set(name, value)
        said(unit.messages)
        assert unit[(KP,)] == [50.0]


def test_functions_at_the_wrong_time_are_refused(swing, said, tmp_path):
    _, file = swing
    with imported(file, tmp_path / "a") as unit:
        with pytest.raises(FMICallException):
            unit.advance(1)
        unit.begin()
        unit.fmu.terminate()
        with pytest.raises(FMICallException):
            unit.set(KP, 1.0)
        said(unit.messages)


def test_a_binary_takes_its_own_model_description_only(swing, tmp_path, monkeypatch):
    _, file = swing
    heard: list[str] = []
    monkeypatch.setattr(ImportedUnit, "_hear", lambda self, *words: heard.append(words[-1].decode()))
    with pytest.raises(Exception, match="instantiate"):
        ImportedUnit(file, tmp_path / "a", "{0}")
    assert heard == ["the model description belongs to another FMU; export it again"]


def test_a_stop_of_the_guard_ends_it_with_its_reason(rig_of, tmp_path):
    rig = rig_of(SWING.replace("duration: 0.5", "duration: 0.2"))
    stop = raised(StoppedRun, rig.run)
    run = stop.run
    for version in VERSIONS:
        with imported(written(rig, tmp_path, version), tmp_path / str(version)) as unit:
            unit.begin()
            state = unit.fmu.getFMUState()
            with pytest.raises(FMICallException):
                unit.advance(400)
            assert unit.number == len(run.t) - 1  # the last tick of the run is the one with the fault
            assert unit[PLACES] == [run[name][-1] for name in PLACES]
            t = f"{unit.number * unit.step:.6g}"
            what = "joint 'hinge' is beyond its velocity limit of 2 rad/s"
            assert unit.messages == [f"stopped at tick {unit.number} (t = {t} s): {what}"]
            assert f"stopped at tick {unit.number} (t = {t} s): joint 'hinge' moves at" in str(stop)
            with pytest.raises(FMICallException):
                unit.advance(1)
            assert unit.messages[-1] == f"fmi{version}DoStep is not allowed after a fault"
            unit.fmu.setFMUState(state)
            unit.number = 0
            unit.advance(1)
            unit.fmu.freeFMUState(state)
