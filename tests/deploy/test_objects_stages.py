"""The stages of a tick as C calls them: the same bits as whole ticks and as the engine, and no effort without the
guard."""

import numpy as np
import pytest

from cosim import load_rig
from cosim.apps.deploy.stages import IN_CONTACT, NOT_ARMED, STOPPED
from cosim.control.limits import CODES, NOT_FINITE, STALE
from cosim.execution.native_engine import NativeEngine
from cosim.simulation.tick.arming import armed
from cosim.simulation.tick.first_references import start_of
from cosim.simulation.tick.virtual_plant import VirtualPlant
from tests.kit.objects import ObjectRig
from tests.system.test_real_joints import DRIVERS, arm, engine_of, real  # noqa: F401 a fixture

CONTROLLERS = (
    "controllers=[{type: computed_torque, joints: [shoulder], bandwidth: 3 Hz},"
    " {name: own, type: passthrough, joints: [elbow], kp: 10, kd: 1,"
    " trajectory: {type: sine, amplitude: 0.2, frequency: 1}}]"
)
STOP = "guard.deceleration=4"


def bits(values):
    return np.ascontiguousarray(values).view(np.int64)


def assert_same(a, b):
    np.testing.assert_array_equal(bits(a), bits(b))


@pytest.mark.parametrize(
    ("name", "overrides"),
    [
        ("arm_sim", ["schedule.realtime=no"]),
        ("mechanisms/release", []),
        ("bench/stiff_arm", []),  # its guard stops it
        ("two_link", ["schedule.order=[read, write, step, controllers, guard, publish]"]),
    ],
)
def test_stages_in_turn_are_a_tick(sample, name, overrides):
    rig = sample(name, *overrides)
    whole = ObjectRig(rig)
    whole.call("reset")
    apart = whole.copy()
    for tick in range(300):
        complete, said = whole.call("ticks", tick, 1), apart.stages(tick)
        if not complete:
            assert said == int(whole.place("fault"))
            assert said in CODES.values()
            break
        assert said == 0
        held = len(rig.joints)  # which the stages keep behind the row
        assert_same(apart.memory[:-held], whole.memory[:-held])
    assert_same(apart.signals(), whole.signals())


@pytest.mark.parametrize("name", ["mechanisms/release", "arm_sim"])
def test_arming_is_that_of_the_engine(sample, name):
    rig = sample(name, "schedule.realtime=no")
    engine, code = NativeEngine(rig.tick_model), ObjectRig(rig)
    engine.run(123)
    size = rig.tick_model.layout.size
    code.memory[:size] = engine.memory
    engine.stop()
    engine.start_from_measured(rig.spec.schedule.blend, 0)
    assert code.call("arm", 123) == 0
    code.place("t")[...] = engine.view("t")  # the engine sets it with the first tick
    assert_same(code.memory[:size], engine.memory)


@pytest.mark.parametrize("name", ["arm_mixed", "dynamometer/elbow"])
def test_real_joints_are_armed_by_the_function_of_the_engine(sample, name):
    rig = sample(name)
    model, code = rig.tick_model, ObjectRig(rig)
    position, velocity = 0.05 * np.arange(1, 1 + model.nv), 0.02 * np.ones(model.nv)
    code.call("reset")
    real = np.isin(model.plant.model.dof_names, model.plant.real)
    code.place("measured", "position")[:], code.place("measured", "velocity")[:] = position, velocity
    plant = code.place("plant").copy()
    state = model.plant.layout.unpack(plant)
    q, v, _ = model.plant.motion(0.0, state)
    q = model.plant.model.equations.chart(q)  # simulated joints are where the model has them
    measured = np.where(real, position, q), np.where(real, velocity, v)
    assert code.call("arm", 7) == 0
    start = start_of(model, rig.spec.schedule.blend, 7 * model.step, *measured)
    for path, value in armed(model, start.references, plant, *measured).items():
        assert_same(code.memory[model.layout.place(*path).where], np.ravel(np.asarray(value, dtype=float)))


def test_a_real_joint_is_controlled_as_by_the_engine(arm):  # noqa: F811
    """With the same samples at the places of the memory. The gains of simulated drives are in Python there."""
    rig = load_rig(arm(drivers=DRIVERS).spec.path, ["schedule.realtime=yes", CONTROLLERS])
    k, code = rig.joints.index("elbow"), ObjectRig(rig)

    def motion(t):
        return 0.3 + 0.2 * np.sin(3.0 * t), 0.6 * np.cos(3.0 * t)

    plant = VirtualPlant(rig.tick_model)
    engine = engine_of(rig, plant, real(rig, plant, motion, 0.4e-3))
    engine.open()
    engine.arm()
    places = [
        *(("measured", "position"), ("measured", "velocity"), ("measured_effort",), ("temperature",)),
        *(("sample_interval",), ("sample_delay",), ("age",)),
    ]
    samples, read = [], engine._read
    engine._read = lambda until: (read(until), samples.append([engine.view(*path)[k] for path in places]))
    engine.measure_once = lambda until: (np.array([0.0, 0.3]), np.array([0.0, 0.6]))
    engine.start_from_measured(rig.spec.schedule.blend, 0)

    code.call("reset")
    code.place("measured", "position")[k], code.place("measured", "velocity")[k] = 0.3, 0.6
    assert code.call("arm", 0) == 0
    rows, fault = engine.run(400)
    assert not fault
    expected = rig.observe(engine.view("bumpless_start"), rows)
    for tick, sample in enumerate(samples):
        for path, value in zip(places, sample, strict=True):
            code.place(*path)[k] = value
        assert code.stages(tick) == 0
        assert_same(code.signals()[~np.isnan(expected[tick])], expected[tick][~np.isnan(expected[tick])])
    assert np.abs(expected[:, rig.tick_model.signals.names.index("elbow/command_effort")]).max() > 1.0


