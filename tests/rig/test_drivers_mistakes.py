"""Mistakes about real drives: in the sections `drivers` and `emulator`, in what guards them, and of lines that are not
there; each one line at its place, and no motor is on."""

from __future__ import annotations

import pytest

from cosim import load_rig
from cosim.rig.sections.rig_spec import read_rig
from tests.conformance.families import folders
from tests.rig.drivers_mistakes_helpers import BUS, ELBOW, REAL, RIG, SLOW, driver

KNOWN = ", ".join(folders())
NO_JOINT = "names no joint; list them under 'joints', each with the address of its drive"


# --- the section `drivers` --------------------------------------------------------------------------


ALONE = {
    "drivers: 5\n": "13 drivers: expected a list of values, got 5",
    "drivers: {a: b}\n": "13 drivers: expected a list of values, got a mapping",
    "drivers: [5]\n": "13 drivers[0]: expected a mapping, got 5",
    f"drivers: [{{{BUS}, {ELBOW}}}]\n": (f"13 drivers[0]: missing key 'type'; known: {KNOWN}"),
    f"drivers: [{{type: 7, {ELBOW}}}]\n": (f"13 drivers[0].type: expected text, got 7; known: {KNOWN}"),
    f"drivers: [{{type: odriwe, {BUS}, {ELBOW}}}]\n": (
        "13 drivers[0].type: unknown driver 'odriwe'; did you mean 'odrive'?"
    ),
    **{
        f"drivers: [{{type: {name}, {BUS}, {ELBOW}}}]\n": (
            f"13 drivers[0].type: unknown driver '{name}'; known: {KNOWN}"
        )
        for name in ("sim", "transport", "common")
    },
    driver(BUS): f"13 drivers[0]: {NO_JOINT}",
    driver(BUS, "joints: {}"): f"13 drivers[0]: {NO_JOINT}",
    driver(BUS, "joints: {all: {ratio: 3}}"): f"13 drivers[0]: {NO_JOINT}",
    driver(BUS, "joints: [elbow]"): "13 drivers[0].joints: expected a mapping, got a list",
    driver(BUS, "loads: [elbow]"): "13 drivers[0].loads: expected a mapping, got a list",
    driver(BUS, "joints: {elbow: 5}"): "13 drivers[0].joints.elbow: expected a mapping, got 5",
    driver(BUS, "joints: {all: 5, elbow: {id: 1}}"): "13 drivers[0].joints.all: expected a mapping, got 5",
    driver(BUS, "joints: {elbow: }"): (
        "13 drivers[0].joints.elbow: give either 'id' (on CAN) or 'axis' (on a serial port)"
    ),
    driver(BUS, "joints: {elbo: {id: 1}}"): ("13 drivers[0].joints.elbo: unknown joint 'elbo'; did you mean 'elbow'?"),
    driver(BUS, "joints: {tool: {id: 1}}"): (
        "13 drivers[0].joints.tool: joint 'tool' is fixed; it has no drive of its own"
    ),
    driver(BUS, "joints: {thumb: {id: 1}}"): (
        "13 drivers[0].joints.thumb: joint 'thumb' follows 'elbow'; it has no drive of its own"
    ),
    driver(BUS, "joints: {ball: {id: 1}}"): (
        "13 drivers[0].joints.ball: joint 'ball' has several dofs; name one of them"
    ),
    "  ball.rx: {limits: {velocity: 9, effort: 9}}\n" + driver(BUS, "joints: {ball.rx: {id: 1}}"): (
        "14 drivers[0].joints.ball.rx: 'ball.rx' is one dof of 'ball', which turns, and cannot be real by itself;"
        " use a chain of revolute and prismatic joints"
    ),
    driver(BUS, "joints: {swing: {id: 1}}"): (
        "13 drivers[0].joints.swing: joint 'swing' is prescribed, and a real one moves as it is measured; take out"
        " 'prescribed'"
    ),
    driver(BUS, ELBOW, "mode: torque"): (
        "13 drivers[0].mode: expected one of effort, velocity, position; got 'torque'"
    ),
    f"drivers: [{{type: far, {BUS}, {ELBOW}}}]\n": (f"13 drivers[0].type: unknown driver 'far'; known: {KNOWN}"),
    driver(BUS, ELBOW, "observer: 0"): "13 drivers[0].observer: must be above 0 Hz, is 0 Hz",
    driver(BUS, ELBOW, "wachdog: 1"): "13 drivers[0]: unknown key 'wachdog'; did you mean 'watchdog'?",
    driver("bus: {interface: virtual}", ELBOW): "13 drivers[0].bus: missing key 'channel'",
    driver(ELBOW): "13 drivers[0]: give either 'bus' or 'port'",
    driver(BUS, "joints: {elbow: {id: 1, ratoi: 3}}"): (
        "13 drivers[0].joints.elbow: unknown key 'ratoi'; did you mean 'ratio'?"
    ),
    driver(BUS, "joints: {elbow: {id: 1, direction: 2}}"): (
        "13 drivers[0].joints.elbow.direction: expected one of 1, -1; got 2"
    ),
    driver(BUS, "joints: {elbow: {id: 1, zero: 1 cm}}"): (
        "13 drivers[0].joints.elbow.zero: unit 'cm' does not fit rotational joint 'elbow'; use rad, mrad, deg, turn"
    ),
    driver(BUS, "joints: {lift: {id: 1, zero: 1 deg}}"): (
        "13 drivers[0].joints.lift.zero: unit 'deg' does not fit linear joint 'lift'; use m, cm, mm, um"
    ),
    driver(BUS, ELBOW, "loads: {elbow: {id: 2, effort: 1}}"): (
        "13 drivers[0].loads: a driver has 'joints' or 'loads'; make two drivers of it"
    ),
    driver(BUS, "loads: {elbow: {id: 2, effort: 1}}"): (
        "13 drivers[0].loads.elbow: joint 'elbow' has a load motor and no motor under test; give it a driver too"
    ),
    driver(
        BUS, "loads: {}"
    ): "13 drivers[0]: names no joint; list them under 'loads', each with the address of its drive",
    driver(BUS, "joints: {elbow: {id: 1}, shoulder: {id: 1}}"): (
        "13 drivers[0].joints.shoulder.id: node 1 on virtual a is that of joint 'elbow' already; give each drive its"
        " own"
    ),
    driver("port: {port: /dev/x}", "joints: {elbow: {axis: 1}, shoulder: {axis: 1}}"): (
        "13 drivers[0].joints.shoulder.axis: node 1 on /dev/x is that of joint 'elbow' already; give each drive its own"
    ),
}


