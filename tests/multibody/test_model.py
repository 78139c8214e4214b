"""`Model`: names and order, batches, friction and mimics, errors."""

import gc
import inspect
import math
import weakref
from types import BuiltinFunctionType

import numpy as np
import pytest

from cosim.core.compile import ArrayPort, Compiled, compile
from cosim.core.compile.native_method import NativeMethod
from cosim.core.compile.python_call import layout_is_known
from cosim.core.compile.routine import Routine
from cosim.core.errors import InputError, InputErrors, SourceLocation
from cosim.mechanics.multibody import Model
from cosim.mechanics.multibody.description.urdf import parse_urdf
from cosim.mechanics.multibody.mechanism import Inertial, Joint, Link, Mechanism, Mimic
from tests.kit.refusals import raised
from tests.kit.samples import FOLDER
from tests.multibody.random_frames import at

X, Y, Z = np.eye(3)
G = 9.81


@pytest.fixture(autouse=True)
def machine_code(monkeypatch):
    """The environment has no say in these tests."""
    monkeypatch.delenv("COSIM_INTERPRET", raising=False)


def heavy(name, mass=1.0, com=(0.0, 0.0, 0.0), moments=(0.1, 0.1, 0.1)):
    return Link(name, Inertial(mass, np.array(com), np.diag(moments)))


def joint(name, parent, child, kind="revolute", pose=None, axis=Z, **more):
    return Joint(name, kind, parent, child, pose or at(), axis=axis, place=SourceLocation("m.urdf", 7), **more)


def mechanism(links, joints):
    return Mechanism("m", links[0].name, tuple(links), tuple(joints))


def pendulum(length=0.5, mass=2.0, **more):
    """A point mass on a rod about y; q = 0 hangs straight down."""
    bob = heavy("bob", mass, (0.0, 0.0, -length), (0.0, 0.0, 0.0))
    return mechanism([Link("wall"), bob], [joint("hinge", "wall", "bob", axis=Y, **more)])


def sliders(multiplier=1.0, offset=0.0, losses=({}, {})):
    """Two masses on one rail, the second geared to the first; the rail rises along z."""
    first = joint("lift", "rail", "a", "prismatic", **losses[0])
    led = joint("geared", "rail", "b", "prismatic", mimic=Mimic("lift", multiplier, offset), **losses[1])
    return mechanism([Link("rail"), heavy("a", 2.0), heavy("b", 3.0)], [led, first])


def test_joints_are_ordered_depth_first_with_siblings_in_file_order():
    links = [heavy(name) for name in ("base", "a", "b", "a1", "a2", "b1", "tip")]
    joints = [
        joint("to_b", "base", "b"),
        joint("to_a2", "a", "a2"),
        joint("to_tip", "b1", "tip", "fixed"),
        joint("to_a", "base", "a", "prismatic"),
        joint("to_b1", "b", "b1", "continuous"),
        joint("to_a1", "a", "a1", mimic=Mimic("to_b")),
    ]
    model = Model(mechanism(links, joints))
    assert model.joint_names == ("to_b", "to_b1", "to_a", "to_a2")
    assert (model.nq, model.nv) == (4, 4)
    assert [model.dof_index(name) for name in model.joint_names] == [0, 1, 2, 3]
    np.testing.assert_array_equal(model.gravity, [0.0, 0.0, -9.81])


def test_limits_are_those_of_the_independent_joints():
    losses = {"lower": -1.0, "upper": 2.0, "max_velocity": 3.0, "max_effort": 4.0}
    limits = Model(sliders(losses=(losses, {}))).limits
    assert [field.tolist() for field in (limits.lower, limits.upper)] == [[-1.0], [2.0]]
    assert [field.tolist() for field in (limits.velocity, limits.effort)] == [[3.0], [4.0]]
    free = Model(pendulum()).limits
    assert [free.lower[0], free.upper[0], free.velocity[0]] == [-math.inf, math.inf, math.inf]


def test_unknown_names_are_reported_with_the_known_ones(said):
    model = Model(pendulum())
    for call, *given in (
        (model.dof_index, "hing"),
        (model.dof_index, "q"),
        (model.frame_pose, [0.0], "bo"),
        (model.frame_jacobian, [0.0], "tool"),
        (model.frame_pose, [0.0], ""),
    ):
        said(raised(InputError, call, *given))


