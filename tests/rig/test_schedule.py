"""The schedule of a rig: order, deadlines, real time, phases, priorities, fallbacks; what `cosim check` tells of it."""

import os
import re
from pathlib import Path

import pytest

from cosim.errors import SourceLocation
from cosim.rig.reading.schema import Reading
from cosim.rig.sections.controllers import by_priority, read_controllers
from cosim.rig.sections.rig_spec import read_rig
from cosim.tick.tick_model import ORDER
from cosim.timing.pacing import Pacing, Trigger
from tests.rig.schedule_helpers import CAN

DOCS = (Path(__file__).parents[2] / "docs" / "reference" / "rig" / "schedule.md").read_text(encoding="utf-8")


TASKS = "read, controllers, guard, write, step, publish"


pytestmark = pytest.mark.usefixtures("four_cpus")


@pytest.fixture
def refused(rigs):
    """The mistakes of a schedule, without the place of the section."""

    def reported(text):
        found = rigs.mistakes(f"{rigs.mechanism}schedule: {text}\n")
        assert all(line.startswith("rig.yaml:8 schedule") for line in found)
        return [line.removeprefix("rig.yaml:8 schedule.") for line in found]

    return reported


# --- what is read ---------------------------------------------------------------------------------


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
    assert b.fallback.module.__name__ == "cosim.controllers.pd"
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


def test_the_examples_of_the_docs_are_read_without_a_mistake(rigs):
    examples = [text for text in re.findall(r"```yaml\n(.*?)```", DOCS, flags=re.DOTALL) if "realtime:" in text]
    assert len(examples) >= 2
    for text in examples:
        assert rigs.read(rigs.mechanism + text).schedule.pacing is not None


# --- mistakes -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("order", "message"),
    [
        ("read", "order: expected a list of names, got 'read'"),
        ("[read, 3]", "order[1]: expected text, got 3; put it in quotes"),
        (
            "[read, controllers, gaurd, write, step, publish]",
            "order[2]: unknown task 'gaurd'; did you mean 'guard'?",
        ),
        (
            "[read, controllers, guard, write, step, publish, tell]",
            f"order[6]: unknown task 'tell'; known: {TASKS}",
        ),
        (
            "[read, controllers, guard, write, step, read, publish]",
            "order[5]: 'read' is in the order already; each task runs once, take this one out",
        ),
        (
            "[read, controllers, guard, write, step]",
            f"order: missing the task 'publish'; give each of {TASKS} once",
        ),
        (
            "[read, controllers, guard]",
            f"order: missing the tasks 'write', 'step', 'publish'; give each of {TASKS} once",
        ),
        (
            "[controllers, guard, read, write, step, publish]",
            "order: 'read' must come before 'controllers', which use the measurement; move it up",
        ),
        (
            "[write, step, read, controllers, guard, publish]",
            "order: 'read' must come before 'step', which advances the measured state; move it up",
        ),
        (
            "[read, controllers, guard, step, write, publish]",
            "order: 'write' must come before 'step', in which the drives apply the command; move it up",
        ),
        (
            "[publish, read, controllers, guard, write, step]",
            "order: 'publish' must come after 'guard', which makes the final command; move it down",
        ),
        (
            "[read, controllers, write, guard, step, publish]",
            "order: 'guard' must come directly after 'controllers', so that every command is checked; move it there",
        ),
        (
            "[guard, read, controllers, write, step, publish]",
            "order: 'guard' must come directly after 'controllers', so that every command is checked; move it there",
        ),
    ],
)
def test_a_mistake_in_the_order(refused, order, message):
    assert refused(f"{{order: {order}}}") == [message]


def test_every_violated_rule_is_reported(refused):
    found = refused("{order: [step, publish, guard, controllers, read, write]}")
    assert [re.findall(r"'(\w+)'", line) for line in found] == [
        ["read", "controllers"],
        ["read", "step"],
        ["write", "step"],
        ["publish", "guard"],
        ["guard", "controllers"],
    ]


SHORT = "is less than 50 us, too short for real time; use a schedule.step of"


NO_EFFECT = "has no effect with an external trigger; remove"


