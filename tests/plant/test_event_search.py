"""Events of the plant: the search for their times, what it costs, how they begin, and mechanisms with loops."""

import math

import numpy as np
import pytest

from cosim.simulation.plant.event_stepper import MAX_SEARCH, TIME_TOLERANCE, EventStepper
from tests.kit.engines import python_engine
from tests.kit.rigs import controller, rig_in
from tests.plant.event_runs import BALL, FOUR_BAR, SLIDER, EventRun, G, M, with_events

SCHEDULE = "step: 50 ms, duration: 0.6"
HALVINGS = math.ceil(-math.log2(TIME_TOLERANCE))
FAST = SLIDER.replace("gravity: [2,", "gravity: [200,")
EVENT = "do: latch, of: a, when: {signal: %s, above: %s}"


@pytest.fixture
def searches(monkeypatch):
    """The number of evaluations of each search."""
    counts = []
    narrow = EventStepper._narrow_bracket

    def counted(self, bracket, *others):
        if (bracket[0], bracket[1], bracket[5]) == (0.0, 1.0, 1.0):
            counts.append(0)
        counts[-1] += 1
        return narrow(self, bracket, *others)

    monkeypatch.setattr(EventStepper, "_narrow_bracket", counted)
    return counts


@pytest.mark.parametrize(
    ("text", "bound"),
    [
        (with_events(["do: latch, of: a, at: 0.123"], schedule=SCHEDULE), 3),  # linear
        (with_events([EVENT % ("a/position", 0.3)], schedule=SCHEDULE), 12),  # curved
        (f"{BALL}schedule: {{{SCHEDULE}}}\n", HALVINGS),  # at the end of a step
        (with_events([EVENT % ("energy/kinetic", 1e-9)], FAST, SCHEDULE), 2 * HALVINGS),  # close to a flat start
    ],
)
def test_a_search_takes_few_evaluations(rig_of, searches, text, bound):
    """At most twice as many as bisection alone, as every second evaluation is a bisection."""
    EventRun(rig_of(text, interpret=True))
    assert 0 < max(searches) <= bound
    assert 2 * HALVINGS <= MAX_SEARCH


def test_no_event_no_search(rig_of, searches):
    EventRun(rig_of(with_events(["do: latch, of: a, at: 9"], schedule=SCHEDULE), interpret=True))
    assert searches == []


# --- times ---


def test_a_condition_is_located_within_the_step(run_of):
    ran = run_of(["do: latch, of: a, name: lock, when: {signal: a/position, above: 0.3}"])
    count, last, lost = ran.event("lock")
    assert (count, last) == (1, pytest.approx(math.sqrt(2 * 0.3 / G), abs=1e-9))
    assert lost == pytest.approx(M * G * 0.3, rel=1e-9)
    assert ran["a/position"][-1] == pytest.approx(0.3, abs=1e-9)
    assert ran["a/velocity"][-1] == 0
    assert ran["energy/dissipated"][-1] == pytest.approx(lost)


def test_a_condition_from_above(run_of):
    thrown = SLIDER + "joints: {a: {initial: {velocity: -1}}}\n"
    ran = run_of(["do: latch, of: a, when: {signal: a/velocity, above: 0}"], thrown)
    assert ran.event("latch a")[1] == pytest.approx(1 / G, abs=1e-9)
    ran = run_of(["do: latch, of: a, when: {signal: a/position, below: -0.1}"], thrown)
    assert ran.event("latch a")[1] == pytest.approx((1 - math.sqrt(1 - 4 * 0.1)) / G, abs=1e-9)


@pytest.mark.parametrize(("step", "at"), [("1 ms", 0.2503), ("5 ms", 0.035), ("5 ms", 0.05)])
def test_a_time(run_of, step, at):
    ran = run_of([f"do: latch, of: a, at: {at}"], schedule=f"step: {step}, duration: 0.3")
    count, last, lost = ran.event("latch a")
    assert (count, last) == (1, pytest.approx(at, abs=1e-12))
    assert lost == pytest.approx(0.5 * M * (G * at) ** 2, rel=1e-9)
    assert ran["a/position"][-1] == pytest.approx(0.5 * G * at**2, rel=1e-10)
    # the row at the time of the event shows its effect
    moving = np.flatnonzero(ran["a/velocity"])
    assert moving[-1] == math.ceil(at / ran.tick_model.step - 1e-6) - 1


