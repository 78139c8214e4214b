"""What real joints are about to do is known before they are switched on, and decides whether they are."""

from __future__ import annotations

import io
import itertools

import numpy as np
import pytest

from cosim.cli.confirm import MotorConsent
from cosim.control.bumpless_start import BumplessStart
from cosim.errors import InputError, RunError
from cosim.execution.python_engine import PythonEngine
from cosim.execution.rest import STILL
from cosim.execution.scheduler import Scheduler, SchedulerState
from cosim.hardware.driver_group import DriverGroup
from cosim.rig.consent import LONGEST_WAIT, PAUSE, Agreement, agree
from cosim.rig.rig import load_rig
from cosim.tick.virtual_plant import VirtualPlant
from cosim.types import AddedTurns, Limits
from cosim.units import TURN
from tests.cli.test_confirm import Terminal
from tests.kit.hardware import HardwareStub
from tests.kit.rigs import controller

RIG = """
mechanism:
  bodies:
    - {name: a, axis: [0, 0, 1], mass: 1, com: [0, 0, 0], inertia: [0.1, 0.1, 0.1]}
    - {name: w, type: continuous, axis: [0, 0, 1], mass: 1, com: [0, 0, 0], inertia: [0.1, 0.1, 0.1]}
joints: {all: {limits: {velocity: 20, effort: 100}}, a: {limits: {lower: -40, upper: 40}}}
drivers:
  - {type: moteus, bus: {interface: virtual, channel: none, fd: true}, joints: {a: {id: 1}, w: {id: 2}}}
controllers:
  - {name: arm, type: passthrough, kp: 10, kd: 1, trajectory: {type: sine, amplitude: 0.5, frequency: 1, ramp: 1 s}}
schedule: {step: 5 ms, duration: 2 s, realtime: true}
"""


class Moved(HardwareStub):
    """Drives of joints that stand where a hand has put them; each look is a new sample."""

    modes, joints = frozenset({"effort"}), ("a", "w")
    limits = Limits(*np.array([[-40.0, -40.0], [40.0, 40.0], [20.0, 20.0], [100.0, 100.0]]))

    def __init__(self):
        self.position, self.velocity, self.looks, self.log = [0.0, 0.0], [0.0, 0.0], 0, []
        self.added = [AddedTurns()] * 2

    def open(self):
        self.log.append("open")

    def enable(self, mode):
        self.log.append("enable")

    def read(self, out, deadline_ns):
        self.looks += 1
        out.position[:], out.velocity[:], out.t_ns = self.position, self.velocity, self.looks

    def write(self, cmd, deadline_ns):
        pass

    def added_turns(self):
        return self.added

    def stop(self):
        self.log.append("stop")

    close = stop


class Bench:
    """A prepared scheduler around such drives."""

    def __init__(self, folder, *overrides):
        (folder / "rig.yaml").write_text(RIG)
        (folder / "push.py").write_text(controller("effort = ops.array([p.size])"))
        self.rig, self.drives = load_rig(folder / "rig.yaml", overrides, interpret=True), Moved()
        self.ambiguous = ()
        self.scheduler = Scheduler(self._engine)
        self.scheduler.prepare()

    def _engine(self):
        group = DriverGroup(self.drives, np.array([0, 1]), real=True, ambiguous=self.ambiguous)
        return PythonEngine(self.rig.tick_model, VirtualPlant(self.rig.tick_model), [group])

    def unsure(self, *names):
        """Prepared again with drives that may have lost turns."""
        self.scheduler.close()
        self.ambiguous, self.scheduler = names, Scheduler(self._engine)
        self.scheduler.prepare()
        self.drives.log = []

    def refused(self, **keys):
        with pytest.raises(RunError) as caught:
            self.scheduler.arm(**keys)
        assert "enable" not in self.drives.log and self.scheduler.state is SchedulerState.READY
        return str(caught.value)