def test_a_file_is_read_with_its_gravity(tmp_path):
    file = tmp_path / "fall.urdf"
    file.write_text(
        '<robot name="r"><link name="rail"/><link name="a"><inertial><mass value="2"/>'
        '<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>'
        '<joint name="j" type="prismatic"><parent link="rail"/><child link="a"/><axis xyz="0 0 1"/></joint></robot>'
    )
    moon = Model.from_urdf(file, gravity=(0.0, 0.0, -1.62))
    assert moon.forward_dynamics([0.0], [0.0], [0.0]) == pytest.approx([-1.62])
    assert Model(parse_urdf(file.read_text())).forward_dynamics([0.0], [0.0], [0.0]) == pytest.approx([-G])


def test_a_pendulum_swings_as_the_book_says():
    model, length, mass = Model(pendulum()), 0.5, 2.0
    q, v, tau = np.array([[0.3, -2.0, 40.0], [1.0, -4.0, 0.0], [0.0, 0.7, -3.0]])[..., None]
    inertia, sine, cosine = mass * length**2, np.sin(q), np.cos(q)
    acceleration = (tau - mass * G * length * sine) / inertia
    np.testing.assert_allclose(model.forward_dynamics(q, v, tau), acceleration, rtol=1e-13)
    np.testing.assert_allclose(model.inverse_dynamics(q, v, acceleration), tau, atol=1e-13)
    np.testing.assert_allclose(model.mass_matrix(q), np.full((3, 1, 1), inertia), rtol=1e-15)
    np.testing.assert_allclose(model.kinetic_energy(q, v), inertia * v[:, 0] ** 2 / 2, rtol=1e-15)
    np.testing.assert_allclose(model.potential_energy(q), -mass * G * length * cosine[:, 0], rtol=1e-14)
    pose = model.frame_pose(q, "bob")
    np.testing.assert_allclose(pose[:, :3, 2], np.column_stack([sine, 0 * q, cosine]), atol=1e-15)
    np.testing.assert_array_equal(pose[:, :3, 3], np.zeros((3, 3)))
    np.testing.assert_array_equal(model.frame_jacobian(q, "bob")[..., 0], np.tile([0, 0, 0, 0, 1, 0], (3, 1)))


def test_one_array_among_batches_serves_every_row():
    model = Model(pendulum())
    q = np.linspace(-1.0, 1.0, 7)[:, None]
    together = model.forward_dynamics(q, [0.0], [0.1])
    assert together.shape == (7, 1)
    np.testing.assert_array_equal(together, [model.forward_dynamics(one, [0.0], [0.1]) for one in q])
    assert model.potential_energy(q).shape == (7,)
    assert model.potential_energy([0.0]).shape == ()
    assert model.frame_pose(q, "wall").shape == (7, 4, 4)
    np.testing.assert_array_equal(model.frame_pose(q, "wall"), np.tile(np.eye(4), (7, 1, 1)))


def test_results_go_where_they_are_wanted_and_arguments_may_be_named():
    """In every call: the first one compiles."""
    model = Model(pendulum())
    one, out = np.zeros(1), np.empty(1)
    for _ in range(2):
        assert model.forward_dynamics(one, one, one, out=out) is out
        assert model.forward_dynamics(one, one, one, out) is out
        expected = model.forward_dynamics([0.3], [1.0], [0.5])
        np.testing.assert_array_equal(model.forward_dynamics(q=[0.3], v=[1.0], tau=[0.5]), expected)
        np.testing.assert_array_equal(model.forward_dynamics([0.3], [1.0], tau=[0.5]), expected)
    pair = np.empty(1), np.empty(1)
    assert model.hybrid_dynamics(one, one, one, one, np.zeros(1, bool), out=pair) is pair


def test_arrays_of_wrong_shape_or_type_are_reported(said):
    model = Model(sliders())
    said(raised(ValueError, model.forward_dynamics, [0.0, 0.0], [0.0], [0.0]))
    said(raised(TypeError, model.inverse_dynamics, [0.0], ["fast"], [0.0]))


@pytest.mark.parametrize("kind", ["plain", "interpreted"])
def test_a_mechanism_that_cannot_move_has_empty_vectors(kind, monkeypatch):
    if kind == "interpreted":
        monkeypatch.setenv("COSIM_INTERPRET", "1")
    model = Model(mechanism([Link("wall"), heavy("lamp")], [joint("weld", "wall", "lamp", "fixed", at(1.0))]))
    none = np.zeros(0)
    assert (model.nv, model.joint_names) == (0, ())
    assert model.forward_dynamics(none, none, none).shape == (0,)
    assert model.inverse_dynamics(none, none, none).shape == (0,)
    assert [part.shape for part in model.hybrid_dynamics(none, none, none, none, none)] == [(0,), (0,)]
    assert model.friction_effort(none).shape == (0,)
    assert model.frame_jacobian(none, "lamp").shape == (6, 0)
    assert model.frame_pose(none, "lamp")[0, 3] == 1.0
    assert model.mass_matrix(none).shape == (0, 0)
    assert (model.kinetic_energy(none, none), model.potential_energy(none)) == (0.0, 0.0)


