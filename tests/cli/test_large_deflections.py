"""Elastic links that bend more than their modes are for: at the start, and in a run."""

from pathlib import Path

import numpy as np
import pytest

from cosim.mechanics.multibody.elastic.shape_functions import ShapeFunctions
from tests.multibody.elastic.beams import soft_link

ARM = """
mechanism:
  gravity: [0, -9.81, 0]
  bodies: [{name: arm, joint: hub}]
  elastic:
    - link: arm
      beam: {length: 2 m, section: {shape: rectangle, width: 6 mm, height: 40 mm}, density: 2700 kg/m^3,
             youngs_modulus: %s, modes: {bend_y: 2}, damping_ratio: 0.01}
joints:
  hub: {prescribed: {type: quintic, goal: 0, duration: 1 s}}
  %s
schedule: {step: 0.5 ms, duration: 0.5 s}
"""


def shown(command, youngs_modulus, start="arm.bend_y_1: {}"):
    Path("rig.yaml").write_text(ARM % (youngs_modulus, start))
    return command("run", "rig.yaml")


def test_a_unit_that_was_forgotten_is_warned_of(command):
    code, out, err = shown(command, "7e7")
    assert (code, err) == (0, [])
    (line,) = (line for line in out.splitlines() if line.startswith("warning"))
    part = line.removeprefix("warning  elastic link 'arm' deflects by ").partition("%")[0]
    fix = "more than its modes are for; check the units of its stiffness, such as youngs_modulus, or use several links"
    assert line == f"warning  elastic link 'arm' deflects by {part}% of its length in bend_y_1, {fix}"
    assert 25 < int(part) < 300


def test_a_stiff_beam_is_not_warned_of(command):
    code, out, err = shown(command, "70 GPa")
    assert (code, err) == (0, [])
    assert "warning" not in out


def test_a_start_beyond_the_length_is_refused(command):
    code, _, err = shown(command, "70 GPa", "arm.bend_y_1: {initial: {position: -50}}")
    what = "-50 m deflects the elastic link by more than its length; give less"
    assert (code, err) == (2, [f"rig.yaml:11 joints.arm.bend_y_1.initial.position: {what}"])


def test_the_full_deflection_of_each_mode():
    """Of a beam it is the length, in which its coordinates are measured at the largest deflection."""
    bending, turning = soft_link(2.0).full_deflection[:3], soft_link(2.0).full_deflection[3:4]
    assert bending == pytest.approx([2.0] * 3, rel=1e-6)
    assert np.isinf(turning).all()


def test_a_mode_in_another_scale_has_another_full_deflection():
    link = ShapeFunctions(
        length=3.0,
        modes=[("bend", "m")],
        mass=lambda x: 1.0,
        linear=lambda x: [[0.0, 0.5 * x * x, 0.0]],
        stiffness=np.array([[1.0]]),
    ).link()
    assert link.full_deflection == pytest.approx([3.0 / 4.5])
