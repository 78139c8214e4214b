"""What is said of events, stops, starts and files of one's own that are wrong: one line each, place and mend."""

import random
import re
from pathlib import Path

import pytest

from cosim import load_rig
from cosim.errors import CosimError, InputErrors

# lines 1 to 11; settings of joints stand in line 12, events from line 14 on
HEAD = """\
mechanism:
  bodies:
    - {name: rod, mass: 1 kg, inertia: [1, 1, 1]}
    - {name: cart, type: prismatic, mass: 1 kg, inertia: [1, 1, 1], parent: base}
    - {name: ball, type: spherical, mass: 1 kg, inertia: [1, 1, 1], parent: base}
    - {name: tip, type: fixed, parent: rod}
    - {name: thumb, mass: 1 kg, inertia: [1, 1, 1], mimic: {joint: rod}, parent: base}
    - {name: bar, type: prismatic, mass: 1 kg, inertia: [1, 1, 1], parent: base}
  constraints:
    - {name: mesh, type: gear, joints: [rod, cart], ratio: 2}
joints:
"""
PRESCRIBED = "prescribed: {type: quintic, goal: 0, duration: 1}"


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def rig(joints="rod: {}", *events):
    lines = "".join(f"  - {event}\n" for event in events)
    Path("rig.yaml").write_text(f"{HEAD}  {joints}\n" + (f"events:\n{lines}" if events else ""))
    return load_rig("rig.yaml")


def mistakes(joints, *events):
    with pytest.raises(CosimError) as caught:
        rig(joints, *events)
    return str(caught.value).splitlines()