@pytest.mark.parametrize(
    ("realtime", "message"),
    [
        *(
            (text, f": expected strict, yes, no or a mapping, got {shown}")
            for text, shown in (
                ("on", "'on'"),
                ("Yes", "'Yes'"),
                ("1", "1"),
                ("0", "0"),
                ("1.0", "1.0"),
                ("[strict]", "a list"),
            )
        ),
        ("{strct: true}", ": unknown key 'strct'; did you mean 'strict'?"),
        ("{strict: on}", ".strict: expected true, false, yes or no, got 'on'"),
        ("{rate: 0}", ".rate: must be at least 0.001, is 0"),
        ("{rate: 1001}", ".rate: must be at most 1000, is 1001"),
        ("{overrun: drop}", ".overrun: expected one of skip, catch_up, stop; got 'drop'"),
        ("{overrun: skip, max_consecutive: 10}", ".max_consecutive: has no effect with overrun: skip; remove it"),
        ("{max_consecutive: 0}", ".max_consecutive: must be at least 1, is 0"),
        ("{warm_up: 2 min}", ".warm_up: must be at most 60 s, is 120 s"),
        ("{priority: 100}", ".priority: must be at most 99, is 100"),
        ("{priority: 0}", ".priority: must be at least 1, is 0"),
        ("{cpu: -1}", ".cpu: must be at least 0, is -1"),
        ("{cpu: 4}", ".cpu: there is no CPU 4; this machine has 4 of them, 0 to 3"),
        ("{spin: 20 ms}", ".spin: must be at most 0.01 s, is 0.02 s"),
        ("{trigger: 3}", ".trigger: expected a mapping, got 3"),
        (
            "{trigger: {}}",
            ".trigger: give the source of the trigger: a 'file', or 'interface' and 'channel' of a CAN bus",
        ),
        (
            "{trigger: {file: ''}}",
            ".trigger: give the source of the trigger: a 'file', or 'interface' and 'channel' of a CAN bus",
        ),
        (
            "{trigger: {interface: virtual}}",
            ".trigger: missing key 'channel'; a CAN bus has both 'interface' and 'channel'",
        ),
        ("{trigger: {channel: a}}", ".trigger: missing key 'interface'; a CAN bus has both 'interface' and 'channel'"),
        (
            f"{{trigger: {{file: tick, {CAN}}}}}",
            ".trigger: both 'file' and 'interface' are given; keep the file or the CAN bus",
        ),
        (
            "{trigger: {file: tick, channel: a}}",
            ".trigger: both 'file' and 'channel' are given; keep the file or the CAN bus",
        ),
        ("{trigger: {file: tick, id: 128}}", ".trigger.id: has no effect with a file; remove it"),
        (f"{{trigger: {{{CAN}, id: 0x20000000}}}}", ".trigger.id: must be at most 536870911, is 536870912"),
        ("{trigger: {file: tick, timeout: 0}}", ".trigger.timeout: must be above 0 s, is 0 s"),
        ("{trigger: {file: tick, tmeout: 1}}", ".trigger: unknown key 'tmeout'; did you mean 'timeout'?"),
        ("{rate: 2, trigger: {file: tick}}", f".rate: {NO_EFFECT} 'rate' or 'trigger'"),
        ("{spin: 10 us, trigger: {file: tick}}", f".spin: {NO_EFFECT} 'spin' or 'trigger'"),
        ("{rate: 1000, trigger: {file: tick}}", f".rate: {NO_EFFECT} 'rate' or 'trigger'"),
        ("{rate: 21}", f".rate: 47.619 us from tick to tick {SHORT} 1.05 ms at least, or a rate of 20 at most"),
        ("yes, step: 20 us", f": 20 us from tick to tick {SHORT} 50 us at least, or a rate of 0.4 at most"),
        (
            "{rate: 0.5}, step: 20 us",
            f".rate: 40 us from tick to tick {SHORT} 25 us at least, or a rate of 0.4 at most",
        ),
        ("{trigger: {file: tick}}, step: 20 us", f": 20 us from tick to tick {SHORT} 50 us at least"),
    ],
)
def test_a_mistake_in_real_time(refused, realtime, message):
    assert refused(f"{{realtime: {realtime}}}") == [f"realtime{message}"]


