"""What a run says of its contacts: counts, events, limits, faults, wrenches of joints, and conditions of events."""

import itertools
import math

import numpy as np
import pytest

from cosim import load_rig, load_run
from cosim.core.errors import RunError
from cosim.mechanics.multibody.contact.contact_solver import SolverBounds
from cosim.output.contact_events import CHATTER, ContactEvents
from cosim.rig.run.contact_figures import ContactSolverSummary, contact_warnings
from cosim.rig.run.run import StoppedRun

G = 9.81


def body(name, kind, mass, inertia, parent="base"):
    tensor = [inertia] * 3
    return f"\n    - {{name: {name}, parent: {parent}, type: {kind}, mass: {mass}, com: [0, 0, 0], inertia: {tensor}}}"


BALL, CUBE = body("ball", "free", 1, 0.004), body("cube", "free", 3, 0.02)
WHEEL = body("wheel", "revolute", 1, 0.01)


@pytest.fixture
def rig(tmp_path):
    numbers = itertools.count()

    def rig(bodies, contact, joints, more="", step="1 ms", duration=0.5, mechanism="", interpret=False):
        path = tmp_path / f"rig{next(numbers)}.yaml"
        path.write_text(
            f"name: contact\nmechanism:\n{mechanism}  bodies:{bodies}\n  contacts:\n    - {{name: c, {contact}}}\n"
            f"joints: {{{joints}}}\n{more}schedule: {{step: {step}, duration: {duration}}}\n"
        )
        return load_rig(path, interpret=interpret)

    return rig


def ball_at(height, velocity=(0.0,) * 6):
    return f"ball: {{initial: {{position: [0, 0, {height}, 0, 0, 0, 1], velocity: {list(velocity)}}}}}"


SPHERE = "link: ball, sphere: 0.1, with: ground, friction: 0.3"
STANDING = "link: cube, box: [0.2, 0.2, 0.2], with: ground, friction: 0.6, stiffness: rigid"
TUMBLING = "cube: {initial: {position: [0, 0, 0.2, 0.1, 0.2, 0.05, 0.97], velocity: [1, 0, 0, 1, 2, 3]}}"


# --- counts, events and the summary -------------------------------------------------------------------------


@pytest.mark.parametrize("substeps", [1, 3])
@pytest.mark.parametrize("stiffness", ["rigid", "1e5"])
def test_counts_and_summary_follow_from_the_signals(rig, stiffness, substeps):
    contact = f"{SPHERE}, restitution: 0.6, stiffness: {stiffness}"
    found = rig(BALL, contact, ball_at(0.3), step=f"1 ms, substeps: {substeps}", duration=1.5).run()
    summary, state = found.summary["contacts"]["c"], found["c/state"]
    # the momentum of the ball: the impulse of its weight less what it has at the end
    impulse = 1.5 * G + found["ball.z/velocity"][-1]
    assert summary["force_mean"] == pytest.approx(impulse / 1.5, rel=1e-9)
    assert summary["force_peak"] == found["c/normal_force"].max()
    assert summary["t_s"] == found.t[np.argmax(found["c/normal_force"])]
    assert summary["energy_lost_J"] == found["c/lost"][-1] == pytest.approx(found["energy/contacts"][-1], abs=1e-12)
    assert summary["depth_max"] == pytest.approx(-found["c/gap"].min())
    if substeps == 1:
        assert summary["touches"] == np.sum((state[1:] > 0) & (state[:-1] == 0))
    assert summary["touches"] > 3 and summary["slips"] == 0 and summary["slid"] == 0.0
    solver = found.summary["contact_solver"]
    assert solver["unconverged"] == 0 and solver["residual_max"] < 1e-9
    assert solver["passes_mean"] == pytest.approx(found["contacts/total_passes"][-1] / (1500 * substeps))