@pytest.mark.parametrize(
    ("event", "message"),
    [
        ("3", ": expected a mapping, got 3"),
        ("{of: rod, at: 1}", ": missing key 'do'"),
        ("{do: latch, at: 1}", ": missing key 'of'"),
        (
            "{do: lock, of: rod, at: 1}",
            ".do: expected one of latch, unlatch, brake, unbrake, release, disable, enable; got 'lock'",
        ),
        ("{do: latch, of: rdo, at: 1}", ".of: there is no 'rdo'; did you mean 'rod'?"),
        ("{do: release, of: mesch, at: 1}", ".of: there is no 'mesch'; did you mean 'mesh'?"),
        (
            "{do: latch, of: mesh, at: 1}",
            ".of: there is no 'mesh'; known: ball, rod, cart, ball.rx, ball.ry, ball.rz, bar",
        ),
        ("{do: latch, of: tip, at: 1}", ".of: joint 'tip' is fixed; name one that moves on its own"),
        ("{do: latch, of: thumb, at: 1}", ".of: joint 'thumb' follows 'rod'; name one that moves on its own"),
        ("{do: latch, of: [rod], at: 1}", ".of: expected text, got a list"),
        ("{do: latch, of: '', at: 1}", ".of: expected a name, got ''"),
        (
            "{do: latch, of: rod}",
            ": give either 'at' (a time) or 'when' (a signal), to latch 'rod'",
        ),
        (
            "{do: latch, of: rod, at: 1, when: {signal: rod/position, above: 1}}",
            ": give either 'at' (a time) or 'when' (a signal), to latch 'rod'",
        ),
        ("{do: latch, of: rod, at: -1}", ".at: must be at least 0 s, is -1 s"),
        ("{do: latch, of: rod, at: 1 m}", ".at: unit 'm' does not fit here; use s, ms, us, min, h"),
        ("{do: latch, of: rod, at: .nan}", ".at: must be a finite number, is nan"),
        ("{do: latch, of: rod, when: 3}", ".when: expected a mapping, got 3"),
        ("{do: latch, of: rod, when: {above: 1}}", ".when: missing key 'signal'"),
        ("{do: latch, of: rod, when: {signal: rod/position}}", ".when: give 'above' or 'below', one of them"),
        (
            "{do: latch, of: rod, when: {signal: rod/position, above: 1, below: 2}}",
            ".when: give 'above' or 'below', one of them",
        ),
        (
            "{do: latch, of: rod, when: {signal: rod/positon, above: 1}}",
            ".when.signal: no signal 'rod/positon'; did you mean 'rod/position'?",
        ),
        ("{do: latch, of: rod, when: {signal: '', above: 1}}", ".when.signal: expected a name, got ''"),
        (
            "{do: latch, of: rod, when: {signal: rod/position, above: .inf}}",
            ".when.above: must be a finite number, is inf",
        ),
        ("{do: brake, of: rod, at: 1}", ": a brake needs an 'effort' above 0"),
        ("{do: brake, of: rod, at: 1, effort: 0}", ": a brake needs an 'effort' above 0"),
        ("{do: brake, of: rod, at: 1, effort: -1}", ".effort: must be at least 0 N*m, is -1 N*m"),
        ("{do: latch, of: rod, at: 1, effort: 3}", ".effort: only a brake has 'effort'; take it out of latch"),
        (
            "{do: latch, of: rod, at: 1, static_ratio: 2}",
            ".static_ratio: only a brake has 'static_ratio'; take it out of latch",
        ),
        (
            "{do: unbrake, of: rod, at: 1, efforts: [1], times: [0]}",
            [
                ".efforts: only a brake has 'efforts'; take it out of unbrake",
                ".times: only a brake has 'times'; take it out of unbrake",
            ],
        ),
        ("{do: brake, of: rod, at: 1, effort: 3, static_ratio: 0.9}", ".static_ratio: must be at least 1, is 0.9"),
        ("{do: brake, of: rod, at: 1, efforts: [1, 2]}", ": give one of 'times' for each of 'efforts', got 0 and 2"),
        (
            "{do: brake, of: rod, at: 1, efforts: [], times: []}",
            ": give one of 'times' for each of 'efforts', got 0 and 0",
        ),
        ("{do: brake, of: rod, at: 1, times: [0, 2]}", ": give one of 'times' for each of 'efforts', got 2 and 0"),
        (
            "{do: brake, of: rod, at: 1, effort: 2, efforts: [1], times: [0]}",
            ".effort: give 'effort', or 'efforts' and 'times'",
        ),
        ("{do: brake, of: rod, at: 1, efforts: [1, 2], times: [1, 2]}", ".times: must start at 0 and increase"),
        ("{do: brake, of: rod, at: 1, efforts: [1, 2], times: [0, 0]}", ".times: must start at 0 and increase"),
        ("{do: brake, of: rod, at: 1, efforts: [0, 0], times: [0, 1]}", ".efforts: a brake needs an effort above 0"),
        (
            "{do: brake, of: rod, at: 1, efforts: [1, -1], times: [0, 1]}",
            ".efforts[1]: must be at least 0 N*m, is -1 N*m",
        ),
        (
            "{do: brake, of: rod, at: 1, efforts: [1 N], times: [0]}",
            ".efforts[0]: unit 'N' does not fit rotational joint 'rod'; use N*m, N*cm, mN*m",
        ),
        (
            "{do: brake, of: rod, at: 1, efforts: [1, 2], over: {signal: bar/positon, values: [0, 1]}}",
            ".over.signal: no signal 'bar/positon'; did you mean 'bar/position'?",
        ),
        *(
            (
                f"{{do: brake, of: rod, at: 1, efforts: [1, 2], over: {{signal: {signal}, values: [0, 1]}}}}",
                f".over.signal: '{signal}' may depend on the brake itself; use the position or velocity of a dof, such"
                " as 'rod/position'",
            )
            for signal in ("bar/acceleration", "bar/effort", "rod/holding_effort", "mesh/effort", "energy/kinetic")
        ),
        (
            "{do: brake, of: rod, at: 1, efforts: [1, 2], over: {signal: bar/position, values: [0, 1 rad]}}",
            ".over.values[1]: unit 'rad' does not fit linear joint 'bar'; use m, cm, mm, um",
        ),
        (
            "{do: brake, of: rod, at: 1, efforts: [1, 2], over: {signal: bar/position, values: [0, 1, 2]}}",
            ": give one of 'over.values' for each of 'efforts', got 3 and 2",
        ),
        (
            "{do: brake, of: rod, at: 1, over: {signal: bar/position, values: [0, 1]}}",
            ": give one of 'over.values' for each of 'efforts', got 2 and 0",
        ),
        *(
            (
                f"{{do: brake, of: rod, at: 1, efforts: [1, 2], over: {{signal: bar/velocity, values: {values}}}}}",
                ".over.values: must increase",
            )
            for values in ("[1, 0]", "[1, 1]")
        ),
        (
            "{do: brake, of: rod, at: 1, efforts: [1, 2], times: [0, 1], over: {signal: bar/position, values: [0, 1]}}",
            ".over: give 'times' or 'over', one of them",
        ),
        (
            "{do: brake, of: rod, at: 1, effort: 1, over: {signal: bar/position, values: [0, 1]}}",
            ".effort: give 'effort', or 'efforts' and 'over'",
        ),
        (
            "{do: brake, of: rod, at: 1, efforts: [0, 0], over: {signal: bar/position, values: [0, 1]}}",
            ".efforts: a brake needs an effort above 0",
        ),
        (
            "{do: brake, of: rod, at: 1, efforts: [1, -1], over: {signal: bar/position, values: [0, 1]}}",
            ".efforts[1]: must be at least 0 N*m, is -1 N*m",
        ),
        ("{do: brake, of: rod, at: 1, efforts: [1, 2], over: {values: [0, 1]}}", ".over: missing key 'signal'"),
        ("{do: brake, of: rod, at: 1, efforts: [1, 2], over: {signal: bar/position}}", ".over: missing key 'values'"),
        ("{do: brake, of: rod, at: 1, efforts: [1, 2], over: bar}", ".over: expected a mapping, got 'bar'"),
        (
            "{do: latch, of: rod, at: 1, over: {signal: bar/position, values: [0]}}",
            ".over: only a brake has 'over'; take it out of latch",
        ),
        *(
            (
                f"{{do: brake, of: rod, at: 1, efforts: {[1] * 101}, {points.format(list(range(101)))}}}",
                ".efforts: 101 efforts are too many; keep 100 or fewer",
            )
            for points in ("times: {}", "over: {{signal: bar/position, values: {}}}")
        ),
        ("{do: latch, of: rod, at: 1, name: ''}", ".name: expected a name, got ''"),
        ("{do: latch, of: rod, at: 1, nam: x}", ": unknown key 'nam'; did you mean 'name'?"),
    ],
)
def test_a_mistake_in_an_event(event, message):
    messages = [message] if isinstance(message, str) else message
    assert mistakes("rod: {}", event) == [f"rig.yaml:14 events[0]{each}" for each in messages]