def test_a_machine_with_one_cpu(refused, monkeypatch):
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert refused("{realtime: {cpu: 1}}") == ["realtime.cpu: there is no CPU 1; this machine has CPU 0 only"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("deadlines: 3", "deadlines: expected a mapping, got 3"),
        (
            "deadlines: {controllers: 1 ms}",
            "deadlines: unknown key 'controllers'; known: read, guard, write, step, publish",
        ),
        ("deadlines: {guard: 0}", "deadlines.guard: must be above 0 s, is 0 s"),
        ("deadlines: {read: 1 V}", "deadlines.read: unit 'V' does not fit here; use s, ms, us, min, h"),
        ("deadlines: {write: 1001 us}", "deadlines.write: must be at most the 1 ms from tick to tick, is 1.001 ms"),
        (
            "realtime: {rate: 3}, deadlines: {publish: 334 us}",
            "deadlines.publish: must be at most the 333.333 us from tick to tick, is 334 us",
        ),
        ("blend: -1", "blend: must be at least 0 s, is -1 s"),
        ("blend: 2 min", "blend: must be at most 60 s, is 120 s"),
    ],
)
def test_a_mistake_in_deadlines_and_blend(refused, text, message):
    assert refused(f"{{{text}}}") == [message]


NO_MULTIPLE = "is no whole multiple of the step of 1 ms; nearest:"


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ("period: 4 ms, phase: 2.5 ms", f".phase: 2.5 ms {NO_MULTIPLE} 2 ms or 3 ms"),
        ("period: 4 ms, phase: 3.5 ms", f".phase: 3.5 ms {NO_MULTIPLE} 3 ms"),
        ("phase: 0.2 ms", f".phase: 200 us {NO_MULTIPLE} 0 us"),
        ("period: 2 ms, phase: 200 us", f".phase: 200 us {NO_MULTIPLE} 0 us or 1 ms"),
        ("period: 4 ms, phase: 4 ms", ".phase: must be below the period of 4 ms, is 4 ms"),
        ("phase: 1 ms", ".phase: must be below the period of 1 ms, is 1 ms"),
        ("period: 2 ms, phase: 2.5 ms", ".phase: must be below the period of 2 ms, is 2.5 ms"),
        ("phase: -1 ms", ".phase: must be at least 0 s, is -0.001 s"),
        # a phase is not judged by a period that is wrong
        ("period: 2.5 ms, phase: 7 ms", f".period: 2.5 ms {NO_MULTIPLE} 2 ms or 3 ms"),
        ("period: 200 us", f".period: 200 us {NO_MULTIPLE} 1 ms"),
        ("deadline: 0", ".deadline: must be above 0 s, is 0 s"),
        ("deadline: 1.2 ms", ".deadline: must be at most the 1 ms from tick to tick, is 1.2 ms"),
        ("period: 4 ms, deadline: 2 ms", ".deadline: must be at most the 1 ms from tick to tick, is 2 ms"),
        *(
            (
                f"name: {name}",
                f".name: controller '{name}': the name is reserved for a task of the tick; give this one another name",
            )
            for name in ("read", "controllers", "guard", "write", "step", "publish", "tick", "latency", "end_to_end")
        ),
        ("priority: 1.5", ".priority: expected a whole number, got 1.5"),
        ("priority: high", ".priority: expected a number, got 'high'"),
        ("fallback: pd", ".fallback: expected a mapping, got 'pd'"),
        ("fallback: {}", ".fallback: missing key 'type'; known: none, pd"),
        ("fallback: {type: pdd}", ".fallback.type: unknown controller 'pdd'; did you mean 'pd'?"),
        ("fallback: {type: pd}", ".fallback: missing key 'kp'"),
        ("fallback: {type: pd, kp: [1, 2]}", ".fallback.kp: expected 3 numbers (one per joint), got 2"),
        ("fallback: {type: pd, kp: 1, kpp: 1}", ".fallback: unknown key 'kpp'; did you mean 'kp'?"),
        *(
            (
                f"fallback: {{type: none, {key}: 1}}",
                f".fallback.{key}: a fallback has a type and its parameters only; take it out",
            )
            for key in ("name", "joints", "period", "phase", "deadline", "priority", "trajectory", "fallback")
        ),
    ],
)
def test_a_mistake_in_a_controller(rigs, keys, message):
    text = f"{rigs.mechanism}controllers: [{{type: none, {keys}}}]\n"
    assert rigs.mistakes(text) == [f"rig.yaml:8 controllers[0]{message}"]


def test_times_of_controllers_wait_for_a_step_that_is_right(rigs):
    text = rigs.mechanism + "controllers: [{type: none, period: 2.5 ms, phase: 9 ms, deadline: 3 ms}]\n"
    assert rigs.mistakes(text + "schedule: {step: 0, deadlines: {read: 9 ms}, realtime: yes}\n") == [
        "rig.yaml:9 schedule.step: must be at least 1e-06 s, is 0 s"
    ]
