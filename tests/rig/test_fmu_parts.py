"""FMUs as parts of a rig: coupled with its mechanism, beside parts in Python, and their mistakes."""

from __future__ import annotations

import numpy as np
import pytest

from cosim import InputError, InputErrors, StoppedRun, load_rig
from tests.fmi import fmus

pytestmark = fmus.needs_gcc

RIG = """
mechanism:
  gravity: [0, 0, 0]
  bodies: [{name: rotor, joint: shaft, axis: [0, 0, 1], mass: 1 kg, inertia: [0.02, 0.02, 0.02]}]
joints:
  shaft: {prescribed: {type: sine, amplitude: 30 deg, frequency: 1 Hz}}
parts:
  - {name: table, fmu: FILE, params: {temperature: 30 degC}}
couplings:
  order: 2
  wires: [{output: mechanism.shaft/velocity, input: table.rate}]
schedule: {step: 2 ms, duration: 0.1 s}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """With turntables of both versions, which integrate their rate in deg/s."""
    folder = tmp_path_factory.mktemp("fmus")
    for version in (2, 3):
        file = fmus.build(folder, "turntable", version)
        (folder / f"{version}.yaml").write_text(RIG.replace("FILE", file.name))
    return folder


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("interface", ["co_simulation", "model_exchange"])
@pytest.mark.parametrize("process", ["true", "false"])
def test_an_fmu_follows_the_mechanism_in_si(folder, version, interface, process):
    settings = f"parts.table.interface={interface}", f"parts.table.process={process}"
    rig = load_rig(folder / f"{version}.yaml", settings)
    run = rig.run()
    assert run.units["table/angle"] == "rad" and not rig.native
    assert run.rig.engine["part table"] == "Python: an FMU"
    moved = run["shaft/position"] - run["shaft/position"][0]
    held = interface == "co_simulation" and version == 3  # its input is constant in a step
    np.testing.assert_allclose(run["table/angle"], moved, atol=5e-3 if held else 1e-5)
    assert np.abs(moved).max() > 0.3
    np.testing.assert_array_equal(rig.run().values, run.values)  # a new instance


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("parts.table.fmu=nowhere.fmu", "--set parts.table.fmu=nowhere.fmu: there is no file {folder}/nowhere.fmu"),
        (
            "parts.table.params={temprature: 1}",
            "--set parts.table.params={{temprature: 1}}: {folder}/turntable2.fmu table.temprature: there is no such"
            " parameter; did you mean 'temperature'?",
        ),
        (
            "parts.table.params.temperature=30 kg",
            "--set parts.table.params.temperature=30 kg: {folder}/turntable2.fmu table.temperature: unit 'kg' does not"
            " fit it; use degC, °C",
        ),
        (
            "parts.table.params.double=1",
            "--set parts.table.params.double=1: {folder}/turntable2.fmu table.double: cannot be set: it is an output of"
            " variability continuous; known: angle, rate, temperature",
        ),
        (
            "parts.table.outputs=[angel]",
            "{folder}/2.yaml:8 parts[0].fmu: {folder}/turntable2.fmu table: there is no output 'angel'; did you mean"
            " 'angle'?",
        ),
        (
            "couplings.wires.0.output=mechanism.shaft/position",
            "{folder}/2.yaml:11 couplings.wires[0]: 'mechanism.shaft/position' is in rad, 'table.rate' in rad/s; both"
            " must be the same",
        ),
    ],
)
def test_mistakes(folder, override, message):
    with pytest.raises(InputErrors) as wrong:
        load_rig(folder / "2.yaml", [override])
    assert str(wrong.value) == message.format(folder=folder)


def test_an_fmu_that_is_damaged(folder):
    (folder / "damaged.fmu").write_bytes((folder / "turntable2.fmu").read_bytes()[:500])
    with pytest.raises(InputErrors, match=r"damaged\.fmu: no zip archive .*; an FMU is one: export or copy"):
        load_rig(folder / "2.yaml", ["parts.table.fmu=damaged.fmu"])


FAULTY = """
mechanism:
  bodies: [{name: rotor, joint: shaft, axis: [0, 0, 1], mass: 1 kg, inertia: [0.02, 0.02, 0.02]}]
parts:
  - {name: bad, fmu: FILE, params: {when: 0.1}}
couplings: {time_limit: 1 s}
schedule: {step: 10 ms, duration: 2 s}
"""
FAULTS = {
    2: r"division by zero in 'torque'",  # error
    4: r"1 s",  # hangs
    5: r"signal 11|SIGSEGV",  # crashes
    6: r"output 'y' is nan at t = 0\.11 s",
    9: r"exit|ended",
}


@pytest.mark.parametrize("fault", FAULTS)
def test_an_fmu_that_fails_stops_the_run_and_keeps_what_it_has(folder, fault):
    file = fmus.build(folder, "faulty", 2)
    (folder / "faulty.yaml").write_text(FAULTY.replace("FILE", file.name))
    rig = load_rig(folder / "faulty.yaml", [f"parts.bad.params.fault={fault}"])
    with pytest.raises(StoppedRun, match=FAULTS[fault]) as stopped:
        rig.run()
    run = stopped.value.run
    assert run.fault.startswith("stopped at tick 10 (t = 0.1 s): ") and len(run.t) == 10
    np.testing.assert_allclose(run["bad/y"], 0.01 * np.arange(10), atol=1e-12)


def test_an_fmu_that_does_not_initialise_ends_before_the_first_tick(folder):
    file = fmus.build(folder, "faulty", 2)
    (folder / "faulty.yaml").write_text(FAULTY.replace("FILE", file.name))
    with pytest.raises(InputError, match="no solution of the initial equations"):
        load_rig(folder / "faulty.yaml", ["parts.bad.params.fault=7"]).run()