def test_brakes_that_share_some_dofs():
    whole, part = "{do: brake, of: ball, at: 1, effort: 2}", "{do: brake, of: ball.rx, at: 1, effort: 2}"
    assert mistakes("rod: {}", whole, part, "{do: unbrake, of: ball.rx, at: 2}") == [
        "rig.yaml:15 events[1].of: shares dofs with 'brake ball'; name the same joint or dof in both",
        "rig.yaml:16 events[2].of: is a part of what 'brake ball' holds; name the whole joint",
    ]


@pytest.mark.parametrize(
    ("joints", "event", "others", "message"),
    [
        (
            "rod: {}",
            "{do: unlatch, of: bar, at: 2}",
            ["{do: latch, of: rod, at: 1}", "{do: brake, of: bar, effort: 1, at: 1}"],
            "'bar' is never latched; add a latch, give joints.bar.latched, or take this event out",
        ),
        (
            "rod: {latched: true}",
            "{do: release, of: ball.rx, at: 2}",
            ["{do: latch, of: bar, at: 1}"],
            "'ball.rx' is never latched; add a latch, give joints.ball.latched, or take this event out",
        ),
        (
            "bar: {latched: true}",
            "{do: unbrake, of: bar, at: 2}",
            ["{do: brake, of: rod, effort: 1, at: 1}", "{do: latch, of: bar, at: 1}"],
            "'bar' is never braked; add a brake or take this event out",
        ),
    ],
)
def test_an_event_that_frees_what_nothing_holds(joints, event, others, message):
    assert mistakes(joints, event, *others) == [f"rig.yaml:14 events[0].of: {message}"]


@pytest.mark.parametrize(
    ("joints", "events"),
    [
        ("ball: {latched: true}", ["{do: unlatch, of: ball.rx, at: 1}", "{do: release, of: ball, at: 2}"]),
        ("bar: {latched: true}", ["{do: unlatch, of: bar, at: 1}"]),
        ("bar: {}", ["{do: unlatch, of: bar, at: 1}", "{do: latch, of: bar, at: 2}"]),
        ("bar: {}", ["{do: brake, of: ball, effort: 1, at: 1}", "{do: unbrake, of: ball, at: 2}"]),
    ],
)
def test_an_event_that_frees_what_may_be_held(joints, events):
    assert len(rig(joints, *events).spec.events) == len(events)


def test_two_events_of_one_name():
    event = "{do: latch, of: rod, at: 1}"
    assert mistakes("rod: {}", event, "{do: unlatch, of: bar, at: 2}", event) == [
        "rig.yaml:16 events[2].name: there is an event 'latch rod' already; give this one another name"
    ]