def test_friction_takes_damping_and_smooth_coulomb_effort():
    model = Model(pendulum(damping=0.5, friction=0.2))
    v = np.array([0.0, 0.01, -0.01, 3.0])
    expected = 0.5 * v + 0.2 * v / np.sqrt(v**2 + 0.01**2)
    np.testing.assert_allclose(model.friction_effort(v[:, None])[:, 0], expected, rtol=1e-15)
    assert model.friction_effort([0.01]) == pytest.approx([0.5 * 0.01 + 0.2 / math.sqrt(2.0)])
    np.testing.assert_array_equal(Model(pendulum()).friction_effort([5.0]), [0.0])


def test_friction_of_a_geared_joint_is_felt_through_the_gear():
    losses = ({"damping": 0.5}, {"damping": 0.25, "friction": 0.2})
    model = Model(sliders(-2.0, losses=losses))
    v = 0.3
    geared = 0.25 * -2.0 * v + 0.2 * (-2.0 * v) / math.hypot(2.0 * v, 0.01)
    assert model.friction_effort([v]) == pytest.approx([0.5 * v - 2.0 * geared])


@pytest.mark.parametrize("ratio", [0.5, -3.0, 0.0])
def test_two_geared_sliders_move_as_one_mass(ratio):
    """(m_a + n² m_b) q̈ = τ − (m_a + n m_b) g, for a second slider at n q + offset."""
    model = Model(sliders(ratio, 0.25))
    mass, weight = 2.0 + ratio**2 * 3.0, (2.0 + ratio * 3.0) * G
    q, v, tau = [0.7], [1.5], [4.0]
    assert (model.nv, model.joint_names) == (1, ("lift",))
    np.testing.assert_allclose(model.forward_dynamics(q, v, tau), [(4.0 - weight) / mass], rtol=1e-14)
    np.testing.assert_allclose(model.inverse_dynamics(q, v, [1.0]), [mass + weight], rtol=1e-14, atol=1e-14)
    np.testing.assert_allclose(model.mass_matrix(q), [[mass]], rtol=1e-15)
    assert model.kinetic_energy(q, v) == pytest.approx(mass * 1.5**2 / 2)
    assert model.potential_energy(q) == pytest.approx(G * (2.0 * 0.7 + 3.0 * (ratio * 0.7 + 0.25)))
    assert model.frame_pose(q, "b")[2, 3] == pytest.approx(ratio * 0.7 + 0.25)
    np.testing.assert_array_equal(model.frame_jacobian(q, "b")[:, 0], [0, 0, ratio, 0, 0, 0])
    for held, expected in ((False, ((4.0 - weight) / mass, 4.0)), (True, (1.0, mass + weight))):
        found = model.hybrid_dynamics(q, v, [1.0], tau, [held])
        np.testing.assert_allclose(np.ravel(found), expected, rtol=1e-14, atol=1e-14)


def test_rotors_add_their_inertia_to_the_joints():
    bare = Model(pendulum())
    geared = bare.with_rotor_inertia([0.25])
    inertia = 2.0 * 0.5**2 + 0.25
    q, v = [0.3], [2.0]
    assert geared.mass_matrix(q)[0, 0] == inertia
    assert geared.kinetic_energy(q, v) == inertia * 2.0**2 / 2
    found = geared.forward_dynamics(q, v, [1.0])
    np.testing.assert_allclose(found, bare.forward_dynamics(q, v, [1.0]) * 0.5 / inertia)
    moved = geared.inverse_dynamics(q, v, [3.0]) - bare.inverse_dynamics(q, v, [3.0])
    np.testing.assert_allclose(moved, [0.25 * 3.0])
    assert geared.potential_energy(q) == bare.potential_energy(q)
    assert bare.mass_matrix(q)[0, 0] == 0.5  # the model it came from is as it was
    # of a tree with mimics they belong to the independent joints
    assert Model(sliders(2.0), rotor_inertia=[0.5]).mass_matrix([0.0])[0, 0] == 2.0 + 4.0 * 3.0 + 0.5