@pytest.mark.parametrize("text", ALONE)
def test_a_mistake_in_the_section_is_one_line_at_its_place(mistakes, text):
    assert mistakes(text) == [ALONE[text]]


def test_a_mode_that_a_family_does_not_have(mistakes, monkeypatch):
    from cosim.drivers import odrive

    monkeypatch.setattr(odrive, "MODES", frozenset({"velocity", "position"}))
    said = "odrive drives have the modes position, velocity; choose one"
    assert mistakes(driver(BUS, ELBOW)) == [f"13 drivers[0]: {said}"]
    assert mistakes(driver(BUS, ELBOW, "mode: effort")) == [f"13 drivers[0].mode: {said}"]


def test_load_motors_follow_an_effort(mistakes):
    load = f"{{name: load, type: odrive, mode: velocity, {BUS.replace('a}', 'b}')}, loads: {{elbow: {{id: 2}}}}}}"
    assert mistakes(f"{REAL[:-2]}, {load}]\n") == ["13 drivers[1].loads.elbow: missing key 'effort'"]
    load = load.replace("id: 2", "id: 2, effort: 3")
    assert mistakes(f"{REAL[:-2]}, {load}]\n") == ["13 drivers[1].mode: load motors follow an effort; take 'mode' out"]


def test_an_unknown_key_of_a_load_motor_is_compared_with_all_of_its_keys(mistakes):
    own = "{id: 2, effort: 1, intertia: 1}"
    load = f"{{name: load, type: odrive, {BUS.replace('a}', 'b}')}, loads: {{elbow: {own}}}}}"
    said = "13 drivers[1].loads.elbow: unknown key 'intertia'; did you mean 'inertia'?"
    assert mistakes(f"{REAL[:-2]}, {load}]\n") == [said]


def test_all_errors_are_reported_together_in_the_order_of_the_lines(mistakes):
    assert mistakes(f"""\
drivers:
  - type: odrive
    {BUS}
    wachdog: 100 ms
    joints:
      all: {{ratio: 0}}
      shoulder: {{id: 1, zro: 2}}
      elbow: {{id: 2}}
  - type: odrive
    {BUS.replace("a}", "b}")}
    joints:
      elbow: {{id: 1, ratio: 1}}
guard:
  watchdog: 0
schedule:
  realtime: no
""") == [
        "16 drivers[0]: unknown key 'wachdog'; did you mean 'watchdog'?",
        "18 drivers[0].joints.all.ratio: must be above 0, is 0",
        "19 drivers[0].joints.shoulder: unknown key 'zro'; did you mean 'zero'?",
        "24 drivers[1].joints.elbow: joint 'elbow' is behind driver 'odrive' already",
        "26 guard.watchdog: must be above 0 s, is 0 s",
        "28 schedule.realtime: real motors run in real time; take 'realtime: no' out",
    ]