@pytest.fixture
def bench_of(tmp_path):
    made = []

    def make(*overrides):
        made.append(Bench(tmp_path, *overrides))
        return made[-1]

    yield make
    for bench in made:
        bench.scheduler.close()


def test_the_plan_says_of_each_joint_where_it_stands_and_how_far_it_goes_with_motors_off(bench_of):
    bench = bench_of()
    bench.drives.position = [1.0, 0.0]
    plan = bench.scheduler.plan(400)
    assert bench.drives.log == ["open"] and bench.scheduler.state is SchedulerState.READY
    a, w = plan.joints
    assert (a.joint, a.measured, a.reference, a.blend, a.turns) == ("a", 1.0, 0.0, 0.5, 0)
    assert (w.measured, w.reference, w.blend) == (0.0, 0.0, 0.0)
    run = bench.scheduler.engine.tick_model.loops[0].samples(5e-3, False)(401)
    assert (w.lowest, w.highest) == (run[0][:, 1].min(), run[0][:, 1].max())
    assert w.speed == np.abs(run[1][:, 1]).max()
    assert a.highest == 1.0 and a.lowest == w.lowest and a.speed > w.speed
    assert list(plan.lines()) == [
        "a is at 1 rad; its reference begins at 0 rad, is reached within 0.5 s; in all it goes from -0.5 rad to 1 rad,"
        " at up to 3.224 rad/s",
        "w is at 0 rad; its reference begins at 0 rad, where it stands; in all it goes from -0.5 rad to 0.5 rad,"
        " at up to 3.142 rad/s",
    ]


def test_the_references_of_the_run_are_those_of_the_plan(bench_of):
    bench = bench_of()
    bench.drives.position = [1.0, 5.0 * TURN + 0.2]
    plan = bench.scheduler.plan(60)
    bench.scheduler.arm(plan)
    start = BumplessStart.of(bench.scheduler.engine.view("bumpless_start"), 2)
    trajectory = bench.scheduler.engine.tick_model.loops[0].trajectory
    positions = np.array([start.reference(trajectory, k * 5e-3)["position"] for k in range(61)])
    for k, joint in enumerate(plan.joints):
        assert joint.lowest == pytest.approx(positions[:, k].min(), abs=1e-12)
        assert joint.highest == pytest.approx(positions[:, k].max(), abs=1e-12)


def test_the_plan_of_a_short_run_ends_with_it(bench_of):
    """The way to the trajectory takes 0.5 s, and its first extreme is later still."""
    bench = bench_of()
    bench.drives.position = [1.0, 0.0]
    whole, (short, w) = bench.scheduler.plan(400).joints[0], bench.scheduler.plan(20).joints
    assert "its reference begins at 0 rad, is not reached in this run of 0.1 s; in all it goes" in str(short)
    assert short.highest == 1.0 and whole.lowest < 0.0 < short.lowest < 1.0
    trajectory = bench.scheduler.engine.tick_model.loops[0].trajectory
    places = [trajectory.sample(5e-3 * k)["position"][1] for k in range(21)]
    assert (w.lowest, w.highest) == pytest.approx((min(places), max(places)), abs=1e-12)


def test_a_continuous_joint_takes_the_nearest_turn(bench_of):
    bench = bench_of()
    bench.drives.position = [0.0, 5.0 * TURN + 0.2]
    (_, w) = bench.scheduler.plan(0).joints
    assert (w.turns, w.reference) == (5, 5.0 * TURN) and not w.beyond_a_turn
    assert str(w).startswith("w is at 31.62 rad; its reference begins at 31.42 rad (+5 turns, the nearest one), is")
    bench.scheduler.arm()
    assert bench.scheduler.state is SchedulerState.ARMED