def test_a_cube_that_slides_and_stops_is_reported_with_its_energy(rig, tmp_path):
    contact = "link: cube, box: [0.2, 0.2, 0.2], with: ground, friction: 0.3, stiffness: rigid"
    joints = "cube: {initial: {position: [0, 0, 0.1, 0, 0, 0, 1], velocity: [1, 0, 0, 0, 0, 0]}}"
    found = rig(CUBE, contact, joints).run()
    assert [event.name for event in found.events] == ["c touches", "c slips", "c sticks"]
    assert found.summary["contacts"]["c"]["slid"] == pytest.approx(1 / (2 * 0.3 * G), rel=1e-2)
    stop = found.events[-1]
    assert stop.t == pytest.approx(1 / (0.3 * G), abs=2e-3)
    assert sum(event.lost for event in found.events) == pytest.approx(1.5, rel=1e-3)
    force = [found[f"c/force_{axis}"][100] for axis in "xyz"]
    assert force == pytest.approx([-0.3 * 3 * G, 0.0, 3 * G], rel=1e-6, abs=1e-6)
    # friction at the lower face tips the cube forward: the centre of pressure is ahead by μ times the height
    ahead = found["c/point_x"][100] - found["cube.x/position"][100]
    assert ahead == pytest.approx(0.3 * 0.1, rel=1e-6)
    assert found["c/point_z"][100] == pytest.approx(0.0, abs=1e-3)
    found.save(tmp_path / "run.npz")
    kept = load_run(tmp_path / "run.npz")
    for what in ("contacts", "contact_solver", "events"):
        assert kept.summary[what] == found.summary[what]


def test_events_of_a_bouncing_ball_are_its_touches_and_lifts(rig):
    found = rig(BALL, f"{SPHERE}, restitution: 0.8, stiffness: rigid", ball_at(0.6), step="0.1 ms", duration=1.2).run()
    touches = [event.t for event in found.events if event.name == "c touches"]
    lifts = [event for event in found.events if event.name == "c lifts"]
    first, flight = math.sqrt(2 * 0.5 / G), 2 * 0.8 * math.sqrt(2 * 0.5 / G)
    assert touches[:2] == pytest.approx([first, first + flight], abs=2e-3)
    assert len(lifts) in (len(touches), len(touches) - 1)
    lost = sum(event.lost for event in found.events if event.t < touches[1] - 0.01)
    assert lost == pytest.approx(G * 0.5 * (1 - 0.8**2), rel=1e-2)


def monitor(states, touches, slips, lost):
    names = [f"c/{what}" for what in ("state", "touches", "slips", "lost")]
    values = np.array([states, touches, slips, lost], dtype=float).T
    times = 1e-3 * np.arange(len(states))
    return ContactEvents(["c"], names), times, values


def test_a_contact_that_chatters_is_listed_once():
    n = 1000
    states = np.arange(n) % 2
    watch, times, values = monitor(states, np.cumsum(states), np.zeros(n), 0.1 * np.arange(n))
    found = watch(times, values)
    assert [event.did for event in found] == ["touches", "lifts"]
    assert watch(times + 1.0 + CHATTER, values)[0].lost == pytest.approx(0.1 * 1 - 0.1 * 2)


def test_events_do_not_depend_on_how_a_run_is_divided():
    random = np.random.default_rng(1)
    states = np.repeat(random.integers(0, 3, 60), random.integers(1, 40, 60))
    before = np.concatenate([[0], states[:-1]])
    touches, slips = np.cumsum((states > 0) & (before == 0)), np.cumsum((states == 2) & (before != 2))
    whole, times, values = monitor(states, touches, slips, 0.01 * np.arange(len(states)))
    parts = ContactEvents(["c"], [f"c/{what}" for what in ("state", "touches", "slips", "lost")])
    cuts = [0, 1, 7, 300, len(states)]
    pieces = [event for a, b in itertools.pairwise(cuts) for event in parts(times[a:b], values[a:b])]
    assert pieces == whole(times, values) and len(pieces) > 20


def test_a_touch_within_a_tick_is_seen():
    watch, times, values = monitor([0, 0, 0], [0, 1, 1], [0, 0, 0], [0, 1.5, 1.5])
    assert [(event.did, event.lost) for event in watch(times, values)] == [("touches", 1.5), ("lifts", 0.0)]


