"""Events within steps: when they happen, what they do to the motion, and what is said when a run cannot go on."""

import math
import re
from functools import partial

import numpy as np
import pytest
from scipy.optimize import brentq

from cosim.execution.python_engine import PythonEngine
from cosim.rig.build.drivers import driver_groups
from cosim.rig.run import StoppedRun
from cosim.tick.virtual_plant import VirtualPlant
from tests.kit.rigs import rig_in

# one body that slides along x under "gravity" of 2 m/s² along x
SLIDER = """
mechanism:
  gravity: [2, 0, 0]
  bodies: [{name: a, type: prismatic, axis: [1, 0, 0], mass: 3 kg}]
"""
G, M = 2.0, 3.0


@pytest.fixture
def rig_of(tmp_path):
    return partial(rig_in, tmp_path)


class EventRun:
    """A run to the end, by the rig's own engine, with the modes of its last row."""

    def __init__(self, rig, engine=None, ticks=None):
        tick_model, schedule = rig.tick_model, rig.spec.schedule
        engine = engine or rig.engine()
        engine.open()
        engine.arm()
        ticks = ticks or round(schedule.duration_ns / schedule.step_ns)
        rows, self.fault = engine.run(ticks + 1)
        engine.close()
        self.rows, self.names, self.tick_model = rows, tick_model.signals.names, tick_model
        self.t = np.arange(len(rows)) * tick_model.step
        self.values = rig.observe(engine.view("bumpless_start"), rows)
        self.modes = tick_model.row.unpack(rows[-1])["plant"]["modes"] if tick_model.plant.modes else {}
        self.event_names = tick_model.plant.modes.event_names

    def __getitem__(self, name):
        return self.values[:, self.names.index(name)]

    def event(self, name):
        """(how often, when last, energy lost) of an event or stop."""
        k = self.event_names.index(name)
        return tuple(float(self.modes[what][k]) for what in ("count", "last", "lost"))


def with_events(events, text=SLIDER, schedule="step: 1 ms, duration: 1 s"):
    lines = "".join(f"  - {{{event}}}\n" for event in events)
    return f"{text}events:\n{lines}schedule: {{{schedule}}}\n"


# --- instants ---------------------------------------------------------------------------------------------------


def test_a_condition_is_located_within_the_step(rig_of):
    ran = EventRun(rig_of(with_events(["do: latch, of: a, name: lock, when: {signal: a/position, above: 0.3}"])))
    count, last, lost = ran.event("lock")
    assert (count, last) == (1, pytest.approx(math.sqrt(2 * 0.3 / G), abs=1e-9))
    assert lost == pytest.approx(M * G * 0.3, rel=1e-9)
    assert ran["a/position"][-1] == pytest.approx(0.3, abs=1e-9)
    assert ran["a/velocity"][-1] == 0
    assert ran["energy/dissipated"][-1] == pytest.approx(lost)


def test_a_condition_from_above(rig_of):
    thrown = SLIDER + "joints: {a: {initial: {velocity: -1}}}\n"
    ran = EventRun(rig_of(with_events(["do: latch, of: a, when: {signal: a/velocity, above: 0}"], thrown)))
    assert ran.event("latch a")[1] == pytest.approx(1 / G, abs=1e-9)
    ran = EventRun(rig_of(with_events(["do: latch, of: a, when: {signal: a/position, below: -0.1}"], thrown)))
    assert ran.event("latch a")[1] == pytest.approx((1 - math.sqrt(1 - 4 * 0.1)) / G, abs=1e-9)


@pytest.mark.parametrize(("step", "at"), [("1 ms", 0.2503), ("1 ms", 0.25), ("5 ms", 0.035), ("5 ms", 0.05)])
def test_a_time(rig_of, step, at):
    ran = EventRun(rig_of(with_events([f"do: latch, of: a, at: {at}"], schedule=f"step: {step}, duration: 0.3")))
    count, last, lost = ran.event("latch a")
    assert (count, last) == (1, pytest.approx(at, abs=1e-12))
    assert lost == pytest.approx(0.5 * M * (G * at) ** 2, rel=1e-9)
    assert ran["a/position"][-1] == pytest.approx(0.5 * G * at**2, rel=1e-10)
    # the row at the time of the event shows its effect
    moving = np.flatnonzero(ran["a/velocity"])
    assert moving[-1] == math.ceil(at / ran.tick_model.step - 1e-6) - 1