def test_more_than_a_turn_has_to_be_allowed(bench_of):
    bench = bench_of()
    bench.drives.position = [1.5 * TURN, 0.0]
    assert bench.refused() == (
        "joint 'a' is at 9.425 rad, 1.5 turns from the start of its trajectory at 0 rad; check its zero, move it within"
        " a turn by hand, or allow it with allow_turns (--allow-turns)"
    )
    bench.scheduler.arm(allow_turns=True)
    assert bench.scheduler.state is SchedulerState.ARMED


UNSURE = (
    "joint 'a' is at 0.3 rad if its drive has lost no whole turns without power: its limits have room for several;"
    " compare where it stands"
)


def test_a_drive_that_may_have_lost_turns_is_refused_until_its_position_is_confirmed(bench_of):
    bench = bench_of()
    bench.unsure("a")
    bench.drives.position = [0.3, 0.0]
    fix = "home it, or declare `turns: kept` of a drive that keeps its turns, or allow it with allow_turns"
    assert bench.refused() == f"{UNSURE}; {fix} (--allow-turns)"
    plan = bench.scheduler.plan()
    assert [joint.joint for joint in plan.confirm_turns] == ["a"]
    assert str(plan.joints[0]).startswith(
        "a is at 0.3 rad (if its drive has lost no whole turns without power); its reference begins at 0 rad,"
    )
    bench.scheduler.arm(plan, allow_turns=True)
    assert bench.scheduler.state is SchedulerState.ARMED


def test_all_joints_with_doubtful_turns_are_named(bench_of):
    bench = bench_of()
    bench.unsure("a", "w")
    bench.drives.position = [0.3, 0.1]
    assert bench.refused() == (
        "joints whose drives may have lost whole turns without power, as their limits have room for several: 'a' is at"
        " 0.3 rad, 'w' is at 0.1 rad; compare where they stand; home them, or declare `turns: kept` of drives that keep"
        " their turns, or allow it with allow_turns (--allow-turns)"
    )
    bench.unsure("w")
    bench.drives.position = [1.5 * TURN, 0.1]
    message = bench.refused()
    assert message.startswith(
        "joints are more than a turn from the starts of their trajectories: 'a' is at 9.425 rad, 1.5 turns from 0 rad;"
        " joints whose drives may have lost whole turns without power, as their limits have room for several: 'w' is at"
        " 0.1 rad; compare where they stand; home them"
    )
    with pytest.raises(RunError) as caught:
        agree(bench.scheduler, 100, consent_of("", yes=True)[0], False)
    assert "'a' is at" in str(caught.value) and "'w' is at" in str(caught.value)


def test_added_turns_are_in_the_plan_and_need_no_confirmation(bench_of):
    bench = bench_of()
    bench.drives.position, bench.drives.added = [0.82, 0.1], [AddedTurns(-1, -TURN), AddedTurns(2, 0.2)]
    a, w = map(str, bench.scheduler.plan().joints)
    assert a.startswith("a is at 0.82 rad (its drive reports 7.103 rad, 1 turn of the drive from there); its")
    assert w.startswith("w is at 0.1 rad (its drive reports -0.1 rad, 2 turns of the drive from there); its")
    bench.scheduler.arm()
    assert bench.scheduler.state is SchedulerState.ARMED


def test_a_place_outside_the_limits_after_turns_were_added_is_refused_with_the_numbers(bench_of):
    bench = bench_of("joints.a.limits={lower: -1, upper: 1, velocity: 20, effort: 100}")
    bench.drives.position, bench.drives.added = [2.0, 0.0], [AddedTurns(-1, -TURN), AddedTurns()]
    assert bench.refused(allow_turns=True) == (
        "joint 'a' is at 2 rad (its drive reports 8.283 rad, 1 turn of the drive from there) before the first command,"
        " outside its limits -1 to 1 rad; move it back by hand, or check its zero"
    )