def test_massless_links_that_cannot_move_alone_are_welcome():
    """A massless flange behind a massive link, and a massless link that carries a mass."""
    links = [Link("base"), Link("cart"), heavy("load", 2.0, (0.5, 0.0, 0.0)), Link("flange")]
    joints = [
        joint("turn", "base", "cart"),
        joint("bolt", "cart", "load", "fixed", at(1.0)),
        joint("end", "load", "flange", "fixed", at(0.25)),
    ]
    model = Model(mechanism(links, joints))
    np.testing.assert_allclose(model.mass_matrix([0.4]), [[2.0 * 1.5**2 + 0.1]], rtol=1e-14)
    assert model.frame_pose([0.0], "flange")[0, 3] == 1.25


def test_a_massless_cross_between_two_axes_is_welcome():
    """A universal joint: what hangs on the second axis resists turning about the first."""
    links = [Link("base"), Link("cross"), heavy("rod", 1.0, (0.0, 0.0, -1.0))]
    model = Model(mechanism(links, [joint("x", "base", "cross", axis=X), joint("y", "cross", "rod", axis=Y)]))
    found = model.forward_dynamics([0.1, 0.2], [0.3, -0.4], [0.5, 0.6])
    bias = model.inverse_dynamics([0.1, 0.2], [0.3, -0.4], [0.0, 0.0])
    expected = np.linalg.solve(model.mass_matrix([0.1, 0.2]), np.array([0.5, 0.6]) - bias)
    np.testing.assert_allclose(found, expected, rtol=1e-12)


MASSLESS = {
    "alone": ([Link("base"), Link("tip")], [joint("j", "base", "tip")]),
    "behind an arm": (
        [Link("base"), heavy("arm"), Link("tip"), Link("tool")],
        [joint("a", "base", "arm"), joint("b", "arm", "tip"), joint("c", "tip", "tool", "fixed")],
    ),
    "two": (
        [Link("base"), Link("slide"), Link("turn")],
        [joint("s", "base", "slide", "prismatic"), joint("t", "slide", "turn")],
    ),
    "between two turns about one axis": (  # the first moves alone while the second lets go
        [Link("base"), Link("ring"), heavy("disc")],
        [joint("outer", "base", "ring"), joint("inner", "ring", "disc")],
    ),
    "a point mass that turns about itself": (
        [Link("base"), heavy("bead", moments=(0.0, 0.0, 0.0))],
        [joint("spin", "base", "bead")],
    ),
}


@pytest.mark.parametrize("case", MASSLESS)
def test_a_massless_link_that_can_move_is_reported(case, said):
    lines = str(raised(InputErrors, Model, mechanism(*MASSLESS[case]))).splitlines()
    assert all(line.startswith("m.urdf:7: ") for line in lines)
    said(lines)


METHODS = {name: method for name, method in vars(Model).items() if isinstance(method, NativeMethod)}


def arguments_of(model, name):
    """One state, as a call by hand has it."""
    rng, given = np.random.default_rng(1), []
    for parameter in list(inspect.signature(METHODS[name].function).parameters)[1:]:
        if parameter in ("frame", "link"):
            given.append("bob")
        elif parameter == "prescribed":
            given.append(np.zeros(model.nv, bool))
        elif parameter not in ("t", "out"):
            given.append(rng.normal(size=model.nv))
    return given


@pytest.mark.skipif(not layout_is_known(), reason="compiled functions are no builtins here")
@pytest.mark.parametrize("name", METHODS)
def test_a_method_bound_before_it_is_compiled_becomes_machine_code(name):
    model, reference = Model(pendulum()), Model(pendulum())
    given, method = arguments_of(model, name), getattr(model, name)
    assert type(method) is BuiltinFunctionType and method is getattr(model, name)
    first = method(*given)
    frame = next((one for one in given if isinstance(one, str)), None)
    with pytest.MonkeyPatch.context() as patch:  # from here on no line of Python runs
        patch.setattr(Model, "_call", None)
        patch.setattr(Compiled, "__call__", None)
        again = method(*given)
        listed = [x.tolist() if isinstance(x, np.ndarray) and x.dtype == float else x for x in given]
        np.testing.assert_array_equal(flat(method(*listed)), flat(again))
        assert method(*given, out=again) is again
    expected = reference.compiled(name, frame).fn(*(one for one in given if one is not frame))
    for found in (first, again):
        np.testing.assert_allclose(flat(found), flat(expected), rtol=1e-12, atol=1e-12)