def test_at_the_start(rig_of):
    ran = EventRun(rig_of(with_events(["do: latch, of: a, at: 0"], SLIDER + "joints: {a: {initial: {velocity: 1}}}\n")))
    assert ran.event("latch a") == (1, 0, pytest.approx(0.5 * M))
    assert ran["a/position"][-1] == 0


def test_a_condition_that_holds_at_the_start(rig_of):
    ran = EventRun(rig_of(with_events(["do: latch, of: a, when: {signal: a/position, above: -1}"])))
    assert ran.event("latch a") == (1, 0, 0)


def test_two_events_at_one_instant(rig_of):
    """Each loses what its own impulse takes; what arrests nothing loses nothing."""
    text = SLIDER.replace("}]", "}, {name: b, type: prismatic, axis: [0, 1, 0], mass: 1 kg, parent: base}]")
    text += "joints: {a: {initial: {velocity: 1}}, b: {initial: {velocity: 4}}}\n"
    events = [f"do: {do}, at: 0.1" for do in ("latch, of: a", "latch, of: b", "unlatch, of: b, name: go")]
    ran = EventRun(rig_of(with_events([events[2], *events[:2]], text)))
    for name, lost in (("latch a", 0.5 * M * 1.2**2), ("latch b", 0.5 * 1 * 4**2), ("go", 0.0)):
        assert ran.event(name) == (1, pytest.approx(0.1, abs=1e-12), pytest.approx(lost))
    assert ran["b/position"][-1] == pytest.approx(0.4)


def test_an_event_triggers_another(rig_of):
    """A latch that stops a body makes the speed fall below a bound, which frees another one at that instant."""
    text = SLIDER.replace("}]", "}, {name: b, type: prismatic, axis: [1, 0, 0], mass: 1 kg, parent: base}]")
    text += "joints: {b: {latched: true}}\n"
    events = [
        "do: latch, of: a, when: {signal: a/position, above: 0.01}",
        "do: unlatch, of: b, name: go, when: {signal: a/acceleration, below: 1}",
    ]
    ran = EventRun(rig_of(with_events(events, text)))
    at = math.sqrt(2 * 0.01 / G)
    assert ran.event("latch a")[:2] == ran.event("go")[:2] == (1, pytest.approx(at, abs=1e-9))
    assert ran["b/position"][-1] == pytest.approx(0.5 * G * (1 - at) ** 2, rel=1e-8)


def test_latched_from_the_start_and_unlatched(rig_of):
    text = SLIDER + "joints: {a: {latched: true, initial: {position: 0.5}}}\n"
    ran = EventRun(rig_of(with_events(["do: unlatch, of: a, at: 0.4"], text)))
    assert ran["a/position"][400] == 0.5
    assert ran["a/position"][-1] == pytest.approx(0.5 + 0.5 * G * 0.6**2, rel=1e-9)
    assert ran.event("unlatch a") == (1, pytest.approx(0.4), 0)


def test_an_event_occurs_at_every_crossing(rig_of):
    """A pendulum passes a point twice per period in each direction."""
    text = """
mechanism:
  bodies: [{name: p, axis: [0, 1, 0], mass: 1 kg, com: [0, 0, -1], inertia: [1e-9, 1e-9, 1e-9]}]
joints: {p: {initial: {position: -0.1}}}
"""
    ran = EventRun(
        rig_of(with_events(["do: unlatch, of: p, when: {signal: p/position, above: 0}"], text, "duration: 10 s"))
    )
    period = 2 * math.pi / math.sqrt(9.81) * (1 + 0.1**2 / 16)
    assert ran.event("unlatch p")[:2] == (5, pytest.approx(4.25 * period, rel=1e-5))


# --- brakes -------------------------------------------------------------------------------------------------