def test_two_events_at_one_instant(run_of):
    """Each loses what its own impulse takes; what arrests nothing loses nothing."""
    text = SLIDER.replace("}]", "}, {name: b, type: prismatic, axis: [0, 1, 0], mass: 1 kg, parent: base}]")
    text += "joints: {a: {initial: {velocity: 1}}, b: {initial: {velocity: 4}}}\n"
    events = [f"do: {do}, at: 0.1" for do in ("latch, of: a", "latch, of: b", "unlatch, of: b, name: go")]
    ran = run_of([events[2], *events[:2]], text)
    for name, lost in (("latch a", 0.5 * M * 1.2**2), ("latch b", 0.5 * 1 * 4**2), ("go", 0.0)):
        assert ran.event(name) == (1, pytest.approx(0.1, abs=1e-12), pytest.approx(lost))
    assert ran["b/position"][-1] == pytest.approx(0.4)


def test_an_event_triggers_another(run_of):
    """A latch that stops a body makes the speed fall below a bound, which frees another one at that instant."""
    text = SLIDER.replace("}]", "}, {name: b, type: prismatic, axis: [1, 0, 0], mass: 1 kg, parent: base}]")
    text += "joints: {b: {latched: true}}\n"
    events = [
        "do: latch, of: a, when: {signal: a/position, above: 0.01}",
        "do: unlatch, of: b, name: go, when: {signal: a/acceleration, below: 1}",
    ]
    ran = run_of(events, text)
    at = math.sqrt(2 * 0.01 / G)
    assert ran.event("latch a")[:2] == ran.event("go")[:2] == (1, pytest.approx(at, abs=1e-9))
    assert ran["b/position"][-1] == pytest.approx(0.5 * G * (1 - at) ** 2, rel=1e-8)


def test_latched_from_the_start_and_unlatched(run_of):
    text = SLIDER + "joints: {a: {latched: true, initial: {position: 0.5}}}\n"
    ran = run_of(["do: unlatch, of: a, at: 0.4"], text)
    assert ran["a/position"][400] == 0.5
    assert ran["a/position"][-1] == pytest.approx(0.5 + 0.5 * G * 0.6**2, rel=1e-9)
    assert ran.event("unlatch a") == (1, pytest.approx(0.4), 0)


def test_an_event_occurs_at_every_crossing(run_of):
    """A pendulum passes a point twice per period in each direction."""
    text = """
mechanism:
  bodies: [{name: p, axis: [0, 1, 0], mass: 1 kg, com: [0, 0, -1], inertia: [1e-9, 1e-9, 1e-9]}]
joints: {p: {initial: {position: -0.1}}}
"""
    events = ["do: unlatch, of: p, when: {signal: p/position, above: 0}", "do: latch, of: p, at: 20"]  # after the end
    ran = run_of(events, text, "duration: 10 s")
    period = 2 * math.pi / math.sqrt(9.81) * (1 + 0.1**2 / 16)
    assert ran.event("unlatch p")[:2] == (5, pytest.approx(4.25 * period, rel=1e-5))


# --- starts ---

UNLATCHED = SLIDER + "joints: {a: {latched: true}}\n"
GO = "do: unlatch, of: a, name: go, at: 0.2503"


@pytest.mark.parametrize("signal", ["a/velocity", "energy/dissipated"])
def test_a_value_at_its_bound_has_not_fallen_below_it(run_of, signal):
    """From rest at 0 it rises: it is never below 0."""
    ran = run_of([f"do: latch, of: a, when: {{signal: {signal}, below: 0}}"])
    assert ran.event("latch a")[0] == 0
    assert ran["a/velocity"][-1] == pytest.approx(G)


@pytest.mark.parametrize("signal", ["a/velocity", "a/position"])
def test_a_value_that_rests_at_its_bound_rises_later(run_of, signal):
    """A body at rest at 0 is unlatched between two steps: then it is above 0."""
    brake = f"do: brake, of: a, effort: 3, when: {{signal: {signal}, above: 0}}"
    ran = run_of([brake, GO], UNLATCHED)
    assert ran.event("brake a")[:2] == (1, pytest.approx(0.2503, abs=1e-12))
    np.testing.assert_allclose(ran["a/velocity"], np.maximum(ran.t - 0.2503, 0), atol=1e-9)