# --- conditions of events -----------------------------------------------------------------------------------

CONDITIONS = {
    "c/normal_force": "above: 1",
    "c/state": "above: 0.5",
    "c/gap": "below: 0",
    "c/touches": "above: 0.5",
    "c/lost": "above: 1e-3",
}


@pytest.mark.parametrize("stiffness", ["rigid", "1e5"])
@pytest.mark.parametrize("signal", CONDITIONS)
@pytest.mark.parametrize("do", ["do: latch", "do: brake, effort: 1"])
def test_a_touch_stops_a_wheel(rig, do, signal, stiffness):
    more = f"events: [{{{do}, name: stop, of: wheel, when: {{signal: {signal}, {CONDITIONS[signal]}}}}}]\n"
    joints = f"{ball_at(0.2)}, wheel: {{initial: {{velocity: 10}}}}"
    runs = []
    for interpret in (False, True):
        contact = f"{SPHERE}, stiffness: {stiffness}"
        found = rig(BALL + WHEEL, contact, joints, more, "10 ms", 0.4, interpret=interpret).run()
        runs.append(found)
        stop = next(event.t for event in found.events if event.name == "stop")
        assert stop == pytest.approx(math.sqrt(2 * 0.1 / G), abs=2e-5)
        assert found["wheel/velocity"][-1] == 0.0
        assert found.summary["energy"]["residual_relative"] < 1e-12
    solver = ("contacts/passes", "contacts/total_passes")  # one more or less by rounding
    same = [k for k, name in enumerate(runs[0].signals) if name not in solver]
    assert np.allclose(runs[0].values[:, same], runs[1].values[:, same], rtol=1e-9, atol=1e-9)


def test_a_touch_lets_a_body_go(rig):
    more = "events: [{do: unlatch, name: go, of: cube, when: {signal: c/touches, above: 0.5}}]\n"
    joints = f"{ball_at(0.2)}, cube: {{latched: true, initial: {{position: [1, 0, 9, 0, 0, 0, 1]}}}}"
    found = rig(BALL + CUBE, f"{SPHERE}, stiffness: rigid", joints, more, "10 ms", 0.4).run()
    went = next(event.t for event in found.events if event.name == "go")
    assert found["cube.z/position"][-1] == pytest.approx(9 - 0.5 * G * (0.4 - went) ** 2, rel=1e-9)


# --- limits -------------------------------------------------------------------------------------------------

LIMITS = {
    "normal_force": ("100 N", ball_at(0.2)),
    "depth": ("1 mm", ball_at(0.2)),
    "gap": ("90 mm", ball_at(0.15, (0, 0, 1, 0, 0, 0))),
    "slip": ("0.5 m/s", ball_at(0.1, (1, 0, 0, 0, 0, 0))),
}
SIGNALS = {"normal_force": ("normal_force", 1, 100), "depth": ("gap", -1, 1e-3), "gap": ("gap", 1, 0.09)}
SIGNALS["slip"] = ("slip", 1, 0.5)


@pytest.mark.parametrize("key", LIMITS)
def test_a_limit_of_a_contact_warns_or_stops(rig, key, said):
    bound, joints = LIMITS[key]
    signal, sign, value = SIGNALS[key]
    for interpret in (False, True):
        contact = f"{SPHERE}, stiffness: 1e5, limits: {{{key}: {bound}, actions: {{{key}: warn}}}}"
        found = rig(BALL, contact, joints, duration=0.3, interpret=interpret).run()
        beyond = np.flatnonzero(sign * found[f"c/{signal}"] > value)
        count = found.summary["guard"]["c"][key]
        assert count["ticks"] == len(beyond) > 0 and count["first_s"] == found.t[beyond[0]]
        stopped = rig(BALL, f"{SPHERE}, stiffness: 1e5, limits: {{{key}: {bound}}}", joints, interpret=interpret)
        with pytest.raises(StoppedRun) as error:
            stopped.run(duration=0.3)
        assert error.value.run.t[-1] == found.t[beyond[0]]
        assert f"tick {beyond[0]} " in str(error.value) and "contact 'c'" in str(error.value)
    said(str(error.value).partition(": ")[2])
    (event,) = (event for event in found.events if event.level == "warning")
    said(event.name)


