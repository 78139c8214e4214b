"""Real robots: every quantity of a model is what Pinocchio computes from the same URDF file."""

import math

import numpy as np
import pinocchio as pin
import pytest

from cosim.core.errors import InputErrors
from cosim.mechanics.multibody import Model
from cosim.mechanics.multibody.description.urdf import parse_urdf, read_urdf
from tests.kit.refusals import raised
from tests.multibody.random_frames import error
from tests.oracle.conftest import ROBOTS, covering_robots
from tests.oracle.pinocchio_reference import TOLERANCE, Reference, check, numbers, some_links

# a file that cannot be read -> (number of mistakes, what the first one says); every other file must load
REFUSED = {
    "alex_description/urdf/alex_psyonic_hands.urdf": (8, "mimics joint 'index_q1', which does not exist"),
    "romeo_description/urdf/romeo.urdf": (24, "can move but has no inertia against the motion"),
    "romeo_description/urdf/romeo_laas_small.urdf": (3, "is not positive definite"),
    "ur_description/urdf/ur3.urdf": (1, "the robot has no <link>"),  # nothing but a name of its author
}
# robots with mimics that move; False where Pinocchio's own reading of mimics fails because a mimic stands before its
# leader
MIMICKING = {
    "baxter_description/urdf/baxter.urdf": True,
    "panda_description/urdf/panda.urdf": True,
    "panda_description/urdf/panda_collision.urdf": True,
    "pr2_description/urdf/pr2.urdf": True,
    "talos_data/robots/talos_full_v2.urdf": False,
    "talos_data/robots/talos_full_v2_box.urdf": False,
    "tiago_pro_description/robots/tiago_pro.urdf": True,
}
KNOWN = sorted({path.relative_to(ROBOTS).as_posix() for path in ROBOTS.rglob("*.urdf")} - REFUSED.keys())
SMALL = 8  # dofs of a robot of which every function is compiled; the rest runs as plain Python, but for one large one
ICUB = "icub_description/robots/icub.urdf"


def reference_of(name):
    return Reference(Model(read_urdf(ROBOTS / name).mechanism), pin.buildModelFromUrdf(str(ROBOTS / name)))


def test_the_package_holds_the_robots_that_the_tables_name():
    assert len(list(ROBOTS.rglob("*.urdf"))) == 69
    assert set(REFUSED) | set(MIMICKING) <= {path.relative_to(ROBOTS).as_posix() for path in ROBOTS.rglob("*.urdf")}


@pytest.mark.parametrize("name", REFUSED)
def test_an_invalid_file_is_refused_with_its_errors(name):
    count, what = REFUSED[name]
    errors = raised(InputErrors, Model.from_urdf, ROBOTS / name).errors
    assert len(errors) == count and what in str(errors[0])


@pytest.mark.parametrize("name", KNOWN)
def test_joints_limits_and_inverse_dynamics_of_every_robot(name):
    reference = reference_of(name)
    model, peer, random = reference.model, reference.reference, numbers(name)
    assert (peer.nv > model.nv) == (name in MIMICKING)
    for k, joint in enumerate(peer.joints[peer.getJointId(own)] for own in model.joint_names):
        assert (model.limits.lower[k], model.limits.upper[k]) == (-math.inf, math.inf) or joint.nq == 1
        if np.isfinite(model.limits.lower[k]):
            assert model.limits.lower[k] == peer.lowerPositionLimit[joint.idx_q]
            assert model.limits.upper[k] == peer.upperPositionLimit[joint.idx_q]
    q, v, qdd = model.random_configuration(random), *random.uniform(-3, 3, (2, model.nv))
    assert error(model.equations.inverse_dynamics(q, v, qdd), reference.inverse(q, v, qdd)) < TOLERANCE


@pytest.mark.parametrize("name", covering_robots(KNOWN))
def test_every_quantity(name):
    reference, random = reference_of(name), numbers(name)
    if reference.model.nv:  # without moving bodies Pinocchio divides by 0
        compiled = reference.model.nv <= SMALL or (("forward_dynamics", "hybrid_dynamics") if name == ICUB else ())
        check(reference, random, some_links(reference, random), compiled)