PUSHED = """
mechanism:
  gravity: [0, 0, 0]
  bodies: [{name: a, type: prismatic, axis: [1, 0, 0], mass: 2 kg}]
joints: {a: {initial: {velocity: 3}}}
controllers: [{type: passthrough, interface: effort, trajectory: {type: chirp, of: effort, amplitude: 10, f0: 0.25,
               f1: 0.25, duration: 10}}]
"""


def test_a_brake_sticks_and_slips(rig_of):
    """From rest the push 10 sin(ω t) overcomes the 6 N of the brake, then the body stops until it is pushed back."""
    text = PUSHED.replace("velocity: 3", "velocity: 0")
    ran = EventRun(rig_of(with_events(["do: brake, of: a, effort: 6, at: 0"], text, "duration: 4 s, step: 1 ms")))
    omega, velocity = math.pi / 2, ran["a/velocity"]
    slips = math.asin(0.6) / omega

    def speed(t, since, way):
        """2 v̇ = 10 sin ω t − 6 way from rest."""
        return (10 / omega * (math.cos(omega * since) - math.cos(omega * t)) - 6 * way * (t - since)) / 2

    sticks = brentq(lambda t: speed(t, slips, 1), 1.5, 2.4)
    assert sticks < 2 + slips
    for t in (0.5, 1.0, 2.0):
        assert velocity[round(t * 1000)] == pytest.approx(speed(t, slips, 1), abs=1e-2)
    for t in (2.5, 3.0, 3.5):
        assert velocity[round(t * 1000)] == pytest.approx(speed(t, 2 + slips, -1), abs=1e-2)
    still = np.flatnonzero(velocity == 0) / 1000
    first, second = still[still < 1], still[still > 1]
    assert first[-1] == pytest.approx(slips, abs=2e-3)
    assert second[[0, -1]] == pytest.approx([sticks, 2 + slips], abs=4e-3)
    assert len(second) == round((second[-1] - second[0]) * 1000) + 1


def test_the_instant_at_which_a_brake_stops_a_body(rig_of):
    """v = 3 − (6/2) t stops at 1 s after 1.5 m, and stays."""
    text = PUSHED.split("controllers")[0]
    ran = EventRun(rig_of(with_events(["do: brake, of: a, effort: 6, at: 0"], text, "duration: 2 s, step: 7 ms")))
    assert ran["a/position"][-1] == pytest.approx(1.5, abs=1e-9)
    assert ran["energy/dissipated"][-1] == pytest.approx(9, rel=1e-9)
    assert not ran["a/velocity"][143:].any()


def test_a_brake_that_is_released(rig_of):
    """Gravity pulls with 6 N; 8 N hold it, after 0.25 s of fall it takes 0.75 s to stop."""
    events = ["do: brake, of: a, effort: 8, at: 0.25", "do: unbrake, of: a, at: 1.5"]
    ran = EventRun(rig_of(with_events(events, schedule="duration: 2 s")))
    rest = 0.5 * G * 0.25**2 + 0.5**2 / 2 / (2 / M)
    assert ran["a/position"][1400] == pytest.approx(rest, rel=1e-9)
    assert ran["a/position"][-1] == pytest.approx(rest + 0.5 * G * 0.5**2, rel=1e-9)


# --- stops --------------------------------------------------------------------------------------------------

BALL = SLIDER + "joints: {a: {stops: {upper: 0.25, restitution: 0.5}}}\n"


def test_bounces(rig_of):
    """The first fall takes T = √(2 h/g), the flights after it 2 T e, 2 T e², …; energy falls by 1 − e² each."""
    ran = EventRun(rig_of(BALL + "schedule: {duration: 2 s}\n"))
    first, e = math.sqrt(2 * 0.25 / G), 0.5
    position = ran["a/position"]
    for n in (1, 2, 3):
        start = first * (1 + 2 * sum(e**k for k in range(1, n)))
        top = round((start + first * e**n) * 1000)
        assert position[top - 2 : top + 3].min() == pytest.approx(0.25 - 0.25 * e ** (2 * n), abs=1e-5)
    over = math.ceil(first * (1 + 2 * e / (1 - e)) * 1000)
    assert not ran["a/velocity"][over:].any()
    np.testing.assert_allclose(position[over:], 0.25, rtol=0, atol=1e-9)
    assert position.max() < 0.25 + 1e-9
    count, last, lost = ran.event("a at its upper stop")
    assert 8 <= count <= 12
    assert lost == pytest.approx(M * G * 0.25, rel=1e-9)
    assert last == pytest.approx(first * (1 + 2 * e / (1 - e)), abs=2e-3)


