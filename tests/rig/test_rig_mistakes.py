"""One mistake in a rig file at a time: the exact message, with its line."""

from pathlib import Path

import pytest


@pytest.mark.parametrize(
    "text, message",
    [
        ("name: x\n", "1: missing key 'mechanism'"),
        ("mechanism: {}\n", "1 mechanism: missing key 'urdf', 'mjcf' or 'bodies'"),
        ("mechanism: arm.urdf\n", "1 mechanism: expected a mapping, got 'arm.urdf'"),
        (
            "mechanism:\n  urdf: a.urdf\n  bodies: []\n",
            "1 mechanism: both 'urdf' and 'bodies' are given; keep one of them",
        ),
        ("mechanism:\n  urdf: bots/a.urdf\n", "2 mechanism.urdf: no such file 'bots/a.urdf'"),
        ("mechanism:\n  urdf: 3\n", "2 mechanism.urdf: expected text, got 3; put it in quotes"),
    ],
)
def test_a_mistake_in_the_rig(rigs, text, message):
    assert rigs.mistakes(text) == [f"rig.yaml:{message}"]


@pytest.mark.parametrize(
    "text, message",
    [
        ("  gravity: [0, 0]", "mechanism.gravity: expected 3 numbers, got 2"),
        ("jonts: {}", "unknown key 'jonts'; did you mean 'joints'?"),
        ("name: 3", "name: expected text, got 3; put it in quotes"),
        ("telemetry: {rate: 0}", "telemetry.rate: must be above 0 Hz, is 0 Hz"),
    ],
)
def test_an_error_outside_the_mechanism(rigs, text, message):
    (found,) = rigs.mistakes(f"{rigs.mechanism}{text}\n")
    assert found in (f"rig.yaml:8 {message}", f"rig.yaml:8: {message}")


def test_a_mistake_in_the_bodies(rigs):
    assert rigs.mistakes(rigs.mechanism.replace("2 kg", "2 V")) == [
        "rig.yaml:3 mechanism.bodies[0].mass: unit 'V' does not fit here; use kg, g, t"
    ]