def test_drivers_with_the_same_connection_or_name(mistakes):
    again = "is on virtual a already; give its joints and these to one driver"
    assert mistakes(f"""\
drivers:
  - {{name: first, type: odrive, {BUS}, {ELBOW}}}
  - {{name: second, type: odrive, {BUS}, joints: {{shoulder: {{id: 2}}}}}}
  - {{name: first, type: cia402, {BUS}, joints: {{lift: {{id: 2}}}}}}
""") == [
        f"15 drivers[1]: driver 'first' {again}",
        "16 drivers[2].name: driver 'first' exists already; give another name",
        "16 drivers[2].joints.lift.id: node 2 on virtual a is that of joint 'shoulder' already; give each drive its"
        " own",
    ]


def test_two_families_on_one_connection_at_unlike_bit_rates(mistakes):
    def two(first: str, second: str, kinds: str = "odrive cia402") -> list[str]:
        one, other = kinds.split()
        wired = ("joints: {elbow: {id: 1}}", "joints: {shoulder: {id: 2}}")
        rows = zip((one, other), (first, second), wired, strict=True)
        lines = (f"  - {{type: {kind}, {line}, {joints}}}\n" for kind, line, joints in rows)
        return mistakes("drivers:\n" + "".join(lines))

    can = "bus: {interface: virtual, channel: a%s}"
    same = "give both the same, that of the drives"
    assert two(can % ", bitrate: 500 kbit/s", can % ", bitrate: 250 kbit/s") == [
        "15 drivers[1].bus.bitrate: 250000 bit/s on virtual a, which has 500000 bit/s at rig.yaml:14"
        f" drivers[0].bus.bitrate; {same}"
    ]
    assert two(can % "", can % ", bitrate: 250 kbit/s") == [
        "15 drivers[1].bus.bitrate: 250000 bit/s on virtual a, which has 1000000 bit/s at rig.yaml:14"
        f" drivers[0].bus.bitrate; {same}"
    ]
    fd = ", fd: true, data_bitrate: %s"
    assert two(can % fd % "2 Mbit/s", can % fd % "5 Mbit/s", "odrive moteus") == [
        "15 drivers[1].bus.data_bitrate: 5000000 bit/s on virtual a, which has 2000000 bit/s at rig.yaml:14"
        f" drivers[0].bus.data_bitrate; {same}"
    ]
    # classic CAN on a bus of CAN FD: only the other rate is compared
    assert two(can % "", can % (", bitrate: 500 kbit/s" + fd % "5 Mbit/s"), "odrive moteus") == [
        "15 drivers[1].bus.bitrate: 500000 bit/s on virtual a, which has 1000000 bit/s at rig.yaml:14"
        f" drivers[0].bus.bitrate; {same}"
    ]
    wired = 'port: {port: "/dev/x", baudrate: 57600}', 'port: {port: "/dev/x", baudrate: %s}'
    assert two(wired[0], wired[1] % 9600, "moteus serial_text") == [
        "15 drivers[1].port.baudrate: 9600 bit/s on /dev/x, which has 57600 bit/s at rig.yaml:14"
        f" drivers[0].port.baudrate; {same}"
    ]
    assert two(wired[0], wired[1] % 57600, "moteus serial_text") == [
        "15 drivers[1].port: the port /dev/x is that of driver 'moteus' already; drives of two families need a"
        " port each"
    ]
    adapter = "bus: {interface: slcan, channel: /dev/x}"
    assert two(adapter, wired[1] % 115200, "odrive serial_text") == [
        "15 drivers[1].port: the port /dev/x is that of driver 'odrive' already; drives of two families need a"
        " port each"
    ]


