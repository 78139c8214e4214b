"""The schedule as `cosim check` prints it."""

import re
from pathlib import Path

import pytest

from tests.rig.schedule_helpers import CAN, HOLD

pytestmark = pytest.mark.usefixtures("four_cpus")

ORDERED = "  each tick of 1 ms: read → hold → guard → write → step → publish"


RUN = "  step: rk4, 1 per tick; run of 0.4 s"


@pytest.fixture
def check_lines(command):
    """The lines of `cosim check` about controllers and time."""

    def check(schedule="", controller=""):
        text = command.rig.replace(HOLD, HOLD + controller).replace("duration: 0.4 s", "duration: 0.4 s" + schedule)
        Path("rig.yaml").write_text(text)
        code, out, err = command("check", "rig.yaml")
        assert (code, err) == (0, [])
        about = re.compile(r"  (controller|each tick|step|deadlines|real time)")
        return [line for line in out.splitlines() if about.match(line)]

    return check


def test_check_prints_the_order_of_the_tasks(check_lines):
    assert check_lines() == ["  controller hold: pid, every 1 ms", ORDERED, RUN]
    lines = check_lines(", step: 500 us, order: [write, read, controllers, guard, step, publish]")
    assert lines[1] == "  each tick of 500 us: write → read → hold → guard → step → publish"


def test_check_prints_the_times_of_a_controller(check_lines):
    keys = ", period: 2 ms, phase: 1 ms, deadline: 400 us, fallback: {type: pd_gravity, kp: 3, kd: 1}"
    (line, *rest) = check_lines(", deadlines: {step: 900 us, read: 0.3 ms}", keys)
    assert line == "  controller hold: pid, every 2 ms, from 1 ms, done within 400 us, fallback pd_gravity"
    assert rest == [ORDERED, RUN, "  deadlines: read 300 us, step 900 us"]


def test_check_puts_controllers_in_their_places(command):
    rig = command.rig.replace("  bodies:", "  bodies:\n    - {name: cart, type: prismatic, mass: 1 kg, parent: base}")
    rig = rig.replace(
        "schedule:", "  - {name: push, type: pid, kp: 1, ki: 0, kd: 1, joints: [cart], priority: 1}\nschedule:"
    )
    Path("rig.yaml").write_text(rig.replace(HOLD, HOLD + ", joints: [hinge]"))
    code, out, _ = command("check", "rig.yaml")
    assert code == 0
    assert "  each tick of 1 ms: read → push → hold → guard → write → step → publish" in out.splitlines()
    assert [line.split()[1] for line in out.splitlines() if line.startswith("  controller")] == ["hold:", "push:"]


def test_check_of_a_rig_without_controllers(command):
    Path("rig.yaml").write_text(re.sub(r"controllers:\n.*\n", "", command.rig))
    _, out, _ = command("check", "rig.yaml")
    assert "  each tick of 1 ms: read → guard → write → step → publish" in out.splitlines()


CATCH_UP = "overruns caught up with, at most 10 ticks; warm-up 100 ms; thread priority 80"


CAN_TRIGGER = "external trigger message 0x81 on virtual a, timeout 20 ms"


@pytest.mark.parametrize(
    ("realtime", "line"),
    [
        ("yes", f"rate 1, {CATCH_UP}"),
        ("strict", f"rate 1, {CATCH_UP}, strict"),
        ("{cpu: 1, spin: 50 us, strict: true}", f"rate 1, {CATCH_UP}, CPU 1, spinning the last 50 us, strict"),
        ("{cpu: 0}", f"rate 1, {CATCH_UP}, CPU 0"),
        ("{rate: 0.3}", f"scaled to rate 0.3, a tick every 3.333333 ms of the clock, {CATCH_UP}"),
        (
            "{max_consecutive: 1, warm_up: 0, priority: 5}",
            "rate 1, overruns caught up with, at most 1 tick; no warm-up; thread priority 5",
        ),
        ("{overrun: skip}", "rate 1, missed periods skipped; warm-up 100 ms; thread priority 80"),
        (
            "{overrun: stop, warm_up: 1}",
            "rate 1, stopped by 10 late ticks in a row; warm-up 1 s; thread priority 80",
        ),
        (
            "{overrun: stop, max_consecutive: 1}",
            "rate 1, stopped by the first late tick; warm-up 100 ms; thread priority 80",
        ),
        (f"{{trigger: {{{CAN}, id: 0x81, timeout: 20 ms}}}}", f"{CAN_TRIGGER}, {CATCH_UP}"),
        ("{trigger: {file: tick}}", f"external trigger tick, timeout 100 ms, {CATCH_UP}"),
    ],
)
def test_check_prints_the_real_time_settings(check_lines, realtime, line):
    assert check_lines(f", realtime: {realtime}")[2:] == [RUN, f"  real time: {line}"]


def test_check_prints_no_real_time_settings_without_real_time(check_lines):
    assert check_lines(", realtime: no")[-1] == RUN
