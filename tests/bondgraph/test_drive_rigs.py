"""The sample rigs of gears and branching drives, against published values and equations by hand."""

from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from cosim import Rig

Sample = Callable[..., Rig]


def test_a_lossy_gear_sticks_and_slips_as_published(sample: Sample) -> None:
    """LossyGearDemo1 of the Modelica Standard Library 4.1.0, whose gear is rigid."""
    run = sample("drives/lossy_gear").run()
    at = np.searchsorted(run.t, np.array([0.1, 0.3, 0.4, 0.5]) - 1e-9)
    published = np.array([-0.0011168879, -0.00051731711, 0.00020835793, 1.66216872e-5])
    assert run["output/position"][at] == pytest.approx(published, abs=3e-4 * np.ptp(published))
    velocity = run["output/velocity"]
    stuck = np.abs(velocity[at]) < 1e-7
    assert np.where(stuck, 0.0, np.sign(velocity[at])).tolist() == [0.0, 1.0, 0.0, -1.0]  # the modes of the gear
    assert velocity[-1] == pytest.approx(-0.016261924, rel=3e-4)
    # stuck it holds what is between 1/η and η' of what the mesh transmits: motor torque 2 M and M / 2
    mesh, friction = run["output/mesh"], run["output/friction"]
    assert ((friction > -0.5001 * mesh) & (friction < 1.0001 * mesh))[5:].all()


def test_a_shaft_with_backlash_throws_its_inertia_as_published(sample: Sample) -> None:
    """ElastoBacklash of the Modelica Standard Library 4.1.0."""
    run = sample("drives/backlash").run()
    at = np.searchsorted(run.t, np.array([0.1, 0.25, 0.5, 1.0]) - 1e-9)
    assert run["inertia/position"][at] == pytest.approx([0.2498311, 0.5808075, -0.30993973, -0.1555704], abs=5e-5)
    assert run["inertia/velocity"][at] == pytest.approx([52.893741, 30.080733, -17.228305, -7.02293], rel=2e-5)


def test_a_dc_machine_starts_as_published(sample: Sample) -> None:
    """DCPM_Start of the Modelica Standard Library 4.1.0."""
    run = sample("drives/dc_start").run()
    at = np.searchsorted(run.t, np.array([0.5, 1.0, 2.0]) - 1e-9)
    assert run["shaft/current"][at] == pytest.approx([91.915255, 92.527382, 99.9743466], rel=1e-6)
    assert run["shaft/velocity"][at] == pytest.approx([51.63637, 149.81254, 149.2278453], rel=1e-6)


def test_the_efficiency_of_a_stage_over_its_load_has_its_closed_form(sample: Sample) -> None:
    """η = M_load / (M_load + M_0 + μ M_load), as the load rises."""
    run = sample("drives/gear_efficiency").run()
    later = run.t > 0.01  # the mesh has been wound up
    load, efficiency = run["output/load_torque"][later], run["output/efficiency"][later]
    assert load[0] < 1.0 and load[-1] == pytest.approx(40.0)
    assert efficiency == pytest.approx(load / (load + 0.45 + 0.15 * load), rel=2e-4)
    assert efficiency[0] < 0.6 and efficiency[-1] > 0.85


def two_motors(t: float, x: np.ndarray) -> list[float]:
    """Of currents, motor speeds, angles of both motors, and the speed and angle of the table."""
    i, w, angle, speed, table = x[0:2], x[2:4], x[4:6], x[6], x[7]
    voltage = np.array([4.0, 4.0] if t < 0.15 else [3.0, -3.0])
    twist = angle - 20.0 * table
    spring = 30.0 * (twist - np.clip(twist, -np.radians(1.5), np.radians(1.5)))
    damper = np.clip(0.02 * (w - 20.0 * speed), -np.abs(spring), np.abs(spring))
    mesh = 20.0 * (spring + damper)
    share = np.where(mesh * speed > 0.0, 1.04, 0.96)
    friction = 0.04 * np.abs(mesh) / share * speed / np.sqrt(speed**2 + 0.01**2)
    torque = np.sum(mesh - friction) - 0.5 * speed
    return [*(voltage - 0.4 * i - 0.05 * w) / 0.6e-3, *(0.05 * i - mesh / 20.0) / 1.5e-4, *w, torque / 2.0, speed]


def test_two_motors_on_one_load_move_as_their_equations_by_hand(sample: Sample) -> None:
    run = sample("drives/two_motors", "schedule.tolerance=1e-8").run()
    x, parts = np.zeros(8), [np.zeros((8, 1))]
    for begin, end in pairwise([0.0, 0.15, 0.5]):
        times = run.t[(run.t > begin + 1e-9) & (run.t < end + 1e-9)]
        options = {"method": "LSODA", "rtol": 1e-9, "atol": 1e-11, "max_step": 2e-3}
        span = (begin + 1e-12, times[-1] + (1e-12 if end < 0.5 else 0.0))
        found = solve_ivp(two_motors, span, x, t_eval=times, **options)
        x = found.y[:, -1]
        parts.append(found.y)
    by_hand = np.hstack(parts)
    expected = {"position": by_hand[7], "velocity": by_hand[6]}
    expected |= {f"{name}_twist": by_hand[4 + k] - 20.0 * by_hand[7] for k, name in enumerate(("first", "second"))}
    for name, values in expected.items():
        assert run[f"table/{name}"] == pytest.approx(values, abs=2e-4 * np.ptp(values)), name
    # from the first impacts on, the first stage stays on its side; the second crosses to the other
    first, second = run["table/first_torque"], run["table/second_torque"]
    after = run.t > 0.2
    assert first[after].min() > 0.2 and second[after].max() < -0.3