def test_a_joint_that_has_moved_since_it_was_confirmed_is_not_switched_on(bench_of):
    bench = bench_of()
    plan = bench.scheduler.plan()
    bench.drives.position = [0.019, 0.0]
    bench.drives.position = [0.5, 0.0]
    assert (
        bench.refused(agreed=plan) == "joint 'a' has moved by 0.5 rad since its motion was confirmed; confirm it again"
    )
    bench.drives.position = [0.019, 0.0]  # less than what counts
    bench.scheduler.arm(plan)
    assert bench.scheduler.state is SchedulerState.ARMED


@pytest.mark.parametrize(
    ("position", "velocity", "overrides", "message"),
    [
        (
            [0.9, 0.0],
            [10.0, 0.0],
            ["joints.a.limits={lower: -1, upper: 1, velocity: 20, effort: 100}"],
            "joint 'a' is at 0.9 rad, 0.9 rad from the start of its trajectory at 0 rad; its reference would be"
            " 1.056 rad outside its limits -1 to 1 rad on the way; wait until it is at rest",
        ),
        (
            [10.0, 0.0],
            [0.0, 0.0],
            [
                "joints.a.limits={lower: -40, upper: 40, velocity: 0.1, effort: 100}",
                "controllers.arm.trajectory.amplitude=0",
            ],
            "joint 'a' is at 10 rad, 10 rad from the start of its trajectory at 0 rad; the way there would take more"
            " than 120 s within its velocity limit; move it by hand to within 3.2 rad of there, or slow the trajectory"
            " down",
        ),
    ],
)
def test_a_start_that_would_leave_the_limits_is_refused_with_motors_off(
    bench_of, position, velocity, overrides, message
):
    bench = bench_of(*overrides)
    bench.drives.position, bench.drives.velocity = position, velocity
    assert bench.refused(allow_turns=True) == message


def test_where_references_are_not_known_ahead_the_plan_says_so(bench_of):
    bench = bench_of("controllers=[{name: arm, type: push.py, joints: [a]}]")
    assert list(bench.scheduler.plan().lines()) == [
        "a is at 0 rad; how far it goes is not known ahead: controller 'arm' follows no trajectory of positions",
        "w is at 0 rad; how far it goes is not known ahead: no controller commands it",
    ]


# --- consent ------------------------------------------------------------------------------------------------


def consent_of(answers, yes=False, allow_turns=False):
    out = io.StringIO()
    return MotorConsent(["rig moves real motors:"], yes, allow_turns, Terminal(answers), out), out


def test_a_joint_moved_while_the_answer_was_awaited_is_asked_about_again(bench_of):
    bench, seen = bench_of(), []
    places = iter([[0.3, 0.0], [0.3, 0.0]])

    def consent(plan, moved):
        seen.append((plan.joints[0].measured, moved))
        bench.drives.position = next(places)
        return False

    agreement = agree(bench.scheduler, 100, consent, False)
    assert seen == [(0.0, ""), (0.3, "joint 'a' has moved by 0.3 rad since its motion was confirmed")]
    assert agreement.plan is not None and agreement.plan.joints[0].measured == 0.3


def test_a_joint_that_moves_is_waited_for_before_anybody_is_asked(bench_of, monkeypatch):
    bench = bench_of()
    places = [0.0, 0.3, 0.5, 0.6, *[0.61] * round(STILL / PAUSE)]
    monkeypatch.setattr("cosim.rig.consent.time.sleep", lambda seconds: None)
    standing = bench.scheduler.standing

    def looked_at():
        if places:
            bench.drives.position = [places.pop(0), 0.0]
        return standing()

    monkeypatch.setattr(bench.scheduler, "standing", looked_at)
    consent, out = consent_of("yes\n")
    agreement = agree(bench.scheduler, 100, consent, False)
    assert agreement.plan is not None and agreement.plan.joints[0].measured == 0.61 and not places
    assert out.getvalue().splitlines()[1] == "joint 'a' moves, motors off; waiting until it rests, for 10 s at most"