def flat(result):
    return np.concatenate([np.ravel(one) for one in (result if isinstance(result, tuple) else (result,))])


@pytest.mark.parametrize("name", METHODS)
def test_methods_are_documented_whenever_they_are_asked(name):
    model, declared = Model(pendulum()), METHODS[name].function
    for _ in range(2):
        method = getattr(model, name)
        assert list(inspect.signature(method).parameters) == list(inspect.signature(declared).parameters)[1:]
        assert inspect.getdoc(method) == inspect.getdoc(declared) == inspect.getdoc(getattr(Model, name))
        method(*arguments_of(model, name))


def test_a_method_works_without_its_model_which_goes_with_its_last_holder():
    """At once: not when garbage is collected at some later time."""
    model = Model(pendulum())
    gone, method, of_frames = weakref.ref(model), model.forward_dynamics, model.frame_pose
    of_frames([0.0], "bob")
    gc.disable()
    try:
        del model
        assert gone() is None
    finally:
        gc.enable()
    np.testing.assert_array_equal(method([0.0], [0.0], [0.0]), [0.0])
    for frame in ("bob", "wall"):
        np.testing.assert_array_equal(of_frames([0.0], frame), np.eye(4))


@pytest.mark.parametrize("frame", ["elbow", 3, ["bob"], None])
def test_a_frame_is_the_name_of_a_link(frame, said):
    model = Model(pendulum())
    for _ in range(2):
        with pytest.raises((TypeError, InputError)) as caught:
            model.frame_pose([0.0], frame)
        said(str(caught.value))
        model.frame_pose([0.0], "bob")


@pytest.mark.parametrize("before", [False, True])
def test_methods_take_symbols_in_the_trace_of_another_function(before):
    """Also after machine code has taken the place of a method."""
    model = Model(pendulum())
    functions = (
        lambda q, v: model.frame_pose(q, "bob")[:3, 3] + model.frame_jacobian(q, "bob")[:3] @ v,
        lambda q, v: model.forward_dynamics(q, v, 2.0 * v),
        lambda q, v: model.hybrid_dynamics(q, v, v, v, np.array([True]))[1],
        lambda q, v: model.mass_matrix(q) @ v + model.nonlinear_effects(q, v) + model.gravity_effort(q),
        lambda q, v: model.center_of_mass(q) + model.center_of_mass_jacobian(q) @ v,
        lambda q, v: model.centroidal_momentum(q, v) + model.centroidal_momentum_matrix(q) @ v,
        lambda q, v: model.coordinates(model.chart(model.integrate(q, model.difference(q, v)))),
        lambda q, v: np.ones(1) * model.kinetic_energy(q, v) + model.potential_energy(q),
    )
    q, v = np.array([0.3]), np.array([0.7])
    for function in functions:
        expected = function(q, v) if before else None
        found = compile(function, [ArrayPort("q", (1,)), ArrayPort("v", (1,))], "function", interpret=False)(q, v)
        np.testing.assert_allclose(found, function(q, v) if expected is None else expected, rtol=1e-14, atol=1e-15)


def test_prescribing_every_dof_costs_what_inverse_dynamics_cost():
    model = Model.from_urdf(FOLDER / "robots" / "ur5.urdf")
    nothing, all_of_them = np.zeros(model.nv), np.ones(model.nv, dtype=bool)

    def prescribed(q, v, qdd):
        found, effort = model.equations.hybrid_dynamics(q, v, qdd, nothing, all_of_them)
        assert found is qdd
        return effort

    routine = Routine(prescribed, [(model.nq,), (model.nv,), (model.nv,)], "prescribed")
    assert routine.operations == model.compiled("inverse_dynamics").routine.operations


def test_an_effort_of_a_prescribed_dof_may_be_anything():
    model = Model.from_urdf(FOLDER / "robots" / "ur5.urdf")
    rng, prescribed = np.random.default_rng(1), np.arange(model.nv) % 2 == 0
    q, v, qdd, tau = rng.uniform(-1.0, 1.0, (4, model.nv))
    expected = model.hybrid_dynamics(q, v, qdd, tau, prescribed)
    unknown = np.where(prescribed, np.nan, tau), np.where(prescribed, qdd, np.nan)
    np.testing.assert_array_equal(model.hybrid_dynamics(q, v, unknown[1], unknown[0], prescribed), expected)
