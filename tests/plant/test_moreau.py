"""The step of mechanisms with contacts on rigs without any, by rule: it converges to what the rig's own integrator
gives, with all kinds of joints, drives, loops, given motions and elastic links."""

from pathlib import Path

import numpy as np
import pytest

from cosim import load_rig

RIGS = Path(__file__).parents[2] / "rigs"
# rig -> duration [s], largest difference over the range of a joint at the rig's own step
SMOOTH = {
    "two_link": (0.5, 2e-4),
    "arm_sim": (0.3, 3e-2),
    "crane": (0.5, 1e-6),
    "prescribed_wrist": (0.3, 1e-2),
    "mechanisms/floating_chain": (1.0, 1e-5),
    "mechanisms/four_bar": (0.5, 1e-3),
    "mechanisms/parallelogram": (0.5, 1e-2),
    "mechanisms/suspension": (0.5, 1e-2),
    "mechanisms/car_axis": (0.3, 1e-3),
    "mechanisms/coupled_wrist": (0.3, 1e-2),
    "mechanisms/arm_on_moving_base": (0.3, 1e-3),
    "mechanisms/stick_slip": (0.3, 1e-2),
    "mechanisms/skate": (0.3, 1e-4),
    "mechanisms/solar_linkage": (0.3, 2e-3),
    "elastic/two_link_arm": (0.1, 1e-1),
    "elastic/single_link_tip": (0.3, 1e-3),
    "bench/flexible_arm": (0.02, 1e-2),
    "drives/two_stage_gear": (0.2, 1e-3),
    "drives/switched_inverter": (0.02, 1e-4),
    "cosimulation/winch": (0.3, 1e-3),
}


def moved(rig, duration, *overrides):
    run = load_rig(RIGS / f"{rig}.yaml", overrides).run(duration=duration)
    return run, {joint: run[f"{joint}/position"] for joint in run.joints}


def imbalance(run):
    """Largest change of the energy balance over the energy that moved."""
    balance, moved = run["energy/stored"] + run["energy/dissipated"] - run["energy/work"], [1e-12]
    for more in ("energy/forces", "energy/parts"):
        if more in run.signals:
            balance = balance - run[more]
    moved += [
        np.max(np.abs(run[f"energy/{what}"])) for what in ("stored", "dissipated", "work", "kinetic", "potential")
    ]
    return np.max(np.abs(balance - balance[0])) / max(moved)


@pytest.mark.parametrize("rig", SMOOTH)
def test_the_step_converges_to_the_motion_of_another_integrator(rig):
    duration, largest = SMOOTH[rig]
    schedule = load_rig(RIGS / f"{rig}.yaml").spec.schedule
    substeps = schedule.substeps
    _, exact = moved(rig, duration, *([] if schedule.adaptive else [f"schedule.substeps={16 * substeps}"]))
    errors, balances = [], []
    for factor in (1, 2, 4):
        settings = "schedule.integrator=moreau", f"schedule.substeps={substeps * factor}"
        run, found = moved(rig, duration, *settings)
        ranges = {joint: max(np.ptp(x), 1e-5) for joint, x in exact.items()}
        errors.append(max(np.max(np.abs(found[j] - x)) / ranges[j] for j, x in exact.items()))
        balances.append(imbalance(run))
    assert errors[0] < largest
    assert errors[2] < 0.4 * errors[0] + 2e-6
    assert balances[2] < 0.4 * balances[0] + 1e-7


def test_interpreted_and_compiled_steps_are_the_same():
    runs = [
        load_rig(RIGS / "two_link.yaml", ["schedule.integrator=moreau"], interpret).run(duration=0.05)
        for interpret in (False, True)
    ]
    for name in runs[0].signals:
        assert np.allclose(runs[0][name], runs[1][name], rtol=1e-10, atol=1e-12), name