@pytest.mark.parametrize("restitution", [0.0, 1.0])
def test_the_first_impact(rig_of, restitution):
    text = BALL.replace("restitution: 0.5", f"restitution: {restitution}")
    ran = EventRun(rig_of(text + "schedule: {duration: 0.9 s}\n"))
    count, last, lost = ran.event("a at its upper stop")
    assert (count, last) == (1, pytest.approx(0.5, abs=1e-9))
    assert lost == pytest.approx(M * G * 0.25 * (1 - restitution), abs=1e-12)
    assert ran["a/velocity"][-1] == pytest.approx(restitution * (-1 + G * 0.4), abs=1e-9)


def test_a_body_leaves_its_stop_when_it_is_pulled(rig_of):
    """It rests from 0.5 s on; the push against gravity grows past 6 N and takes it away."""
    text = BALL.replace("restitution: 0.5", "restitution: 0")
    text += """\
controllers: [{type: passthrough, interface: effort, trajectory: {type: chirp, of: effort, amplitude: -12, f0: 0.05,
               f1: 0.05, duration: 20}}]
schedule: {duration: 3 s}
"""
    ran = EventRun(rig_of(text))
    resting = np.flatnonzero(ran["a/position"] > 0.25 - 1e-9)
    assert resting[-1] / 1000 == pytest.approx(math.asin(0.5) / (0.1 * math.pi), abs=3e-3)
    assert ran["a/velocity"][-1] < -0.1
    # the force of the stop carries what is left of gravity
    assert np.allclose(ran["a/acceleration"][resting[5:-5]], 0)


def test_two_stops(rig_of):
    """To and fro between walls at 1 m/s."""
    text = """
mechanism: {gravity: [0, 0, 0], bodies: [{name: a, type: prismatic, axis: [1, 0, 0], mass: 1 kg}]}
joints: {a: {initial: {velocity: 1}, stops: {lower: -0.1, upper: 0.2, restitution: 1}}}
schedule: {duration: 2 s}
"""
    ran = EventRun(rig_of(text))
    assert ran.event("a at its upper stop")[:2] == (4, pytest.approx(0.2 + 3 * 0.6, abs=1e-9))
    assert ran.event("a at its lower stop")[:2] == (3, pytest.approx(0.5 + 2 * 0.6, abs=1e-9))
    assert np.abs(ran["a/velocity"]) == pytest.approx(np.ones(2001))


FLOATING = """
mechanism:
  gravity: [0, 0, 0]
  bodies:
    - {name: base1, joint: root, type: free, mass: 4 kg, inertia: [1, 1, 1]}
    - {name: cart, joint: rail, type: prismatic, axis: [1, 0, 0], mass: 2 kg, inertia: [1, 1, 1]}
joints:
  root: {initial: {velocity: [0, 0, 0, 0.5, 0, 0]}}
"""


def linear(ran):
    """Momentum of base and cart along x [kg m/s]."""
    speed = next(n for n in ("root.x/velocity", "root.vx/velocity") if n in ran.names)
    return 6 * ran[speed] + 2 * ran["rail/velocity"]