# --- what is not solved -------------------------------------------------------------------------------------


@pytest.mark.parametrize("interpret", [False, True])
def test_contacts_that_are_not_solved_stop_the_run(rig, interpret, said):
    stopped = rig(
        CUBE, STANDING, TUMBLING, step="2 ms, contact: {tolerance: 1e-12 m/s, passes: 2}", interpret=interpret
    )
    with pytest.raises(RunError) as error:
        stopped.run()
    said(str(error.value).partition(": ")[2], r"(?<=now )\S+")


def test_steps_that_are_not_solved_are_warned_of(said):
    solver: ContactSolverSummary = {
        "passes_mean": 3.0, "passes_max": 500, "residual_max": 2.5e-5, "unconverged": 12, "unconverged_part": 0.012
    }  # fmt: skip
    said(contact_warnings(solver, SolverBounds()))
    assert contact_warnings(None, SolverBounds()) == []
    solver["unconverged_part"] = 0.001
    assert contact_warnings(solver, SolverBounds()) == []


def bounded(rig, bounds):
    return rig(CUBE, STANDING, TUMBLING, duration=0.6, step=f"2 ms, contact: {{{bounds}}}").run()


def test_passes_of_the_solver_are_bounded(rig):
    needed = max(bounded(rig, "tolerance: 1e-10 m/s")["contacts/passes"])
    for passes in (1, 2, 5):
        assert passes < needed
        found = bounded(rig, f"tolerance: 1e-4 m/s, passes: {passes}")
        assert max(found["contacts/passes"]) <= passes
        assert found.rig.contact_tolerance == 1e-4


@pytest.mark.parametrize("tolerance", [1e-11, 1e-7, 1e-4])
def test_the_tolerance_ends_the_passes(rig, tolerance):
    assert max(bounded(rig, f"tolerance: {tolerance}")["contacts/residual"]) <= tolerance


@pytest.mark.filterwarnings("ignore::cosim.core.errors.RunWarning")
def test_what_is_not_solved_follows_the_tolerance(rig):
    counts = []
    for tolerance in (1e-9, 1e-8, 1e-4):
        few = bounded(rig, f"tolerance: {tolerance}, passes: 2")
        counts.append(few.summary["contact_solver"]["unconverged"])
        assert counts[-1] == np.count_nonzero(few["contacts/residual"] > 100 * tolerance)
    assert counts[0] > counts[1] > counts[2] == 0


# --- wrenches of joints -------------------------------------------------------------------------------------


def test_a_leg_of_a_table_carries_what_lies_on_it(rig):
    table = body("leg", "fixed", 2, 0.1) + body("top", "fixed", 5, 0.1, "leg").replace(
        "mass", "origin: {xyz: [0, 0, 0.6]}, mass"
    )
    contact = "link: cube, box: [0.2, 0.2, 0.2], with: {link: top, box: [1, 1, 0.1]}, friction: 0.5"
    joints = "cube: {initial: {position: [0.3, 0.1, 0.75, 0, 0, 0, 1]}}"
    found = rig(table + CUBE, contact, joints, duration=1.0, mechanism="  reactions: [leg, top]\n").run()
    for joint, mass in (("leg", 10), ("top", 8)):
        wrench = [found[f"{joint}/{what}"][-1] for what in ("force_x", "force_y", "force_z")]
        moment = [found[f"{joint}/moment_{axis}"][-1] for axis in "xyz"]
        assert wrench == pytest.approx([0, 0, mass * G], rel=1e-6, abs=1e-6)
        assert moment == pytest.approx([3 * G * 0.1, -3 * G * 0.3, 0], rel=1e-6, abs=1e-6)