def test_a_value_that_touches_its_bound_at_the_end_of_a_step(run_of):
    """Thrown up with 1 m/s it turns at 0.25 m after 0.5 s, a multiple of the step, and does not go beyond."""
    text = SLIDER + "joints: {a: {initial: {velocity: -1}}}\n"
    schedule = "step: 31.25 ms, duration: 1"  # exact in binary
    latch = "do: latch, of: a, when: {signal: a/position, below: -0.25}"
    ran = run_of([latch], text, schedule)
    assert ran["a/position"].min() == -0.25
    assert ran.event("latch a")[0] == 0


def test_it_fires_once_until_it_has_been_below_again(run_of):
    text = SLIDER.replace("[2, 0", "[0, 0") + (
        "controllers: [{type: passthrough, interface: effort,"
        " trajectory: {type: chirp, of: effort, amplitude: 3, f0: 1, f1: 1, duration: 9}}]\n"
    )
    event = "do: unbrake, of: a, name: count, when: {signal: a/effort, above: 0}"
    later = "do: brake, of: a, effort: 1, at: 3"  # after the end
    ran = run_of([event, later], text, "step: 7 ms, duration: 2.9")
    assert ran.event("count")[0] == 3


def test_a_latch_beyond_its_window_engages_at_the_start(run_of):
    text = SLIDER + "joints: {a: {initial: {position: 3, velocity: 2}}}\n"
    ran = run_of(["do: latch, of: a, when: {signal: a/position, above: 1}"], text)
    assert ran.event("latch a") == (1, 0, pytest.approx(0.5 * M * 4))
    assert ran["a/position"][-1] == 3


@pytest.mark.parametrize(
    "event", ["at: 0", "when: {signal: a/position, above: -1}", "when: {signal: a/velocity, below: 1}"]
)
def test_a_latched_joint_is_unlatched_at_the_start(run_of, event):
    ran = run_of([f"do: unlatch, of: a, {event}"], UNLATCHED)
    assert ran.event("unlatch a") == (1, 0, 0)
    np.testing.assert_allclose(ran["a/velocity"], G * ran.t, atol=1e-9)


def test_latched_and_unlatched_at_the_start_in_the_order_of_the_file(run_of):
    events = ["do: latch, of: a, at: 0", "do: unlatch, of: a, at: 0"]
    for first, falls in ((events, True), (events[::-1], False)):
        assert (run_of(first)["a/velocity"][-1] > 0) == falls


@pytest.mark.parametrize(
    ("velocity", "leaves"),
    [(0, 0.0), (3, -1.5), (-0.5, -0.5)],  # pressed, thrown against it, thrown off it
)
def test_a_stop_that_is_touched_from_the_start(rig_of, velocity, leaves):
    text = BALL.replace("{stops:", f"{{initial: {{position: 0.25, velocity: {velocity}}}, stops:")
    ran = EventRun(rig_of(text + "schedule: {duration: 0.2}\n"))
    assert ran["a/position"].max() <= 0.25 + 1e-12
    np.testing.assert_allclose(ran["a/velocity"][1:], leaves + (G * ran.t[1:] if leaves else 0), atol=1e-9)
    lost = 0.5 * M * (velocity**2 - leaves**2)
    assert ran["energy/dissipated"][-1] == pytest.approx(lost, abs=1e-12)
    assert ran.event("a at its upper stop")[0] == (velocity >= 0)


def test_a_stop_and_a_brake_share_a_load_from_the_start(run_of):
    """A brake that is too weak alone rests with the stop."""
    text = BALL.replace("{stops:", "{initial: {position: 0.25}, stops:")
    ran = run_of(["do: brake, of: a, effort: 1, at: 0"], text, "duration: 0.2")
    assert not ran["a/velocity"].any() and ran.fault == ""
    assert ran["a/holding_effort"][-1] == pytest.approx(-M * G)


# --- the stepper ---


def test_events_beside_a_prescribed_joint(run_of):
    """The cart of a prescribed joint carries a body that is latched to it: from then on it does what the cart does."""
    text = """
mechanism:
  gravity: [0, 0, 0]
  bodies:
    - {name: cart, type: prismatic, axis: [1, 0, 0], mass: 1 kg}
    - {name: load, type: prismatic, axis: [1, 0, 0], mass: 2 kg}
joints:
  cart: {prescribed: {type: quintic, goal: 1, duration: 1}}
  load: {initial: {velocity: 0.2}}
"""
    ran = run_of(["do: latch, of: load, at: 0.5"], text)
    np.testing.assert_allclose(ran["cart/effort"][501:], 3 * ran["cart/acceleration"][501:], atol=1e-9)
    # the load alone keeps its speed until then: 0.2 m/s against the peak of the quintic, 1.875 m/s
    assert ran.event("latch load")[2] == pytest.approx(0.5 * 2 * (0.2 - 1.875) ** 2, rel=1e-6)
    assert not ran["load/velocity"][501:].any()
    stored = ran["energy/stored"] - ran["energy/work"] + ran["energy/dissipated"]
    np.testing.assert_allclose(stored, stored[0], atol=1e-6)