def test_every_error_is_reported():
    found = mistakes(
        "rod: {}",
        "{do: latch, of: rod, when: {signal: a, above: 1}}",
        "{do: latch, of: bar, when: {signal: b, below: 1}}",
    )
    assert [line.split(";")[0] for line in found] == [
        "rig.yaml:14 events[0].when.signal: no signal 'a'",
        "rig.yaml:15 events[1].when.signal: no signal 'b'",
    ]


@pytest.mark.parametrize("do", ["latch", "unlatch", "brake", "release"])
def test_events_of_a_prescribed_joint(do):
    effort = ", effort: 1" if do == "brake" else ""
    assert mistakes(f"bar: {{{PRESCRIBED}}}", f"{{do: {do}, of: bar, at: 1{effort}}}") == [
        "rig.yaml:14 events[0].of: joint 'bar' is prescribed and follows its trajectory; name another one"
    ]


@pytest.mark.parametrize(
    ("joints", "message"),
    [
        (
            "rod: {stops: {lower: 1, upper: 2}}",
            "rod.stops.lower: joint 'rod' starts at 0 rad, beyond its lower stop at 1 rad; move one of them",
        ),
        (
            "bar: {initial: {position: 20 cm}, stops: {upper: 10 cm}}",
            "bar.stops.upper: joint 'bar' starts at 0.2 m, beyond its upper stop at 0.1 m; move one of them",
        ),
        (
            "cart: {initial: {guess: 0}, stops: {upper: 0.1}}\n  rod: {initial: {position: 1}}",
            "cart.stops.upper: with its loops closed joint 'cart' starts at 0.5 m, beyond its upper stop at 0.1 m; give"
            " another guess or stop",
        ),
        ("rod: {stops: {restitution: 2}}", "rod.stops.restitution: must be at most 1, is 2"),
        ("rod: {stops: {restitution: -1}}", "rod.stops.restitution: must be at least 0, is -1"),
        ("rod: {stops: 3}", "rod.stops: expected a mapping, got 3"),
        (
            "rod: {stops: {lower: 1 m}}",
            "rod.stops.lower: unit 'm' does not fit rotational joint 'rod'; use rad, mrad, deg, turn",
        ),
        ("rod: {stops: {lover: 1}}", "rod.stops: unknown key 'lover'; did you mean 'lower'?"),
        (
            f"bar: {{stops: {{upper: 1}}, {PRESCRIBED}}}",
            "bar.stops: joint 'bar' is prescribed and follows its trajectory; take out 'stops'",
        ),
        (
            f"bar: {{latched: true, {PRESCRIBED}}}",
            "bar.latched: joint 'bar' is prescribed and follows its trajectory; take out 'latched'",
        ),
        ("rod: {latched: 3}", "rod.latched: expected true, false, yes or no, got 3"),
        (
            "bar: {latched: true, initial: {velocity: 1}}",
            "bar.initial.velocity: 'bar' is latched and starts at rest; take out the velocity or 'latched'",
        ),
        (
            "ball: {latched: true, initial: {velocity: [0, 1, 0]}}",
            "ball.initial.velocity: 'ball' is latched and starts at rest; take out the velocity or 'latched'",
        ),
        ("tip: {latched: true}", "tip.latched: joint 'tip' is fixed; it takes no 'latched' of its own"),
        ("thumb: {stops: {lower: 0}}", "thumb.stops: joint 'thumb' follows 'rod'; it takes no 'stops' of its own"),
        ("ball: {initial: {position: [1, 2]}}", "ball.initial.position: expected 4 numbers (qx, qy, qz, qw), got 2"),
        (
            "ball: {initial: {position: [0, 0, 0, 0]}}",
            "ball.initial.position: the quaternion is zero; use 0, 0, 0, 1 for no rotation",
        ),
        ("ball: {initial: {velocity: [1]}}", "ball.initial.velocity: expected 3 numbers (rx, ry, rz), got 1"),
        ("ball: {initial: {velocity: 1}}", "ball.initial.velocity: expected a list of numbers, got 1"),
        ("ball: {stops: {lower: 1}}", "ball: unknown key 'stops'; known: initial, latched"),
        ("ball: {initial: {guess: 1}}", "ball.initial: unknown key 'guess'; known: position, velocity"),
        ("ball: 3", "ball: expected a mapping, got 3"),
        ("ball.r: {}", "ball.r: unknown joint 'ball.r'; did you mean 'ball.rz'?"),
        (
            "ball.rx: {initial: {position: 1}}",
            "ball.rx.initial: 'ball.rx' is one dof of 'ball', which turns: its velocity is along the body; take out"
            " 'initial' and give joints.ball.initial",
        ),
        (
            "ball.rx: {stops: {upper: 1}}",
            "ball.rx.stops: 'ball.rx' is one dof of 'ball', which turns: its velocity is along the body;"
            " take out 'stops', or use a chain of prismatic joints",
        ),
    ],
)
def test_a_mistake_in_the_start_or_the_stops(joints, message):
    assert mistakes(joints) == [f"rig.yaml:12 joints.{message}"]