@pytest.mark.parametrize(
    "joints, message",
    [
        ("{elbw: {}}", "joints.elbw: unknown joint 'elbw'; did you mean 'elbow'?"),
        ("{xyz: {}}", "joints.xyz: unknown joint 'xyz'; known: shoulder, elbow, lift"),
        ("{elbow: 3}", "joints.elbow: expected a mapping, got 3"),
        ("{all: 3}", "joints.all: expected a mapping, got 3"),
        ("{elbow: {actuatr: {}}}", "joints.elbow: unknown key 'actuatr'; did you mean 'actuator'?"),
        ("{all: {actuatr: {}}}", "joints.all: unknown key 'actuatr'; did you mean 'actuator'?"),
        ("{elbow: {encoder: {delay: 2}}}", "joints.elbow.encoder.delay: expected one of 0, 1; got 2"),
        ("{all: {encoder: {delay: 2}}}", "joints.all.encoder.delay: expected one of 0, 1; got 2"),
        ("{elbow: {encoder: {cpr: 0}}}", "joints.elbow.encoder.cpr: must be at least 1, is 0"),
        ("{elbow: {limits: {effort: 0}}}", "joints.elbow.limits.effort: must be above 0 N*m, is 0 N*m"),
        (
            "{all: {limits: {effort: 0}}, elbow: {limits: {velocity: 1}}, lift: {limits: null}}",
            "joints.all.limits.effort: must be above 0 N*m, is 0 N*m",
        ),
        (
            "{all: {limits: {effort: 1}}, elbow: {limits: {velocity: 0}}}",
            "joints.elbow.limits.velocity: must be above 0 rad/s, is 0 rad/s",
        ),
        (
            "{all: {limits: {actions: {effort: halt}}}, elbow: {limits: {actions: {velocity: stop}}}}",
            "joints.all.limits.actions.effort: expected one of warn, saturate, stop; got 'halt'",
        ),
        (
            "{all: {limits: {efort: 1}}, elbow: {limits: {velocity: 1}}}",
            "joints.all.limits: unknown key 'efort'; did you mean 'effort'?",
        ),
        (
            "{all: {limits: {upper: -1}}, elbow: {limits: {lower: 1}}, shoulder: {limits: null}, lift: {limits: null}}",
            "joints.elbow.limits: lower 1 rad of joint 'elbow' is above its upper -1 rad",
        ),
        (
            "{elbow: {limits: {lower: 1, upper: -1}}}",
            "joints.elbow.limits: lower 1 rad of joint 'elbow' is above its upper -1 rad",
        ),
        (
            "{shoulder: {limits: {lower: 2}}}",
            "joints.shoulder.limits: lower 2 rad of joint 'shoulder' is above its upper 1 rad",
        ),
        (
            "{all: {limits: {effort: 40 N*m}}}",
            "joints.all.limits.effort: unit 'N*m' does not fit linear joint 'lift'; use N, kN",
        ),
        (
            "{lift: {initial: {position: 90 deg}}}",
            "joints.lift.initial.position: unit 'deg' does not fit linear joint 'lift'; use m, cm, mm, um",
        ),
        (
            "{shoulder: {initial: {position: 90 deg}}}",
            "joints.shoulder.initial.position: 1.5708 rad is outside the limits of joint 'shoulder';"
            " give one from -1 to 1 rad",
        ),
        (
            "{shoulder: {limits: {upper: 3}, initial: {position: 2}}}",
            "joints.shoulder.initial.position: 2 rad is outside the limits of joint 'shoulder';"
            " give one from -1 to 1 rad",
        ),
        (
            "{lift: {limits: {lower: 10 mm}}}",
            "joints.lift.initial.position: 0 m is outside the limits of joint 'lift'; give one from 0.01 to inf m",
        ),
        (
            "{all: {initial: {position: 2}}}",
            "joints.all.initial.position: 2 rad is outside the limits of joint 'shoulder'; give one from -1 to 1 rad",
        ),
        (
            "{elbow: {actuator: {type: ideal}, prescribed: {type: still}}}",
            "joints.elbow.actuator: joint 'elbow' is prescribed, its effort is computed;"
            " take out 'actuator' or 'prescribed'",
        ),
        *(
            (
                f"{{thumb: {{{key}: {{}}}}}}",
                f"joints.thumb.{key}: joint 'thumb' follows 'elbow'; it takes no '{key}' of its own",
            )
            for key in ("actuator", "prescribed", "initial", "limits")
        ),
        (
            "{tool: {encoder: {}}}",
            "joints.tool.encoder: joint 'tool' is fixed; it takes no 'encoder' of its own",
        ),
        ("{elbow: {actuator: motor}}", "joints.elbow.actuator: expected a mapping, got 'motor'"),
        ("{elbow: {actuator: {}}}", "joints.elbow.actuator: missing key 'type'; known: ideal, motor"),
        ("{elbow: {actuator: {type: motor}}}", "joints.elbow.actuator: missing key 'resistance'"),
        (
            "{elbow: {actuator: {type: moter}}}",
            "joints.elbow.actuator.type: unknown actuator 'moter'; did you mean 'motor'?",
        ),
        (
            "{elbow: {actuator: {type: motor, resistance: 3, tpye: 1}}}",
            "joints.elbow.actuator: unknown key 'tpye'; did you mean 'type'?",
        ),
        (
            "{elbow: {prescribed: {type: lin, goal: 1}}}",
            "joints.elbow.prescribed.type: unknown trajectory 'lin'; did you mean 'line'?",
        ),
        (
            "{elbow: {prescribed: {type: line, goal: [1, 2]}}}",
            "joints.elbow.prescribed.goal: expected 1 number (one per joint), got 2",
        ),
    ],
)
def test_a_mistake_in_the_joints(rigs, joints, message):
    assert rigs.mistakes(f"{rigs.mechanism}joints: {joints}\n") == [f"rig.yaml:8 {message}"]