MOTORISED = """
mechanism:
  gravity: [0, -9.81, 0]
  bodies:
    - {name: a, mass: 1 kg, com: [0.2, 0, 0], inertia: [0.01, 0.01, 0.01]}
    - {name: b, mass: 0.5 kg, com: [0.1, 0, 0], inertia: [0.01, 0.01, 0.01], origin: {xyz: [0.4, 0, 0]}}
joints:
  a: {stops: {lower: -0.5, restitution: 0.3}}
  b: {actuator: {type: dc_motor, resistance: 1, inductance: 1 mH, torque_constant: 0.05, rotor_inertia: 1e-5,
      ratio: 50, stiffness: 40}}
controllers: [{type: pid, joints: [b], kp: 4, ki: 0, kd: 0.05, trajectory: {type: quintic, goal: 0.5, duration: 0.2}}]
events:
  - {do: brake, of: a, effort: 1, at: 0.0025}
  - {do: latch, of: b, when: {signal: a/position, below: -0.001}}
  - {do: unlatch, of: b, at: 0.0155}
  - {do: unbrake, of: a, when: {signal: a/position, below: -0.2}}
schedule: {duration: 0.3, integrator: rk4}
"""
ALTERNATIVES = {
    "rk4 in substeps": ("schedule.integrator=rk4", "schedule.substeps=3"),
    "rosenbrock": ("schedule.integrator=rosenbrock",),
    "semi-implicit Euler": ("schedule.integrator=semi_implicit_euler", "schedule.step=0.2 ms"),
}


@pytest.fixture(scope="module")
def fine(tmp_path_factory):
    return EventRun(rig_in(tmp_path_factory.mktemp("fine"), MOTORISED, "schedule.step=0.1 ms"))


@pytest.mark.parametrize("case", ALTERNATIVES)
def test_engines_and_integrators_agree(rig_of, fine, case):
    """Machine code, the Python loop around it, and Python alone; an elastic drive takes part."""
    rig = rig_of(MOTORISED, *ALTERNATIVES[case])
    native = EventRun(rig)
    assert [native.event(name)[0] for name in native.event_names[:4]] == [1, 1, 1, 1]
    np.testing.assert_allclose(EventRun(rig, python_engine(rig)).rows, native.rows, rtol=1e-9, atol=1e-11)
    ticks = round(0.02 / rig.tick_model.step)  # past three events
    if case == "rosenbrock":  # other tests run rk4 in Python
        plain = EventRun(rig_of(MOTORISED, *ALTERNATIVES[case], interpret=True), ticks=ticks)
        np.testing.assert_allclose(plain.rows, native.rows[: ticks + 1], rtol=1e-7, atol=1e-9)
    room = 10 if "Euler" in case else 1
    for name in native.event_names[:4]:
        assert native.event(name)[1] == pytest.approx(fine.event(name)[1], abs=2e-4 * room)
    for name in ("a/position", "b/position"):
        assert native[name][-1] == pytest.approx(fine[name][-1], abs=2e-3 * room)


def test_the_energy_of_an_elastic_drive_is_accounted_for(rig_of):
    summary = rig_of(MOTORISED).run().summary
    assert summary["energy"]["residual_relative"] < 1e-3


def test_a_controller_in_python_gives_the_same_run(rig_of):
    """What reads a number cannot be traced."""
    text = BALL + "controllers: [{type: push.py, joints: [a]}]\n"
    text = with_events(["do: latch, of: a, at: 0.7"], text, "duration: 0.8")
    lines = "effort = ops.array([ops.sin(t)]) + q"
    native, in_python = (EventRun(rig_of(text, push=controller(push))) for push in (lines, f"float(q[0]); {lines}"))
    np.testing.assert_allclose(in_python.rows, native.rows, rtol=1e-9, atol=1e-12)


# --- in mechanisms with loops ---


