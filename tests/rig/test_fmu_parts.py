"""FMUs as parts of a rig: coupled with its mechanism, beside parts in Python, and their mistakes."""

from __future__ import annotations

import numpy as np
import pytest

from cosim import StoppedRun, load_rig
from cosim.rig.parameter_table import table_of
from tests.fmi import fmus
from tests.kit.given import beside
from tests.kit.refusals import raised, refusal

GIVEN = beside(__file__)

pytestmark = fmus.needs_gcc

RIG = GIVEN["rig"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """With turntables of both versions, which integrate their rate in deg/s."""
    folder = tmp_path_factory.mktemp("fmus")
    for version in (2, 3):
        file = fmus.build(folder, "turntable", version)
        (folder / f"{version}.yaml").write_text(RIG.replace("FILE", file.name))
    return folder


@pytest.mark.parametrize(
    ("version", "interface", "process"),
    [(2, "co_simulation", "true"), (3, "co_simulation", "false"), (3, "model_exchange", "false")],
)
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


@pytest.mark.parametrize("process", ["true", "false"])
def test_what_an_fmu_is_given_is_in_the_table_of_parameters(folder, said, process):
    rig = load_rig(folder / "2.yaml", [f"parts.table.process={process}"])
    given = table_of(rig).unset()["table.temperature"]
    assert (given["value"], given["unit"], given["changes"]) == (30.0, "degC", "fixed")
    said([refusal(rig.run, parameters={f"table.{name}": 5}) for name in ("temperature", "rate")])
    warmer = load_rig(folder / "2.yaml", [f"parts.table.process={process}", "parts.table.params.temperature=31 degC"])
    assert table_of(warmer).fixed["table.temperature"].given == 31.0


@pytest.mark.parametrize("override", GIVEN["mistakes"])
def test_mistakes(folder, said, override):
    (folder / "damaged.fmu").write_bytes((folder / "turntable2.fmu").read_bytes()[:500])
    said(refusal(load_rig, folder / "2.yaml", [override, "parts.table.process=false"]).replace(str(folder), ""))


FAULTY = """
mechanism:
  bodies: [{name: rotor, joint: shaft, axis: [0, 0, 1], mass: 1 kg, inertia: [0.02, 0.02, 0.02]}]
parts:
  - {name: bad, fmu: FILE, params: {when: 0.1}}
schedule: {step: 10 ms, duration: 2 s}
"""
# fault -> whether the FMU is in its own process, as one must be that hangs, crashes or exits
FAULTS = {2: "false", 4: "true", 5: "true", 6: "false", 9: "true"}


@pytest.fixture(scope="module")
def faulty(folder):
    (folder / "faulty.yaml").write_text(FAULTY.replace("FILE", fmus.build(folder, "faulty", 2).name))
    return folder / "faulty.yaml"


@pytest.mark.parametrize("fault", FAULTS)
def test_an_fmu_that_fails_stops_the_run_and_keeps_what_it_has(faulty, said, fault):
    limit = ["couplings.time_limit=3 s"] if fault == 4 else []
    rig = load_rig(faulty, [f"parts.bad.params.fault={fault}", f"parts.bad.process={FAULTS[fault]}", *limit])
    run = raised(StoppedRun, rig.run).run
    assert run.fault.startswith("stopped at tick 10 (t = 0.1 s): ") and len(run.t) == 10
    said(run.fault.replace(str(faulty.parent), ""))
    np.testing.assert_allclose(run["bad/y"], 0.01 * np.arange(10), atol=1e-12)


def test_an_fmu_that_does_not_initialise_ends_before_the_first_tick(faulty):
    words = refusal(load_rig(faulty, ["parts.bad.params.fault=7", "parts.bad.process=false"]).run)
    assert "no solution of the initial equations" in words