def test_a_joint_that_never_rests_is_asked_about_in_the_end(bench_of, monkeypatch):
    bench, seen, looks = bench_of(), [], itertools.count()
    monkeypatch.setattr("cosim.rig.consent.time.sleep", lambda seconds: None)
    standing = bench.scheduler.standing

    def looked_at():
        bench.drives.position = [0.1 * next(looks) % 1.0, 0.0]
        return standing()

    monkeypatch.setattr(bench.scheduler, "standing", looked_at)
    agree(bench.scheduler, 100, lambda plan, moved: bool(seen.append(moved)), False)
    assert seen == [""] and next(looks) == LONGEST_WAIT / PAUSE + 1


def test_with_yes_nobody_compares_where_joints_stand(bench_of):
    """The rig decides where they stand when the motors are switched on."""
    bench = bench_of()
    consent, _ = consent_of("", yes=True)
    assert agree(bench.scheduler, 100, consent, False) == Agreement(None, False)
    asked, _ = consent_of("yes\n")
    assert agree(bench.scheduler, 100, asked, False).plan is not None


@pytest.mark.parametrize(("answers", "confirmed"), [("yes\nyes\n", True), ("yes\nno\n", False), ("no\n", False)])
def test_more_than_a_turn_is_confirmed_a_second_time(bench_of, answers, confirmed):
    bench = bench_of()
    bench.drives.position = [1.5 * TURN, 0.0]
    consent, out = consent_of(answers)
    plan = bench.scheduler.plan()
    if confirmed:
        assert consent(plan, "") is True
    else:
        with pytest.raises(InputError) as caught:
            consent(plan, "")
        assert str(caught.value) == "not confirmed, the motors stay off"
    shown = out.getvalue()
    assert shown.startswith("rig moves real motors:\nfrom where the joints stand, motors off:\n  a is at 9.425 rad;")
    again = (
        "  joint 'a' is at 9.425 rad, 1.5 turns from the start of its trajectory at 0 rad\n"
        "Type yes again to confirm these turns: "
    )
    assert (again in shown) == (answers != "no\n")


def test_with_yes_more_than_a_turn_needs_an_option_of_its_own(bench_of):
    bench = bench_of()
    bench.drives.position = [1.5 * TURN, 0.0]
    plan = bench.scheduler.plan()
    with pytest.raises(RunError) as caught:
        consent_of("", yes=True)[0](plan, "")
    assert str(caught.value).endswith("check its zero, move it within a turn by hand, or pass --allow-turns")
    assert consent_of("", yes=True, allow_turns=True)[0](plan, "") is True


def test_turns_that_may_be_lost_are_confirmed_as_more_than_a_turn_is(bench_of):
    bench = bench_of()
    bench.unsure("a")
    bench.drives.position = [0.3, 0.0]
    plan = bench.scheduler.plan()
    consent, out = consent_of("yes\nyes\n")
    assert consent(plan, "") is True
    assert f"  {UNSURE}\nType yes again to confirm these turns: " in out.getvalue()
    with pytest.raises(InputError, match="not confirmed, the motors stay off"):
        consent_of("yes\nno\n")[0](plan, "")
    with pytest.raises(RunError) as caught:
        consent_of("", yes=True)[0](plan, "")
    assert str(caught.value).endswith("or pass --allow-turns")
    assert consent_of("", yes=True, allow_turns=True)[0](plan, "") is True


def test_more_than_a_turn_of_a_drive_that_may_have_lost_turns_is_one_question_with_both(bench_of):
    bench = bench_of()
    bench.unsure("a")
    bench.drives.position = [1.5 * TURN, 0.0]
    (a,) = bench.scheduler.plan().confirm_turns
    far = "joint 'a' is at 9.425 rad, 1.5 turns from the start of its trajectory at 0 rad; joint 'a' is at 9.425 rad if"
    assert a.doubt.startswith(far)