@pytest.mark.parametrize(
    ("joints", "message"),
    [
        (
            "{rod: {initial: {position: 1}}, cart: {initial: {position: 1}}}",
            "'mesh' cannot close: the smallest violation found is 1 rad; change its parameters, or remove the initial"
            " position of 'rod' or 'cart'",
        ),
        (
            "{rod: {latched: true}, cart: {initial: {velocity: 1}}}",
            "the initial velocities contradict 'mesh' by 2 rad/s; change or remove that of 'rod' or 'cart'",
        ),
    ],
)
def test_starts_that_contradict_a_constraint(joints, message):
    Path("rig.yaml").write_text(HEAD.removesuffix("joints:\n") + f"joints: {joints}\n")
    with pytest.raises(CosimError) as caught:
        load_rig("rig.yaml")
    assert str(caught.value) == f"rig.yaml:10 mechanism.constraints[0]: {message}"


def test_the_command_line_prints_it_in_one_line(command):
    Path("rig.yaml").write_text(f"{HEAD}  rod: {{}}\nevents:\n  - {{do: latch, of: rod}}\n")
    assert command.refuses("run", "rig.yaml") == [
        "rig.yaml:14 events[0]: give either 'at' (a time) or 'when' (a signal), to latch 'rod'"
    ]


def test_a_run_that_cannot_go_on_ends_with_one_line(command):
    text = """
mechanism: {gravity: [0, 0, 0], bodies: [{name: a, type: prismatic, axis: [1, 0, 0], mass: 1 kg}]}
joints: {a: {initial: {velocity: 1}, stops: {lower: -1e-6, upper: 1e-6, restitution: 1}}}
"""
    Path("rig.yaml").write_text(text)
    code, _, err = command("run", "rig.yaml")
    assert code == 1
    assert err[-1].startswith(
        "rig.yaml: stopped at tick 1 (t = 0.001 s): events trigger each other without end at t = "
    )


# --- files of one's own ---------------------------------------------------------------------------------------

LAW = """
from cosim import ops
from cosim.multibody.constraint_laws import ConstraintLaw, ReactionSpec
from cosim.types import params
@params
class Params: pass
def load(params):
    return ConstraintLaw((ReactionSpec("moment", "N*m", "rad"),), lambda frames, q, t: [{}])
"""
JOINT = """
from cosim import ops
from cosim.multibody.joints import GeneralMotion
from cosim.types import params
import numpy as np
@params
class Params: pass
def load(params):
    return GeneralMotion(("s",), ("m",), lambda q, t: (np.eye(3), ops.array([{}, 0.0, q[0]])))
"""
LAWFUL = """\
mechanism:
  bodies:
    - {name: a, axis: [0, 1, 0], mass: 1 kg, com: [0, 0, -1], inertia: [1, 1, 1]}
    - {name: b, axis: [0, 1, 0], mass: 1 kg, com: [0, 0, -1], inertia: [1, 1, 1], parent: base}
  constraints: [{name: mine, type: own.py, joints: [a, b]}]
joints: {a: {initial: {position: 0.5}}}
schedule: {duration: 2}
"""
GENERAL = """\
mechanism:
  bodies:
    - {name: a, type: own.py, mass: 1 kg, inertia: [1, 1, 1]}
schedule: {duration: 2}
"""


