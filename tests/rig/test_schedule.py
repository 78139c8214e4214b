"""The schedule of a rig: order, deadlines, real time, phases, priorities, fallbacks; what `cosim check` tells of it."""

import os
from pathlib import Path

import pytest

from cosim.core.errors import SourceLocation
from cosim.rig.reading.schema import Reading
from cosim.rig.sections.controllers import by_priority, read_controllers
from cosim.rig.sections.rig_spec import read_rig
from cosim.simulation.loop.pacing import Pacing, Trigger
from cosim.simulation.tick.tick_model import ORDER

TASKS = "read, controllers, guard, write, step, publish"


pytestmark = pytest.mark.usefixtures("four_cpus")


def test_without_a_word_a_rig_goes_as_fast_as_possible_in_the_usual_order(rigs):
    spec = rigs.read(rigs.mechanism).schedule
    assert spec.order == ORDER == tuple(TASKS.split(", "))
    assert spec.pacing is None
    assert spec.rate == 1.0
    assert (spec.blend, dict(spec.deadlines)) == (0.5, {})


def test_order_blend_and_deadlines(schedule):
    spec = schedule(
        "{order: [write, read, controllers, guard, step, publish], blend: 20 ms, step: 2 ms,"
        " deadlines: {read: 300 us, guard: 1 ms, write: 1500 us, step: 2 ms, publish: 1.9 ms}}"
    )
    assert spec.order == ("write", "read", "controllers", "guard", "step", "publish")
    assert spec.blend == 0.02
    expected = {"read": 300_000, "guard": 1_000_000, "write": 1_500_000, "step": 2_000_000, "publish": 1_900_000}
    assert spec.deadlines == expected


@pytest.mark.parametrize(
    "order",
    [
        "write, read, controllers, guard, step, publish",
        "read, controllers, guard, publish, write, step",
        "read, write, step, controllers, guard, publish",
        "read, write, controllers, guard, publish, step",
    ],
)
def test_other_orders_that_keep_the_rules(schedule, order):
    assert schedule(f"{{order: [{order}]}}").order == tuple(order.split(", "))


@pytest.mark.parametrize(
    ("words", "pacing"),
    [
        *((word, None) for word in ("no", "false", "null", "")),
        *((word, Pacing()) for word in ("yes", "true", "{}")),
        ("strict", Pacing(strict=True)),
        ("{strict: true}", Pacing(strict=True)),
        ("{strict: false}", Pacing()),
        ("{rate: 0.1}", Pacing(rate=0.1)),
        ("{rate: 20}", Pacing(rate=20.0)),
        ("{overrun: skip}", Pacing(overrun="skip")),
        ("{overrun: stop, max_consecutive: 3}", Pacing(overrun="stop", max_consecutive=3)),
        ("{max_consecutive: 2}", Pacing(max_consecutive=2)),
        ("{warm_up: 20 ms}", Pacing(warm_up=0.02)),
        ("{priority: 99}", Pacing(priority=99)),
        ("{cpu: 3}", Pacing(cpu=3)),
        ("{spin: 5 ms}", Pacing(spin=0.005)),
        ("{trigger: {interface: virtual, channel: a}}", Pacing(trigger=Trigger(interface="virtual", channel="a"))),
        (
            "{rate: 1, spin: 0, trigger: {interface: virtual, channel: a, id: 0x1FFFFFFF, timeout: 10 ms}}",
            Pacing(trigger=Trigger(interface="virtual", channel="a", id=0x1FFFFFFF, timeout=0.01)),
        ),
        ("{trigger: {file: /dev/tick, timeout: 1}}", Pacing(trigger=Trigger(file="/dev/tick", timeout=1.0))),
    ],
)
def test_real_time(schedule, words, pacing):
    spec = schedule(f"{{realtime: {words}}}")
    assert spec.pacing == pacing
    assert spec.rate == (pacing.rate if pacing else 1.0)