@pytest.mark.parametrize("name", ["panda_description/urdf/panda.urdf", "talos_data/robots/talos_full_v2.urdf"])
def test_mimics_are_those_of_pinocchio(name):
    """Pinocchio reads mimics too, and has mass matrix and inverse dynamics for them."""
    path = str(ROBOTS / name)
    if not MIMICKING[name]:
        with pytest.raises(ValueError, match="parent joint of the mimic joint is not in the kinematic tree"):
            pin.buildModelFromUrdf(path, mimic=True)
        return
    model, random, reduced = Model.from_urdf(path), numbers(name), pin.buildModelFromUrdf(path, mimic=True)
    data, joints = reduced.createData(), [reduced.joints[reduced.getJointId(own)] for own in model.joint_names]
    order = [joint.idx_v for joint in joints]
    full, (rate, acceleration) = np.zeros(reduced.nq), np.zeros((2, reduced.nv))
    q, v, qdd = model.random_configuration(random), *random.uniform(-3, 3, (2, model.nv))
    for joint, angle in zip(joints, q, strict=True):
        full[joint.idx_q : joint.idx_q + joint.nq] = [math.cos(angle), math.sin(angle)] if joint.nq == 2 else [angle]
    rate[order], acceleration[order] = v, qdd
    assert error(model.equations.mass_matrix(q), pin.crba(reduced, data, full)[np.ix_(order, order)]) < TOLERANCE
    expected = pin.rnea(reduced, data, full, rate, acceleration)[order]
    assert error(model.equations.inverse_dynamics(q, v, qdd), expected) < TOLERANCE


TWICE = """<robot name="r"><link name="a"/>
<link name="b"><inertial><origin xyz="{com} 0 0"/>{mass}{inertia}</inertial></link>
<joint name="j" type="revolute"><parent link="a"/><child link="b"/>{origin}{axis}{limit}{dynamics}</joint></robot>"""
SINGLE = {
    "com": "0.2",
    "mass": '<mass value="2"/>',
    "inertia": '<inertia ixx="1" iyy="2" izz="2.5" ixy="0.1" ixz="0" iyz="0"/>',
    "origin": '<origin xyz="0 0 1" rpy="0.3 0 0"/>',
    "axis": '<axis xyz="0 1 0"/>',
    "limit": '<limit lower="-1" upper="2" velocity="3" effort="4"/>',
    "dynamics": '<dynamics damping="0.1" friction="0.2"/>',
}
OTHER = {
    "mass": '<mass value="9"/>',
    "inertia": '<inertia ixx="3" iyy="3" izz="3" ixy="0" ixz="0" iyz="0"/>',
    "origin": '<origin xyz="5 0 0"/>',
    "axis": '<axis xyz="1 0 0"/>',
    "limit": '<limit lower="-9" upper="9" velocity="9" effort="9"/>',
    "dynamics": '<dynamics damping="7" friction="3"/>',
}


@pytest.mark.parametrize("part", OTHER)
@pytest.mark.parametrize("first", [True, False])
def test_of_an_element_that_is_there_twice_the_first_one_counts_as_in_urdfdom(part, first):
    """Pinocchio reads with urdfdom."""
    pair = SINGLE[part] + OTHER[part] if first else OTHER[part] + SINGLE[part]
    text = TWICE.format(**SINGLE | {part: pair})
    mechanism, peer = parse_urdf(text), pin.buildModelFromXML(text)
    assert len(mechanism.warnings) == 1
    model, data, q = Model(mechanism), peer.createData(), np.array([0.7])
    assert model.mass_matrix(q)[0, 0] == pytest.approx(pin.crba(peer, data, q)[0, 0], rel=1e-14)
    assert model.gravity_effort(q) == pytest.approx(pin.computeGeneralizedGravity(peer, data, q), rel=1e-14)
    (joint,) = mechanism.joints
    ours = (joint.lower, joint.upper, joint.max_velocity, joint.max_effort, joint.damping, joint.friction)
    theirs = (peer.lowerPositionLimit, peer.upperPositionLimit, peer.velocityLimit, peer.effortLimit)
    assert ours == tuple(float(each[0]) for each in (*theirs, peer.damping, peer.friction))