@pytest.mark.parametrize(
    ("rail", "events", "restitution"),
    [
        ("stops: {upper: 0.1, restitution: 0.4}", "[]", 0.4),
        ("stops: {upper: 0.1}", "[]", 0.0),
        ("encoder: {}", "[{do: latch, of: rail, when: {signal: rail/position, above: 0.1}}]", 0.0),
    ],
)
def test_on_a_floating_base(rig_of, rail, events, restitution):
    """Momentum stays; ½ μ Δv² (1 − e²) is lost, μ the reduced mass."""
    text = FLOATING.replace("[0, 0, 0, 0.5, 0, 0]", "[0.5, 0, 0, 0, 0, 0]")
    text += f"  rail: {{initial: {{velocity: 1.5}}, {rail}}}\nevents: {events}\nschedule: {{duration: 0.2}}\n"
    rig = rig_of(text)
    ran = EventRun(rig)
    assert rig.tick_model.plant.model.dof_names[0] == "root.x"
    np.testing.assert_allclose(linear(ran), 6 * 0.5 + 2 * 1.5, rtol=1e-12)
    count, last, lost = ran.event(ran.event_names[0])
    assert (count, last) == (1, pytest.approx(0.1 / 1.5, abs=1e-9))
    assert lost == pytest.approx(0.5 * (4 * 2 / 6) * 1.5**2 * (1 - restitution**2), rel=1e-9)
    assert ran["rail/velocity"][-1] == pytest.approx(-restitution * 1.5, abs=1e-12)
    kinetic = ran["energy/kinetic"]
    assert kinetic[0] - kinetic[-1] == pytest.approx(lost, rel=1e-9)


@pytest.mark.parametrize(("gravity", "speed"), [(0.0, 1.0), (9.81, 5.0)])
def test_a_body_that_starts_at_its_stop_and_moves_away(rig_of, gravity, speed):
    text = f"""
mechanism: {{gravity: [0, 0, -{gravity}], bodies: [{{name: a, type: prismatic, axis: [0, 0, 1], mass: 1 kg}}]}}
joints: {{a: {{initial: {{velocity: {speed}}}, stops: {{lower: 0}}}}}}
schedule: {{duration: 0.9}}
"""
    ran = EventRun(rig_of(text))
    np.testing.assert_allclose(ran["a/position"], speed * ran.t - 0.5 * gravity * ran.t**2, atol=1e-9)
    assert ran.event("a at its lower stop")[0] == 0


def test_a_body_that_starts_at_rest_on_its_stop_stays(rig_of):
    ran = EventRun(rig_of(BALL.replace("upper: 0.25", "upper: 0") + "schedule: {duration: 0.1}\n"))
    assert not ran["a/position"].any() and not ran["a/velocity"].any()
    assert ran.event("a at its upper stop") == (1, 0, 0)


# c on top of b, both moving at 1 m/s until b is stopped dead at 0.5 s
CARRIED = """
mechanism:
  gravity: [0, 0, 0]
  bodies:
    - {name: b, type: prismatic, axis: [1, 0, 0], mass: 1 kg}
    - {name: c, type: prismatic, axis: [1, 0, 0], mass: 2 kg}
joints:
  b: {initial: {velocity: 1}, stops: {upper: 0.5, restitution: 0}}
"""


def test_a_stop_does_not_pull_in_an_impact(rig_of):
    """c only leans on b: it flies on, and b alone loses its energy; on the other side c is stopped as well."""
    for stops, speed, lost in (("lower", 1.0, 0.5), ("upper", 0.0, 1.5)):
        text = CARRIED + f"  c: {{stops: {{{stops}: 0, restitution: 0}}}}\nschedule: {{duration: 1 s}}\n"
        ran = EventRun(rig_of(text))
        np.testing.assert_allclose(ran["c/velocity"][502:], speed, atol=1e-12)
        assert ran["c/position"][-1] == pytest.approx(0.5 * speed, abs=1e-9)
        assert ran.event("b at its upper stop") == (1, pytest.approx(0.5, abs=1e-9), pytest.approx(lost))