@pytest.fixture
def coded(arm):  # noqa: F811
    """The arm whose elbow is real, with a memory of zeros; elbow: keys of it."""

    def make(elbow=""):
        if elbow not in CODED:
            CODED[elbow] = ObjectRig(arm(drivers=DRIVERS, elbow=elbow))
        CODED[elbow].memory[:] = 0.0
        return CODED[elbow]

    return make


CODED = {}  # is compiled once


def test_a_memory_that_is_not_armed_commands_no_effort(coded):
    code = coded()
    for start in (lambda: None, lambda: code.call("reset")):  # static memory is 0
        start()
        code.place("measured", "position")[:] = 0.1, 0.2
        code.place("command", "effort")[:] = 5.0
        assert code.stages(0) == NOT_ARMED
        assert_no_effort(code)


def assert_no_effort(code):
    for name in ("velocity", "effort", "kp", "kd"):
        assert not code.place("command", name).any()
    assert not code.place("request").any()
    np.testing.assert_array_equal(code.place("command", "position"), code.place("measured", "position"))


def test_a_fault_stays_until_the_motors_are_armed_again(coded):
    code = coded()
    code.call("reset")
    code.place("measured", "position")[1] = 0.3
    assert code.call("arm", 0) == 0
    assert [code.stages(tick) for tick in range(10)] == [0] * 10
    assert code.place("request")[0] != 0.0
    code.place("age")[1] = 1.0
    assert code.stages(10) == STALE
    assert code.place("guard_fault")[1] == STALE
    assert_no_effort(code)
    code.place("age")[1] = 0.0
    before = code.place("plant").copy()
    assert code.stages(11) == STALE
    assert_no_effort(code)
    np.testing.assert_array_equal(code.place("plant"), before)
    assert code.call("arm", 12) == 0
    assert code.stages(12) == 0


@pytest.mark.parametrize("what", ["position", "velocity"])
def test_a_measurement_that_is_not_finite_is_a_fault_in_which_the_command_holds(coded, what):
    code = coded()
    code.call("reset")
    code.place("measured", "position")[1] = 0.3
    assert code.call("arm", 0) == 0
    assert code.stages(0) == 0
    code.place("measured", what)[1] = np.nan
    assert code.stages(1) == NOT_FINITE
    for name in ("velocity", "effort", "kp", "kd"):
        assert not code.place("command", name).any()
    assert code.place("command", "position")[1] == 0.3  # where it was seen last
    assert code.stages(2) == NOT_FINITE


def test_a_joint_outside_its_limits_is_not_armed(coded):
    code = coded(", limits: {lower: -1, upper: 1, velocity: 20, effort: 100}")
    code.call("reset")
    for key, (position, velocity) in {"position": (1.2, 0.0), "velocity": (0.0, 21.0)}.items():
        code.place("measured", "position")[1], code.place("measured", "velocity")[1] = position, velocity
        assert code.call("arm", 0) == CODES[key]
        assert code.place("guard_fault").tolist() == [0.0, CODES[key]]
        assert code.stages(0) == CODES[key]
        assert_no_effort(code)
    code.place("measured", "position")[1], code.place("measured", "velocity")[1] = 0.2, 0.0
    assert code.call("arm", 0) == 0


def test_a_controlled_stop_that_was_requested_is_distinct_from_faults(sample):
    code = ObjectRig(sample("two_link", STOP))
    code.call("reset")
    for tick in range(1000):
        code.place("controlled_stop", "requested")[...] = float(tick >= 100)
        if said := code.stages(tick):
            break
    assert said == STOPPED
    assert_no_effort(code)


def test_a_joint_inside_of_a_virtual_wall_is_not_armed(sample):
    """The wall of the sample is at 0.3 m, the point of the arm in front of it or 3 cm behind."""
    code = ObjectRig(sample("haptic_wall"))
    code.call("reset")
    before, behind = np.radians([-20.0, 60.0]), np.radians([40.0, 60.0])
    code.place("measured", "position")[:] = behind
    assert code.call("arm", 0) == IN_CONTACT
    assert code.stages(0) == IN_CONTACT
    assert_no_effort(code)
    code.place("measured", "position")[:] = before
    assert code.call("arm", 1) == 0
    assert code.stages(1) == 0
    # a limit comes first: it is the joint's
    code.place("measured", "position")[:] = np.radians([40.0, 160.0])
    assert code.call("arm", 2) == CODES["position"]
