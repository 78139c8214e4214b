"""The schedule as `cosim check` prints it."""

import re
from pathlib import Path

import pytest

pytestmark = pytest.mark.usefixtures("four_cpus")
HOLD = "{name: hold, type: pid, kp: 50, ki: 10, kd: 5"


@pytest.fixture
def lines(command):
    """lines(rig): what `cosim check` prints about controllers and time."""

    def check(rig):
        Path("rig.yaml").write_text(rig)
        out = command.prints("check", "rig.yaml")
        about = re.compile(r"  (controller|each tick|step|deadlines|real time)")
        return [line for line in out.splitlines() if about.match(line)]

    return check


@pytest.mark.parametrize(
    ("schedule", "controller"),
    [
        ("", ""),
        (", step: 500 us, order: [write, read, controllers, guard, step, publish]", ""),
        (
            ", deadlines: {step: 900 us, read: 0.3 ms}",
            ", period: 2 ms, phase: 1 ms, deadline: 400 us, fallback: {type: pd_gravity, kp: 3, kd: 1}",
        ),
        *(
            (f", realtime: {realtime}", "")
            for realtime in (
                "no",
                "yes",
                "strict",
                "{cpu: 1, spin: 50 us, strict: true}",
                "{cpu: 0}",
                "{rate: 0.3}",
                "{max_consecutive: 1, warm_up: 0, priority: 5}",
                "{overrun: skip}",
                "{overrun: stop, warm_up: 1}",
                "{overrun: stop, max_consecutive: 1}",
                "{trigger: {interface: virtual, channel: a, id: 0x81, timeout: 20 ms}}",
                "{trigger: {file: tick}}",
            )
        ),
    ],
)
def test_check_prints_the_schedule(command, lines, said, schedule, controller):
    rig = command.rig.replace(HOLD, HOLD + controller).replace("duration: 0.4 s", "duration: 0.4 s" + schedule)
    said(lines(rig))


def test_check_puts_controllers_in_their_places(command, lines, said):
    rig = command.rig.replace("  bodies:", "  bodies:\n    - {name: cart, type: prismatic, mass: 1 kg, parent: base}")
    rig = rig.replace(
        "schedule:", "  - {name: push, type: pid, kp: 1, ki: 0, kd: 1, joints: [cart], priority: 1}\nschedule:"
    )
    said(lines(rig.replace(HOLD, HOLD + ", joints: [hinge]")))
    said(lines(re.sub(r"controllers:\n.*\n", "", command.rig)))