def test_a_latch_in_a_loop(run_of):
    """The rates of the constraints are met after the impulse: everything stands still with one joint."""
    ran = run_of(["do: latch, of: B, at: 0.1234"], FOUR_BAR, "duration: 0.3")
    assert abs(ran["A/velocity"][123]) > 0.5
    for name in "ABC":
        np.testing.assert_allclose(ran[f"{name}/velocity"][124:], 0, atol=1e-12)
    assert ran["pin/violation"].max() < 1e-12
    assert ran.event("latch B")[2] == pytest.approx(ran["energy/kinetic"][123], rel=0.05)
    stored, lost = ran["energy/stored"], ran["energy/dissipated"]
    np.testing.assert_allclose(stored + lost, stored[0], atol=1e-9)


def test_a_stop_in_a_loop(rig_of):
    text = FOUR_BAR.replace("guess: 60 deg}", "guess: 60 deg}, stops: {lower: 0.9, restitution: 0.5}")
    ran = EventRun(rig_of(text + "schedule: {duration: 0.4}\n"))
    assert ran["C/position"].min() > 0.9 - 1e-6
    assert ran.event("C at its lower stop")[0] > 0
    assert ran["pin/violation"].max() < 1e-12
    stored, lost = ran["energy/stored"], ran["energy/dissipated"]
    np.testing.assert_allclose(stored + lost, stored[0], atol=1e-6)


def test_a_released_loop_is_an_open_chain(rig_of, run_of):
    """From then on as the same tree without a loop does from that state."""
    ran = run_of(["do: release, of: pin, at: 0.1"], FOUR_BAR, "duration: 0.3")
    state = {
        name: f"{{initial: {{position: {float(ran[f'{name}/position'][100])!r}, velocity:"
        f" {float(ran[f'{name}/velocity'][100])!r}}}}}"
        for name in "ABC"
    }
    tree = FOUR_BAR.split("  loops:")[0]
    tree += "joints: {" + ", ".join(f"{k}: {v}" for k, v in state.items()) + "}\nschedule: {duration: 0.2}\n"
    alone = EventRun(rig_of(tree))
    for name in "ABC":
        np.testing.assert_allclose(ran[f"{name}/position"][100:], alone[f"{name}/position"], atol=1e-9)
    assert not ran["pin/violation"][101:].any()  # released, so there is no violation
    assert ran.event("release pin") == (1, pytest.approx(0.1), 0)
    np.testing.assert_allclose(ran["pin/force_x"][101:], 0, atol=1e-12)
    assert ran.fault == ""


@pytest.mark.parametrize(("effort_a", "effort_c", "moves"), [(0.1, 0.1, True), (0.1, 60, False), (60, 0.1, False)])
def test_two_brakes_in_a_loop(run_of, effort_a, effort_c, moves):
    """From standstill under gravity: a strong one holds the loop, two weak ones resist its fall."""
    events = [f"do: brake, of: A, effort: {effort_a}, at: 0", f"do: brake, of: C, effort: {effort_c}, at: 0"]
    ran = run_of(events, FOUR_BAR, "duration: 0.3")
    assert (np.abs(ran["A/velocity"]).max() > 1e-12) == moves
    stored, lost = ran["energy/stored"], ran["energy/dissipated"]
    np.testing.assert_allclose(stored + lost, stored[0], atol=1e-5)
    work = sum(e * np.abs(np.diff(ran[f"{name}/position"])).sum() for name, e in (("A", effort_a), ("C", effort_c)))
    assert lost[-1] == pytest.approx(work if moves else 0.0, rel=1e-3, abs=1e-12)
    assert ran.fault == ""


def test_a_weak_brake_of_a_rocker_passes_its_dead_points(run_of):
    """The rocker reverses while the loop moves on: its brake must neither hold the loop there nor push it."""
    ran = run_of(["do: brake, of: C, effort: 0.1, at: 0"], FOUR_BAR, "duration: 1 s")
    velocity, lost = ran["C/velocity"], ran["energy/dissipated"]
    assert (np.diff(np.sign(velocity[1:])) != 0).sum() >= 2
    assert np.all(np.diff(lost) >= -1e-12)
    assert lost[-1] == pytest.approx(0.1 * np.abs(np.diff(ran["C/position"])).sum(), rel=1e-3)
    np.testing.assert_allclose(ran["energy/stored"] + lost, ran["energy/stored"][0], atol=1e-4)