def test_errors_in_values_for_all_joints_have_their_location(mistakes):
    lines = f"drivers:\n  - type: odrive\n    {BUS}\n    joints:\n      all: ALL\n      elbow: OWN\n"
    ours, theirs, here = lines.replace("ALL", "{zero: 1 s}"), lines.replace("ALL", "{zero: 1 m}"), "drivers[0].joints"
    assert mistakes(ours.replace("OWN", "{id: 1}")) == [
        f"17 {here}.all.zero: unit 's' does not fit here; use rad, mrad, deg, turn"
    ]
    assert mistakes(theirs.replace("OWN", "{id: 1, zero: 1 s}")) == [
        f"18 {here}.elbow.zero: unit 's' does not fit here; use rad, mrad, deg, turn"
    ]


# --- what a real joint must have, and must not ------------------------------------------------------


def test_a_real_joint_has_limits_of_speed_and_effort(mistakes):
    rig = RIG.replace("{velocity: 9, effort: 9}", "{lower: -1}")
    said = "joint 'elbow' is behind driver 'odrive' and has no limit of {}; give it one"
    assert mistakes(REAL, rig=rig) == [f"10 joints.elbow.limits: {said.format(key)}" for key in ("velocity", "effort")]


def test_a_mistake_in_limits_is_not_taken_for_missing_ones(mistakes):
    rig = RIG.replace("{velocity: 9, effort: 9}", "{velocity: 9, effort: 9, residual_energy: 0}")
    assert mistakes(REAL, rig=rig) == ["11 joints.all.limits.residual_energy: must be above 0 J, is 0 J"]


def test_a_limit_on_a_residual_needs_the_twin(mistakes):
    rig = RIG.replace("{velocity: 9, effort: 9}", "{velocity: 9, effort: 9, shadow_effort: 1}")
    said = "compares with the simulated twin of joint '{}', and the rig has none; add --shadow, or guard.shadow: {{}}"
    found = mistakes(REAL, rig=rig)
    assert f"11 joints.all.limits.shadow_effort: {said.format('elbow')}" in found


def test_mistakes_in_the_settings_of_twins(mistakes):
    rig = RIG.replace("{velocity: 9, effort: 9}", "{velocity: 9, effort: 9, shadow_slip: 0.1}")
    for text, said in {
        "{bandwidth: 0}": ".bandwidth: must be above 0 Hz, is 0 Hz",
        "{window: 1 m}": ".window: unit 'm' does not fit here; use s, ms, us, min, h",
        "{widow: 1}": ": unknown key 'widow'; did you mean 'window'?",
        "yes": ": expected a mapping, got 'yes'",
    }.items():
        assert mistakes(f"guard: {{shadow: {text}}}\n{REAL}", rig=rig) == [f"13 guard.shadow{said}"]


def test_a_load_motor_adds_nothing_to_what_its_joint_lacks(mistakes):
    rig = RIG.replace("{velocity: 9, effort: 9}", "{velocity: 9}")
    load = f"{{name: load, type: odrive, {BUS.replace('a}', 'b}')}, loads: {{elbow: {{id: 2, effort: 3}}}}}}"
    assert len(mistakes(f"{REAL[:-2]}, {load}]\n", rig=rig)) == 1


def test_a_real_joint_is_not_latched(mistakes):
    said = "joint 'elbow' is behind driver 'odrive'; a real joint is not latched, take it out"
    assert mistakes(f"  elbow: {{latched: true}}\n{REAL}") == [f"13 joints.elbow.latched: {said}"]


def test_stops_of_a_real_joint_are_those_of_the_emulated_one(tmp_path):
    (tmp_path / "rig.yaml").write_text(f"{RIG}  elbow: {{stops: {{upper: 2}}}}\n{REAL}")
    assert read_rig(tmp_path / "rig.yaml").joints["elbow"].stops == ((1.0, 2.0),)


@pytest.mark.parametrize("do", ["latch", "unlatch", "brake, effort: 2", "unbrake"])
def test_an_event_cannot_hold_a_real_joint(mistakes, do):
    events = f"events:\n  - {{do: {do}, of: elbow, at: 1}}\n  - {{do: latch, of: lift, at: 2}}\n"
    assert mistakes(REAL + events) == [
        "15 events[0].of: joint 'elbow' is real and follows its measurement; name another one"
    ]


def test_a_limit_of_temperature_may_stand_at_a_joint_that_is_simulated(tmp_path):
    """Nothing measures it there, so nothing is held: a rig is the same with its drives and without."""
    (tmp_path / "rig.yaml").write_text(RIG.replace("effort: 9", "effort: 9, temperature: 60") + REAL)
    for overrides in ([], ["drivers=[]"]):
        joints = load_rig(tmp_path / "rig.yaml", overrides).spec.joints
        bounds = {name: joint.limits["temperature"] for name, joint in joints.items() if name[:4] != "ball"}
        assert bounds == dict.fromkeys(("shoulder", "elbow", "lift", "swing"), 60.0)