@pytest.mark.parametrize(
    ("text", "own", "message"),
    [
        (
            LAWFUL,
            LAW.format("1 / 0"),
            "rig.yaml:5 mechanism.constraints[0].type: residual fails on numbers: ZeroDivisionError: division by zero"
            " (*/own.py:8)",
        ),
        (
            LAWFUL,
            LAW.format("q[0] if q[0] > 0 else q[1]"),
            "rig.yaml:5 mechanism.constraints[0].type: residual fails on symbols: a Python `if`, `and`, `min` or"
            " comparison chain on a traced value; use cosim.ops.where (*/own.py:8)",
        ),
        # the nearest solution is where the root begins, with an infinite slope
        (
            LAWFUL,
            LAW.format("ops.sqrt(0.4 - q[0]) - q[1]"),
            "rig.yaml:5 mechanism.constraints[0]: 'mine' has no direction at the initial positions; change the initial"
            " positions",
        ),
        (
            LAWFUL,
            LAW.format("q[0] * q[0] + 1"),
            "rig.yaml:5 mechanism.constraints[0]: 'mine' cannot close: the smallest violation found is 1.25 rad;"
            " change its parameters, or remove the initial position of 'a'",
        ),
        # it swings to where the root has no value
        (
            LAWFUL,
            LAW.format("q[0] - ops.sqrt(0.3 - q[1])"),
            "rig.yaml: stopped at tick * (t = * s): joint 'b' is not finite (position * rad, velocity nan rad/s); try a"
            " smaller schedule.step, more schedule.substeps or schedule.integrator: rosenbrock",
        ),
        # it falls to where the curve has no value
        (
            GENERAL,
            JOINT.format("ops.sqrt(1.0 + q[0])"),
            "rig.yaml: stopped at tick * (t = * s): joint 'a' is not finite (position * m, velocity nan m/s); try a"
            " smaller schedule.step, more schedule.substeps or schedule.integrator: rosenbrock",
        ),
    ],
)
def test_files_that_fail(text, own, message):
    Path("own.py").write_text(own)
    Path("rig.yaml").write_text(text)
    with pytest.raises(CosimError) as caught:
        load_rig("rig.yaml").run()
    assert re.fullmatch(re.escape(message).replace(r"\*", ".*"), str(caught.value))


# --- anything at all ------------------------------------------------------------------------------------------

VALUES = [
    "3", "-1", "1e300", "''", "null", "true", "rod", "cart", "ball", "mesh", "nothing", "[]", "{}", "[1, 2, 3]", ".nan",
    "[rod, cart]", "[rod, rod]", "base", "2 m", "10 deg", "revolute", "free", "spherical", "distance", "gear",
    "rolling", "latch", "brake", "release", "{signal: rod/position, above: 0}", "{signal: 3}", "{xyz: [0, 0, 1]}",
    "[[0, 0, 0], [1, 0, 0]]", "{position: 1}", "{position: [0, 0, 0, 1]}", "{lower: -1, upper: 1}", "x.py", "0",
    "[0, 0, 1]", "{rpy: 3}",
]  # fmt: skip
KEYS = {
    "events": "do of name at when effort efforts times over",
    "loops": "name type parent child origin child_origin axis damping coordinates limits pitch",
    "constraints": "name type between joints length points body polynomial ratio on radius axle normal plane offset",
    "springs": "name between points stiffness damping unloaded_length",
    "joints": "initial stops latched limits prescribed actuator encoder",
}


def test_an_initial_state_that_is_no_mapping_with_a_prescribed_motion():
    assert mistakes(f"bar: {{initial: 3, {PRESCRIBED}}}") == [
        "rig.yaml:12 joints.bar.initial: expected a mapping, got 3"
    ]


@pytest.mark.parametrize("section", KEYS)
def test_garbage_is_distinguished_from_input(section):
    """Whatever stands there is read, or refused with lines that have a place; nothing else is ever raised."""
    dice = random.Random(section)
    refused = 0
    for _ in range(60):
        keys = dice.sample(KEYS[section].split(), dice.randint(1, 5))
        entry = "{" + ", ".join(f"{key}: {dice.choice(VALUES)}" for key in keys) + "}"
        entry = dice.choice(VALUES) if dice.random() < 0.1 else entry
        if section == "joints":
            text = f"{HEAD}  {dice.choice(['rod', 'bar', 'ball', 'tip', 'ball.rx', 'all'])}: {entry}\n"
        elif section == "events":
            text = f"{HEAD}  rod: {{}}\nevents:\n  - {entry}\n"
        else:
            kept = HEAD.replace("  constraints:\n    - {name: mesh, type: gear, joints: [rod, cart], ratio: 2}\n", "")
            text = kept.replace("joints:\n", f"  {section}:\n    - {entry}\n")
        Path("rig.yaml").write_text(text)
        try:
            load_rig("rig.yaml")
        except InputErrors as errors:
            refused += 1
            assert all(re.match(r"rig\.yaml(:\d+)? .+: .+", line) for line in str(errors).splitlines())
        except CosimError as error:
            refused += 1
            assert re.match(r"rig\.yaml(:\d+)? .+: [^\n]+$", str(error))
    assert refused > 30
