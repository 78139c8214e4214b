"""The sample rigs that work by contact do what their headers say."""

import numpy as np
import pytest

from cosim import StoppedRun, load_rig
from tests.kit.refusals import raised, refusal
from tests.kit.samples import FOLDER

G = 9.81
FEET = ("lf", "rf", "lh", "rh")


def sample(name, *overrides):
    return load_rig(FOLDER / "contacts" / f"{name}.yaml", overrides).run()


def test_a_quadruped_stands_and_comes_back_after_a_push():
    run = sample("quadruped_stand")
    forces = sum(run[f"{foot}/normal_force"] for foot in FEET)
    assert forces[-1] == pytest.approx(12 * G, rel=1e-6)
    leans = np.abs(run["trunk.y/position"])
    before, pushed = run.t < 1.0, (run.t > 1.0) & (run.t < 1.2)
    assert leans[before].max() < 1e-4 < 1e-2 < leans[pushed].max()
    place = [run[f"trunk.{axis}/position"] for axis in "xyz"]
    assert all(abs(each[-1] - each[0]) < 1e-3 for each in place)
    # it has all feet on the ground, where they were
    for foot in FEET:
        assert np.all(run[f"{foot}/state"][5:] == 1.0)


def test_a_quadruped_trots():
    """Two opposite feet swing at a time; the trunk goes as fast as it should, and stays upright."""
    still = "mechanism.forces.push.params.force=[0, 0, 0]"
    trot = "controllers.stand.stride=0.4", "controllers.stand.speed=0.2", "schedule.duration=10 s"
    run = sample("quadruped_stand", still, *trot)
    late = run.t > 2.0
    assert run["trunk.x/position"][-1] == pytest.approx(0.2 * 9.5, rel=0.02)  # it begins at 0.5 s
    # of more than 20 steps each foot slides less than 0.5 mm in one
    assert all(run[f"{foot}/touches"][-1] > 20 and run[f"{foot}/slid"][-1] < 0.01 for foot in FEET)
    assert run["contacts/passes"].max() <= 3
    assert run["contacts/unconverged"][-1] == 0.0
    speed = np.polyfit(run.t[late], run["trunk.x/position"][late], 1)[0]
    assert speed == pytest.approx(0.2, rel=0.1)
    assert np.abs(run["trunk.z/position"] - run["trunk.z/position"][0]).max() < 0.03
    turns = np.abs([run[f"trunk.{turn}/position"] for turn in ("rx", "ry", "rz")])
    assert turns.max() < 0.4  # in the first steps
    assert turns[:, late].max() < 0.05
    stands = {foot: run[f"{foot}/normal_force"] > 0.0 for foot in FEET}
    for pair in (("lf", "rh"), ("rf", "lh")):
        share = np.mean(stands[pair[0]][late] == stands[pair[1]][late])
        assert share > 0.9, pair
        assert 0.4 < np.mean(stands[pair[0]][late]) < 0.7


def test_a_gripper_lifts_a_box():
    run = sample("gripper")
    height, lift = run["box.z/position"], run["lift/position"]
    assert height[-1] - height[0] == pytest.approx(0.15, abs=5e-4)
    held = run.t > 1.0
    assert np.ptp((height - lift)[held]) < 1e-4
    # each pad carries half of the weight, by friction
    for pad in ("left_pad", "right_pad"):
        assert run[f"{pad}/normal_force"][-1] == pytest.approx(6.0, rel=1e-3)
        assert run[f"{pad}/friction_force"][-1] == pytest.approx(0.1 * G, rel=1e-3)


def test_a_gripper_that_presses_less_loses_the_box():
    """2 μ F = 1.2 N, of a weight of 2 N."""
    run = sample("gripper", "controllers.squeeze.force=1 N")
    assert run["box.z/position"][-1] == pytest.approx(run["box.z/position"][0], abs=1e-3)


def test_a_peg_finds_its_hole():
    run = sample("peg_in_hole")
    assert run["x/position"][0] == 4e-3  # it comes down beside the hole
    assert run["east_chamfer/normal_force"].max() > 1.0
    assert run["x/position"][-1] == pytest.approx(0.5e-3, abs=1e-4)  # as far as the hole is wider
    assert run["z/position"][-1] == pytest.approx(-0.08, abs=2e-4)  # on the ground
    # the spring across is bent by 3.5 mm, the one along by 5 mm less what friction takes
    side = 1000 * (4e-3 - run["x/position"][-1])
    assert run["east/normal_force"][-1] == pytest.approx(side, rel=1e-3)
    along = 2000 * (run["z/position"][-1] + 0.085)
    assert run["bottom/normal_force"][-1] == pytest.approx(along, abs=0.2 * side + 1e-3)


def test_a_press_forms_a_blank_with_its_force():
    """The blank is a spring of 10 kN/mm in series with a yield force of 6 kN that hardens by 1 kN/mm."""
    force, elastic, hardening, yields, held = 10e3, 1e7, 1e6, 6e3, 2.0
    run = sample("press")
    pressed, formed, stroke = run["tool/normal_force"], run["form/position"], run["slide/position"]
    at = np.searchsorted(run.t, held)
    assert pressed[at] == pytest.approx(force, rel=1e-5)
    # the torque of the crank is what the force needs by virtual work on a slider–crank
    crank, rod, angle = 0.06, 0.3, run["crank/position"][at] + np.array([-1e-5, 0.0, 1e-5])
    way = np.sqrt(rod**2 - (crank * np.sin(angle)) ** 2) - crank * np.cos(angle) - (rod - crank)
    assert stroke[at] == pytest.approx(way[1], rel=1e-9)
    assert run["crank/effort"][at] == pytest.approx(force * (way[2] - way[0]) / 2e-5, rel=1e-5)
    # what was formed at the peak stays under the force: friction holds it
    assert pressed[:at].max() == pytest.approx(force, rel=0.03)
    assert formed[at] == pytest.approx((pressed[:at].max() - yields) / hardening, rel=2e-3)
    assert -run["tool/gap"][at] == pytest.approx(force / elastic, rel=1e-5)
    # without the force the bristles of the friction turn from holding the yield force to holding the hardening
    turned = (yields + hardening * formed[-1]) / 2e8
    springback = stroke[at] - 0.09 - formed[-1]  # 90 mm above the blank before
    assert springback == pytest.approx(force / elastic + turned, rel=1e-2)
    plastic = np.trapezoid((run["form/friction_effort"] * run["form/velocity"])[: at + 1], run.t[: at + 1])
    assert abs(plastic) == pytest.approx(yields * formed[at], rel=1e-2)


def test_a_press_stops_at_the_limit_of_its_tool():
    what = str(raised(StoppedRun, sample, "press", "controllers.press.force=13 kN"))
    assert "contact 'tool' presses with" in what
    assert "above its limit of 12000 N" in what


def test_a_number_of_a_controller_with_the_name_of_a_key_of_the_rig_is_refused(tmp_path):
    """It would never get what the rig file gives it."""
    text = (FOLDER / "contacts" / "squeeze.py").read_text().replace("    force: float", "    period: float")
    (tmp_path / "squeeze.py").write_text(text.replace("p.force", "p.period"))
    (tmp_path / "rig.yaml").write_text((FOLDER / "contacts" / "gripper.yaml").read_text())
    what = refusal(load_rig, tmp_path / "rig.yaml")
    assert "squeeze.py: its parameter 'period' has the name of a key that the rig file reads itself" in what