# --- time ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("realtime", "message"),
    [
        ("no", "realtime: real motors run in real time; take 'realtime: no' out"),
        ("false", "realtime: real motors run in real time; take 'realtime: false' out"),
        ("{rate: 2}", "realtime.rate: real motors run in real time; take 'rate' out"),
        ("{rate: 0.5, overrun: skip}", "realtime.rate: real motors run in real time; take 'rate' out"),
    ],
)
def test_real_motors_need_real_time(mistakes, realtime, message):
    assert mistakes(f"{REAL}schedule: {{realtime: {realtime}}}\n") == [f"14 schedule.{message}"]
    override = f"schedule.realtime={realtime}"
    assert mistakes(REAL, override) == [f"--set {override}: {message.split(': ', 1)[1]}"]


@pytest.mark.parametrize("realtime", ["", "yes", "{rate: 1}", "strict", "{trigger: {file: rig.yaml}}"])
def test_real_time_settings_for_real_motors(tmp_path, realtime):
    (tmp_path / "rig.yaml").write_text(f"{RIG}{REAL}schedule: {{realtime: {realtime}}}\n")
    pacing = load_rig(tmp_path / "rig.yaml").spec.schedule.pacing
    assert pacing.rate == 1.0
    assert pacing.overrun == ("catch_up" if realtime else "skip")  # late commands are no good


def test_a_bus_without_the_capacity_for_two_families(mistakes):
    bus = "bus: {interface: virtual, channel: a, fd: true}"
    one = f"{{type: odrive, {bus}, joints: {{elbow: {{id: 1}}}}}}"
    two = f"{{name: load, type: moteus, {bus}, loads: {{elbow: {{id: 2, effort: 3}}}}}}"
    message = "drivers 'odrive', 'load' on virtual a need 1.77 times the capacity of the bus together"
    assert mistakes(f"drivers: [{one}, {two}]\nschedule: {{step: 900 us}}\n") == [f"13 drivers[1]: {message}; {SLOW}"]


@pytest.mark.parametrize(
    ("line", "step", "message"),
    [
        ("channel: a", "50 us", "1 drive every 0.05 ms need 14.1 times the capacity of the bus"),
        ("channel: a, bitrate: 125 kbit/s", "1 ms", "1 drive every 1 ms need 5.64 times the capacity of the bus"),
    ],
)
def test_a_bus_without_the_capacity_for_a_cycle(mistakes, line, step, message):
    text = driver(f"bus: {{interface: virtual, {line}}}", ELBOW)
    assert mistakes(f"{text}schedule: {{step: {step}}}\n") == [f"13 drivers[0]: {message}; {SLOW}"]


def test_what_stops_a_run_with_real_motors(mistakes):
    guard = "guard: {deceleration: 0, watchdog: 3 ms, stale: 1 us, estop: {pressed: x}}\n"
    assert mistakes(REAL + guard) == [
        "14 guard.deceleration: must be above 0, is 0",
        "14 guard.estop: give at least one of 'key', 'file' and a message ('interface', 'channel' and 'id')",
        "14 guard.stale: must be at least one step (1 ms), is 1 us",
        "14 guard.watchdog: must be at least 5 steps (5 ms), is 3 ms",
    ]


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("deceleration=5 m", "unit 'm' does not fit here; use rad/s^2, deg/s^2, turn/s^2, m/s^2"),
        ("deceleration=fast", "expected a number, got 'fast'"),
        ("watchdog=0", "must be above 0 s, is 0 s"),
        ("watchdog=4.9 ms", "must be at least 5 steps (5 ms), is 4.9 ms"),
        ("estop=5", "expected a mapping, got 5"),
        ("estop={key: ab}", "'key' is 'ab'; give space, esc or one ASCII character"),
        ("estop={interface: virtual, id: 1}", "a message needs all of 'interface', 'channel' and 'id'"),
        (
            "estop={file: x, released: '1'}",
            "'pressed' and 'released' are '1' and '1'; give one character each, not the same",
        ),
        ("estop={interface: virtual, channel: a, id: -1}", "must be at least 0, is -1"),
    ],
)
def test_a_mistake_about_how_a_run_stops(mistakes, override, message):
    assert mistakes(REAL, f"guard.{override}") == [f"--set guard.{override}: {message}"]