@pytest.mark.parametrize(("interpret", "step_ms"), [(False, 1), (True, 10)])
def test_a_brake_that_sticks_gives_way_to_an_impact(rig_of, interpret, step_ms):
    """0.1 N of it slow c down from 1 m/s by 0.05 m/s² afterwards."""
    text = with_events(["do: brake, of: c, effort: 0.1, at: 0"], CARRIED, "duration: 0.6")
    ran = EventRun(rig_of(text, f"schedule.step={step_ms} ms", interpret=interpret))
    assert not ran["c/velocity"][: 500 // step_ms].any()
    assert ran["c/velocity"][-1] == pytest.approx(1 - 0.05 * 0.1, abs=1e-9)
    assert ran.event("b at its upper stop")[2] == pytest.approx(0.5)
    kept = ran["energy/stored"] + ran["energy/dissipated"]
    np.testing.assert_allclose(kept, kept[0], atol=1e-9)


def test_a_brake_turns_with_its_body(rig_of):
    """It bounces at 0.5 s with half its speed, 0.9 m/s by then, and the brake goes on against the way back."""
    text = CARRIED.replace("restitution: 0", "restitution: 0.5").replace("upper: 0.5", "upper: 0.475")
    ran = EventRun(rig_of(with_events(["do: brake, of: b, effort: 0.2, at: 0"], text, "duration: 1 s")))
    assert ran.event("b at its upper stop")[:2] == (1, pytest.approx(0.5, abs=1e-9))
    assert ran["b/velocity"][-1] == pytest.approx(-0.45 + 0.2 * 0.5, abs=1e-9)


def moving_wall(restitution, moved):
    """A cart at rest in space that a wall catches after 0.5 s, at 1 m/s all along: by a joint or a moving_base."""
    sine = "{type: sine, amplitude: 1000, frequency: 0.00015915494309189535}"
    wall = "    - {name: wall, type: prismatic, axis: [1, 0, 0], mass: 1 kg}\n" if moved == "joint" else ""
    return f"""
mechanism:
  gravity: [0, 0, 0]
{"  moving_base: {x: " + sine + "}" if moved == "moving_base" else ""}
  bodies:
{wall}    - {{name: cart, type: prismatic, axis: [1, 0, 0], mass: 3 kg}}
joints:
{"  wall: {prescribed: " + sine + "}" if wall else ""}
  cart: {{initial: {{position: 0.5, velocity: -1}}, stops: {{lower: 0, restitution: {restitution}}}}}
schedule: {{duration: 1 s}}
"""


@pytest.mark.parametrize("moved", ["joint", "moving_base"])
@pytest.mark.parametrize("restitution", [0.0, 0.5, 1.0])
def test_imposed_motions_do_work_in_an_impact(rig_of, moved, restitution):
    """The loss is that of the relative motion, ½ m u² (1 − e²); the wall puts in its speed times m u (1 + e)."""
    ran = EventRun(rig_of(moving_wall(restitution, moved)))
    assert ran.event("cart at its lower stop") == (
        1,
        pytest.approx(0.5, abs=1e-6),
        pytest.approx(1.5 * (1 - restitution**2), abs=1e-5),
    )
    assert ran["energy/work"][-1] == pytest.approx(3 * (1 + restitution), rel=1e-5)
    kept = ran["energy/stored"] - ran["energy/work"] + ran["energy/dissipated"]
    np.testing.assert_allclose(kept, kept[0], atol=1e-9)


# --- loops --------------------------------------------------------------------------------------------------

FOUR_BAR = """
mechanism:
  gravity: [0, -9.81, 0]
  bodies:
    - {name: A, mass: 1 kg, com: [0.2, 0, 0], inertia: [0.01, 0.01, 0.01]}
    - {name: B, mass: 1 kg, com: [0.2, 0, 0], inertia: [0.01, 0.01, 0.01], origin: {xyz: [0.4, 0, 0]}}
    - {name: C, mass: 1 kg, com: [0.2, 0, 0], inertia: [0.01, 0.01, 0.01], parent: base, origin: {xyz: [0.5, 0, 0]}}
  loops:
    - {name: pin, parent: C, child: B, origin: {xyz: [0.45, 0, 0]}, child_origin: {xyz: [0.5, 0, 0]}}
joints:
  A: {initial: {position: 60 deg}}
  B: {initial: {guess: -60 deg}}
  C: {initial: {guess: 60 deg}}
"""


def test_a_latch_in_a_loop(rig_of):
    """The rates of the constraints are met after the impulse: everything stands still with one joint."""
    ran = EventRun(rig_of(with_events(["do: latch, of: B, at: 0.1234"], FOUR_BAR, "duration: 0.3")))
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


def test_a_released_loop_is_an_open_chain(rig_of):
    """From then on as the same tree without a loop does from that state."""
    ran = EventRun(rig_of(with_events(["do: release, of: pin, at: 0.1"], FOUR_BAR, "duration: 0.3")))
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


# --- other parts of a rig --------------------------------------------------------------------------------


def test_events_beside_a_prescribed_joint(rig_of):
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
    ran = EventRun(rig_of(with_events(["do: latch, of: load, at: 0.5"], text)))
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
ALTERNATIVES = [
    ["schedule.integrator=rk4"],
    ["schedule.integrator=rk4", "schedule.substeps=3"],
    ["schedule.integrator=rosenbrock"],
    ["schedule.integrator=semi_implicit_euler", "schedule.step=0.2 ms"],
]


@pytest.mark.parametrize("overrides", ALTERNATIVES)
def test_all_engines_agree(rig_of, overrides):
    """Machine code, the Python loop around it, and Python alone; an elastic drive takes part."""
    rig = rig_of(MOTORISED, *overrides)
    native = EventRun(rig)
    assert [native.event(name)[0] for name in native.event_names[:4]] == [1, 1, 1, 1]
    virtual_plant = VirtualPlant(rig.tick_model)
    looped = EventRun(
        rig, PythonEngine(rig.tick_model, virtual_plant, driver_groups((), {}, rig.joints, rig.limits, virtual_plant))
    )
    np.testing.assert_allclose(looped.rows, native.rows, rtol=1e-9, atol=1e-11)
    ticks = round(0.02 / rig.tick_model.step)  # past three events
    plain = EventRun(rig_of(MOTORISED, *overrides, interpret=True), ticks=ticks)
    np.testing.assert_allclose(plain.rows, native.rows[: ticks + 1], rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("overrides", ALTERNATIVES)
def test_integrators_agree(rig_of, overrides):
    fine = EventRun(rig_of(MOTORISED, "schedule.step=0.1 ms"))
    ran = EventRun(rig_of(MOTORISED, *overrides))
    loose = "semi" in overrides[0]
    for name in ran.event_names[:4]:
        assert ran.event(name)[1] == pytest.approx(fine.event(name)[1], abs=2e-3 if loose else 2e-4)
    for name in ("a/position", "b/position"):
        assert ran[name][-1] == pytest.approx(fine[name][-1], abs=2e-2 if loose else 2e-3)


def test_the_energy_of_an_elastic_drive_is_accounted_for(rig_of):
    summary = rig_of(MOTORISED).run().summary
    assert summary["energy"]["residual_relative"] < 1e-3


USER = """
from cosim.types import COMMAND, joint_signals, params
import math
@params
class Params: pass
class Push:
    def __init__(self, params, context):
        self.params, self.n = params, len(context.joints)
        self.inputs, self.outputs = joint_signals(("position",), self.n), joint_signals(COMMAND, self.n)
    def initial(self): return {}
    def update(self, t, p, x, u):
        value = [math.sin(float(t)) + float(q) for q in u["position"]]
        return {}, {name: value if name == "effort" else [0.0] * self.n for name in COMMAND}
def load(params, context): return Push(params, context)
"""


def test_a_controller_in_python_gives_the_same_run(rig_of, tmp_path):
    (tmp_path / "mine.py").write_text(USER)
    text = BALL + "controllers: [{type: mine.py}]\n"
    text = with_events(["do: latch, of: a, at: 0.7"], text, "duration: 0.8")
    in_python = EventRun(rig_of(text))
    (tmp_path / "mine.py").write_text(
        USER.replace("import math", "from cosim import ops").replace("math.sin", "ops.sin").replace("float", "")
    )
    native = EventRun(rig_of(text))
    np.testing.assert_allclose(in_python.rows, native.rows, rtol=1e-9, atol=1e-12)


# --- runs that cannot continue -----------------------------------------------------------------------------------

CHASE = [
    "do: unlatch, of: a, name: go, when: {signal: a/acceleration, below: 0.5}",
    "do: latch, of: a, name: lock, when: {signal: a/position, above: 0.1}",
    "do: latch, of: a, name: again, when: {signal: a/acceleration, above: 1}",
]


def stopped(rig):
    with pytest.raises(StoppedRun) as caught:
        rig.run()
    return caught.value.run


@pytest.mark.parametrize("interpret", [False, True])
def test_events_without_end(rig_of, interpret):
    """Below half a metre per second squared it is unlatched, above one it is latched."""
    text = SLIDER + "joints: {a: {initial: {velocity: 1}}}\n"
    text = text.replace("gravity: [2, 0, 0]", "gravity: [0, 0, 0]") + PUSHED[PUSHED.index("controllers") :]
    run = stopped(rig_of(with_events(CHASE[:1] + CHASE[2:], text), interpret=interpret))
    found = run.fault.split(": events trigger each other without end at t = ")
    assert found[1].endswith(" s: 'go' and 'again'; change their conditions so that none triggers the others again")
    tick = len(run.t) - 1
    assert found[0] == f"stopped at tick {tick} (t = {tick / 1000:.6g} s)"
    # 10 sin(π t/2)/3 is 1 m/s² then
    assert run.t[-1] == pytest.approx(math.asin(0.3) * 2 / math.pi, abs=3e-3)
    assert float(found[1].split(" s")[0]) == pytest.approx(run.t[-1], abs=1.1e-3)
    assert run["a/position"][-2] > 0.1


def test_a_body_between_two_stops_that_touch(rig_of):
    text = """
mechanism: {gravity: [0, 0, 0], bodies: [{name: a, type: prismatic, axis: [1, 0, 0], mass: 1 kg}]}
joints: {a: {initial: {velocity: 1}, stops: {lower: -1e-6, upper: 1e-6, restitution: 1}}}
schedule: {duration: 0.1}
"""
    assert stopped(rig_of(text)).fault == (
        "stopped at tick 1 (t = 0.001 s): events trigger each other without end at t = 9.9e-05 s: 'a at its lower"
        " stop' and 'a at its upper stop'; change their conditions so that none triggers the others again"
    )


def test_events_without_end_around_a_driver(rig_of):
    rig = rig_of(with_events(CHASE[:1] + CHASE[2:]))
    virtual_plant = VirtualPlant(rig.tick_model)
    ran = EventRun(
        rig, PythonEngine(rig.tick_model, virtual_plant, driver_groups((), {}, rig.joints, rig.limits, virtual_plant))
    )
    native = EventRun(rig)
    assert ran.fault == native.fault != ""
    np.testing.assert_allclose(ran.rows, native.rows)


@pytest.mark.parametrize("interpret", [False, True])
def test_prescribed_motions_that_contradict_a_loop(rig_of, interpret):
    motion = "{type: quintic, goal: 2, duration: 0.2}"
    text = FOUR_BAR.replace("position: 60 deg}", f"position: 60 deg}}, prescribed: {motion}")
    run = stopped(rig_of(with_events(["do: latch, of: B, at: 0.0005"], text, "duration: 0.4"), interpret=interpret))
    assert re.fullmatch(
        r"stopped at tick \d+ \(t = 0.0\d* s\): constraint 'pin' is violated by 0\.\d+ m: it does not fit the motion"
        r" given to 'A' and 'B'; change that or try a smaller schedule.step",
        run.fault,
    )
    assert np.isfinite(run.values).all()
    assert run["pin/violation"][:-1].max() < 1e-2 * math.sqrt(2)


def test_constraints_that_drift(rig_of):
    text = FOUR_BAR + "schedule: {duration: 4 s, step: 20 ms, integrator: semi_implicit_euler}\n"
    run = stopped(rig_of(text, "mechanism.loop_closure.drift=none"))
    assert run.fault.endswith(" m; try a smaller schedule.step, or mechanism.loop_closure.drift: projection")