def test_the_file_of_a_trigger_is_relative_to_the_rig(rigs, tmp_path):
    (tmp_path / "bench").mkdir()
    Path("bench/rig.yaml").write_text(f"{rigs.mechanism}schedule: {{realtime: {{trigger: {{file: tick}}}}}}\n")
    pacing = read_rig("bench/rig.yaml").schedule.pacing
    assert pacing is not None and pacing.trigger == Trigger(file=str(Path("bench/tick")))


def test_overrides_of_real_time(schedule):
    assert schedule("{}", "schedule.realtime=strict").pacing == Pacing(strict=True)
    assert schedule("{}", "schedule.realtime.rate=2").pacing == Pacing(rate=2.0)
    assert schedule("{realtime: yes}", "schedule.realtime=no").pacing is None


def test_the_shortest_period_is_of_the_clock(schedule):
    assert schedule("{step: 50 us, realtime: yes}").step_ns == 50_000
    assert schedule("{step: 1 us, realtime: {rate: 0.02}}").step_ns == 1_000
    assert schedule("{step: 1 us}").step_ns == 1_000


def test_deadlines_are_of_the_clock(schedule):
    assert schedule("{realtime: {rate: 0.5}, deadlines: {write: 2 ms}}").deadlines == {"write": 2_000_000}


CONTROLLERS = """\
controllers:
  - {name: a, type: none, joints: [shoulder]}
  - {name: b, type: pd, kp: 1, joints: [elbow], period: 3 ms, phase: 2 ms, deadline: 400 us, priority: 7,
     fallback: {type: pd, kp: [5], kd: 2}}
  - {name: c, type: none, joints: [lift], period: 2, phase: 0, priority: -1}
"""


def test_phase_deadline_priority_and_fallback(rigs):
    a, b, c = rigs.read(rigs.mechanism + CONTROLLERS).controllers
    assert (a.phase, a.deadline_ns, a.priority, a.fallback) == (0, None, 0, None)
    assert (b.ticks, b.phase, b.deadline_ns, b.priority) == (3, 2, 400_000, 7)
    assert b.fallback.module.__name__ == "cosim.plugins.controllers.pd"
    assert (b.fallback.params.kp, b.fallback.params.kd) == ((5.0,), (2.0,))
    assert b.plugin.params.kp == (1.0,)
    assert (c.phase, c.priority) == (0, -1)


def test_controllers_run_by_falling_priority_and_then_as_in_the_file(rigs):
    same = CONTROLLERS.replace("priority: -1", "priority: 0")
    assert [c.name for c in by_priority(rigs.read(rigs.mechanism + CONTROLLERS).controllers)] == ["b", "a", "c"]
    assert [c.name for c in by_priority(rigs.read(rigs.mechanism + same).controllers)] == ["b", "a", "c"]
    first = CONTROLLERS.replace("priority: -1", "priority: 8")
    assert [c.name for c in by_priority(rigs.read(rigs.mechanism + first).controllers)] == ["c", "b", "a"]


def test_a_phase_may_be_rounded_by_binary_fractions(rigs):
    controller = "controllers: [{type: none, period: 0.7, phase: 0.3}]\nschedule: {step: 0.1}\n"
    (found,) = rigs.read(rigs.mechanism + controller).controllers
    assert (found.ticks, found.phase) == (7, 3)


@pytest.mark.parametrize(("rate", "most"), [(0.5, "2 ms"), (4.0, "250 us"), (3.0, "333.333 us")])
def test_the_deadline_of_a_controller_is_at_most_a_step_of_the_clock(rigs, rate, most):
    reading = Reading(lambda path: SourceLocation("rig.yaml"), [])
    for deadline in (most, "2.1 ms"):
        read_controllers([{"type": "none", "deadline": deadline}], None, set(), set(), 1_000_000, reading, rate)
    assert [error.what for error in reading.errors] == [f"must be at most the {most} from tick to tick, is 2.1 ms"]


def test_a_machine_with_one_cpu(rigs, said, monkeypatch):
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    said(rigs.mistakes(f"{rigs.mechanism}schedule: {{realtime: {{cpu: 1}}}}\n"))
