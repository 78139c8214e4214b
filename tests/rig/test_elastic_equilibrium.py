"""`initial: equilibrium` of elastic links: they start in their sag and stay there."""

import numpy as np
import pytest

from cosim import load_rig
from tests.kit.refusals import refusal

ARM = """
mechanism:
  gravity: [0, 0, -9.81]
  bodies:
    - {name: boom, joint: hub, axis: [0, -1, 0]}
    - {name: jib, joint: wrist, parent: boom, axis: [0, -1, 0], origin: {xyz: [1, 0, 0]}}
  elastic:
    - {link: boom, initial: INITIAL, beam: {length: 1, stiffness: {mass: 1, EI: [900, 900]}, modes: {bend_z: 3}}}
    - {link: jib, initial: INITIAL, beam: {length: 0.5, stiffness: {mass: 1, EI: [200, 200]}, modes: {bend_z: 3}}}
  LOOPS
joints:
  hub: {prescribed: {type: quintic, goal: 0, duration: 1 s}}
  wrist: {prescribed: {type: quintic, goal: 0, duration: 1 s}}
  MORE
schedule: {step: 0.2 ms, duration: 0.2 s}
"""


def rig(folder, initial="equilibrium", loops="loops: []", more="all: {}", stiffness="900, 900"):
    text = ARM.replace("900, 900", stiffness).replace("INITIAL", initial).replace("LOOPS", loops).replace("MORE", more)
    (folder / "rig.yaml").write_text(text)
    return load_rig(folder / "rig.yaml")


def test_links_that_start_in_their_sag_stay_there(tmp_path):
    run = rig(tmp_path).run()
    for link in ("boom", "jib"):
        bend = np.array(run[f"{link}.bend_z_1/position"])
        assert bend[0] < -1e-4 and np.ptp(bend) < 1e-9
    swung = np.array(rig(tmp_path, "straight").run()["boom.bend_z_1/position"])
    assert swung[0] == 0.0 and swung.min() < 1.5 * run["boom.bend_z_1/position"][0]


def test_the_sag_is_that_of_a_cantilever(tmp_path):
    """m g L⁴ / (8 EI), and of the jib as a load at the tip: P L³ / (3 EI) + P a L² / (2 EI), a half its length;
    three modes of a clamped beam carry the load at its tip to some thousandths."""
    rig_of = rig(tmp_path)
    model, q = rig_of.plant.full_model, rig_of.plant.start.q
    load = 0.5 * 9.81
    sag = 9.81 / (8 * 900) + load / (3 * 900) + load * 0.25 / (2 * 900)
    assert model.frame_pose(q, "jib")[2, 3] == pytest.approx(-sag, rel=5e-3)


PIN = (
    "name: pin, parent: jib, child: base, axis: [0, 1, 0], origin: {xyz: [0.5, 0, 0]}, child_origin: {xyz: [1.5, 0, 0]}"
)


@pytest.mark.parametrize(
    "given",
    [
        {"more": "boom.bend_z_2: {initial: {position: 0}}"},
        {"loops": f"loops: [{{{PIN}}}]"},
        {"initial": "sagging"},
        {"stiffness": "0.1, 0.1"},
    ],
    ids=["given", "loop", "unknown", "too weak"],
)
def test_what_has_no_equilibrium(tmp_path, said, given):
    said(refusal(rig, tmp_path, **given))