@pytest.mark.parametrize(
    "controllers, message",
    [
        ("[pd]", "controllers[0]: expected a mapping, got 'pd'"),
        ("{type: pd}", "controllers: expected a list of values, got a mapping"),
        ("[{}]", "controllers[0]: missing key 'type'; known: none, pd"),
        ("[{type: pdd}]", "controllers[0].type: unknown controller 'pdd'; did you mean 'pd'?"),
        ("[{type: pd, kp: 1, kpp: 1}]", "controllers[0]: unknown key 'kpp'; did you mean 'kp'?"),
        ("[{type: pd, kp: 1, perid: 1}]", "controllers[0]: unknown key 'perid'; did you mean 'period'?"),
        ("[{type: pd, kp: [1, 2]}]", "controllers[0].kp: expected 3 numbers (one per joint), got 2"),
        (
            "[{type: none, trajectory: {type: line, goal: [1, 2]}}]",
            "controllers[0].trajectory.goal: expected 3 numbers (one per joint), got 2",
        ),
        (
            "[{type: none, joints: [elbow, sholder]}]",
            "controllers[0].joints[1]: unknown joint 'sholder'; did you mean 'shoulder'?",
        ),
        (
            "[{type: none, joints: elbow}]",
            "controllers[0].joints: expected a list of names, got 'elbow'",
        ),
        ("[{type: none, joints: []}]", "controllers[0].joints: there is no joint to command"),
        (
            "[{type: none, joints: [thumb]}]",
            "controllers[0].joints[0]: joint 'thumb' follows 'elbow'; it cannot be commanded",
        ),
        (
            "[{type: none, joints: [tool]}]",
            "controllers[0].joints[0]: joint 'tool' is fixed; it cannot be commanded",
        ),
        (
            "[{type: none, joints: [lift]}, {type: pd, kp: 1, joints: [elbow, lift]}]",
            "controllers[1].joints[1]: joint 'lift' is already commanded by controller 'none' (line 8)",
        ),
        (
            "[{type: none, joints: [lift]}, {type: none, joints: [elbow]}]",
            "controllers[1]: controller 'none' exists already (line 8); give this one another name",
        ),
        (
            "[{type: none, joints: [lift]}, {type: pd, name: none, kp: 1, joints: [elbow]}]",
            "controllers[1].name: controller 'none' exists already (line 8); give this one another name",
        ),
        (
            "[{type: none, period: 2.5 ms}]",
            "controllers[0].period: 2.5 ms is no whole multiple of the step of 1 ms; nearest: 2 ms or 3 ms",
        ),
        (
            "[{type: none, period: 200 us}]",
            "controllers[0].period: 200 us is no whole multiple of the step of 1 ms; nearest: 1 ms",
        ),
        (
            "[{type: none, period: 1.00000001}]",
            "controllers[0].period: 1.00000001 s is no whole multiple of the step of 1 ms; nearest: 1 s or 1.001 s",
        ),
        ("[{type: none, period: 0}]", "controllers[0].period: must be above 0 s, is 0 s"),
    ],
)
def test_a_mistake_in_the_controllers(rigs, controllers, message):
    assert rigs.mistakes(f"{rigs.mechanism}controllers: {controllers}\n") == [f"rig.yaml:8 {message}"]


def test_a_controller_on_a_prescribed_joint(rigs):
    prescribed = "joints: {elbow: {prescribed: {type: still}}}\n"
    assert rigs.mistakes(rigs.mechanism + "controllers: [{type: none, joints: [elbow]}]\n" + prescribed) == [
        "rig.yaml:8 controllers[0].joints[0]: joint 'elbow' is prescribed; it cannot be commanded"
    ]


@pytest.mark.parametrize(
    "schedule, message",
    [
        ("{step: 0.1 us}", "step: must be at least 1e-06 s, is 1e-07 s"),
        (
            "{step: 0.00033333333}",
            "step: must be a whole number of nanoseconds, is 333.33333 us; nearest: 333.333 us",
        ),
        ("{step: 10 ms, duration: 5 ms}", "duration: must be at least the step of 10 ms, is 5 ms"),
        (
            "{integrator: rk5}",
            "integrator: expected one of semi_implicit_euler, rk4, rosenbrock, rodas4, multirate; got 'rk5'",
        ),
        ("{substeps: 0}", "substeps: must be at least 1, is 0"),
        ("{substeps: auot}", "substeps: expected a number of substeps or 'auto', got 'auot'; did you mean 'auto'?"),
        (
            "{substeps: auto}",
            "substeps: rk4 does not estimate its error; use integrator: rodas4, or give a number of substeps",
        ),
        (
            "{integrator: rosenbrock, tolerance: 1e-6}",
            "tolerance: rosenbrock does not estimate its error; use integrator: rodas4, or remove 'tolerance'",
        ),
        ("{integrator: rodas4, tolerance: 0}", "tolerance: must be at least 1e-12, is 0"),
        ("{seed: 0.5}", "seed: expected a whole number, got 0.5"),
    ],
)
def test_a_mistake_in_the_schedule(rigs, schedule, message):
    assert rigs.mistakes(f"{rigs.mechanism}schedule: {schedule}\n") == [f"rig.yaml:8 schedule.{message}"]


def test_a_urdf_that_is_nearly_named_right(rigs):
    Path("two.urdf").touch()
    assert rigs.mistakes("mechanism: {urdf: twoo.urdf}\n") == [
        "rig.yaml:1 mechanism.urdf: no such file 'twoo.urdf'; did you mean 'two.urdf'?"
    ]
