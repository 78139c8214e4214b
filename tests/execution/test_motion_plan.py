"""What real joints are about to do is known before they are switched on, and decides whether they are."""

import io
import itertools
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest

from cosim.cli.confirm import MotorConsent
from cosim.control.bumpless_start import BumplessStart
from cosim.core.driver_contract import AddedTurns
from cosim.core.errors import InputError, RunError
from cosim.core.types import Limits
from cosim.core.units import TURN
from cosim.execution.hardware.driver_group import DriverGroup
from cosim.execution.python_engine import PythonEngine
from cosim.execution.rest import STILL
from cosim.execution.scheduler import Scheduler, SchedulerState
from cosim.rig.run.consent import LONGEST_WAIT, LOOK_PAUSE, Agreement, agree
from cosim.simulation.tick.virtual_plant import VirtualPlant
from tests.cli.test_confirm import Terminal
from tests.kit.hardware import HardwareStub
from tests.kit.refusals import raised
from tests.kit.rigs import controller, rig_in

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


AS_READ = AddedTurns(), AddedTurns()


@cache
def rig_with(*overrides):
    with TemporaryDirectory() as folder:
        push = controller("effort = ops.array([p.size])")
        return rig_in(Path(folder), RIG, *overrides, interpret=True, push=push)


class Bench:
    """A prepared scheduler around such drives."""

    def __init__(self, *overrides):
        self.rig, self.drives, self.ambiguous = rig_with(*overrides), Moved(), ()
        self.scheduler = Scheduler(self._engine)
        self.scheduler.prepare()

    def _engine(self):
        group = DriverGroup(self.drives, np.array([0, 1]), real=True, ambiguous=self.ambiguous)
        return PythonEngine(self.rig.tick_model, VirtualPlant(self.rig.tick_model), [group])

    def stand(self, position, velocity=(0.0, 0.0), unsure=(), added=AS_READ):
        """The joints are there; unsure: prepared again with drives of these joints that may have lost turns."""
        if unsure:
            self.scheduler.close()
            self.ambiguous, self.scheduler = unsure, Scheduler(self._engine)
            self.scheduler.prepare()
            self.drives.log = []
        self.drives.position, self.drives.velocity, self.drives.added = position, velocity, added
        return self

    def arm(self, *arguments, **keys):
        self.scheduler.arm(*arguments, **keys)
        assert self.scheduler.state is SchedulerState.ARMED

    def refused(self, **keys):
        with pytest.raises(RunError) as caught:
            self.scheduler.arm(**keys)
        assert "enable" not in self.drives.log and self.scheduler.state is SchedulerState.READY
        return str(caught.value)


@pytest.fixture
def bench_of():
    made = []

    def make(*overrides):
        made.append(Bench(*overrides))
        return made[-1]

    yield make
    for bench in made:
        bench.scheduler.close()


def test_the_plan_says_of_each_joint_where_it_stands_and_how_far_it_goes_with_motors_off(bench_of, said):
    bench = bench_of().stand([1.0, 0.0])
    plan = bench.scheduler.plan(400)
    assert bench.drives.log == ["open"] and bench.scheduler.state is SchedulerState.READY
    a, w = plan.joints
    assert (a.joint, a.measured, a.reference, a.blend, a.turns) == ("a", 1.0, 0.0, 0.5, 0)
    assert (w.measured, w.reference, w.blend) == (0.0, 0.0, 0.0)
    run = bench.scheduler.engine.tick_model.loops[0].samples(5e-3, False)(401)
    assert (w.lowest, w.highest) == (run[0][:, 1].min(), run[0][:, 1].max())
    assert w.speed == np.abs(run[1][:, 1]).max()
    assert a.highest == 1.0 and a.lowest == w.lowest and a.speed > w.speed
    said(plan.lines())


def test_the_references_of_the_run_are_those_of_the_plan(bench_of):
    bench = bench_of().stand([1.0, 5.0 * TURN + 0.2])
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
    bench = bench_of().stand([1.0, 0.0])
    whole, (short, w) = bench.scheduler.plan(400).joints[0], bench.scheduler.plan(20).joints
    assert "its reference begins at 0 rad, is not reached in this run of 0.1 s; in all it goes" in str(short)
    assert short.highest == 1.0 and whole.lowest < 0.0 < short.lowest < 1.0
    trajectory = bench.scheduler.engine.tick_model.loops[0].trajectory
    places = [trajectory.sample(5e-3 * k)["position"][1] for k in range(21)]
    assert (w.lowest, w.highest) == pytest.approx((min(places), max(places)), abs=1e-12)


def test_a_continuous_joint_takes_the_nearest_turn(bench_of, said):
    bench = bench_of().stand([0.0, 5.0 * TURN + 0.2])
    (_, w) = bench.scheduler.plan(0).joints
    assert (w.turns, w.reference) == (5, 5.0 * TURN) and not w.beyond_a_turn
    said(str(w))
    bench.arm()


BOUNDED = "joints.a.limits={lower: -1, upper: 1, velocity: 20, effort: 100}"
SLOW = "joints.a.limits={lower: -40, upper: 40, velocity: 0.1, effort: 100}"
FAR = [1.5 * TURN, 0.0]
# where joints stand -> overrides
REFUSED = {
    "more than a turn away": ({"position": FAR}, ()),
    "turns that may be lost": ({"position": [0.3, 0.0], "unsure": ("a",)}, ()),
    "turns of both that may be lost": ({"position": [0.3, 0.1], "unsure": ("a", "w")}, ()),
    "more than a turn away, and turns that may be lost": ({"position": [1.5 * TURN, 0.1], "unsure": ("w",)}, ()),
}
REFUSED_ANYWAY = {
    "outside the limits after turns were added": (
        {"position": [2.0, 0.0], "added": [AddedTurns(-1, -TURN), AddedTurns()]},
        (BOUNDED,),
    ),
    "a way that leaves the limits": ({"position": [0.9, 0.0], "velocity": [10.0, 0.0]}, (BOUNDED,)),
    "a way that takes too long": ({"position": [10.0, 0.0]}, (SLOW, "controllers.arm.trajectory.amplitude=0")),
}


@pytest.mark.parametrize("case", REFUSED | REFUSED_ANYWAY)
def test_a_start_that_is_doubtful_is_refused_with_motors_off(bench_of, said, case):
    where, overrides = (REFUSED | REFUSED_ANYWAY)[case]
    bench = bench_of(*overrides).stand(**where)
    said(bench.refused(allow_turns=case in REFUSED_ANYWAY))
    if case in REFUSED:
        bench.arm(allow_turns=True)


def test_doubtful_turns_are_confirmed_with_the_plan(bench_of, said):
    bench = bench_of().stand([0.3, 0.0], unsure=("a",))
    plan = bench.scheduler.plan()
    assert [joint.joint for joint in plan.confirm_turns] == ["a"]
    said(str(plan.joints[0]))
    bench.arm(plan, allow_turns=True)
    # more than a turn of such a drive is one question with both
    bench = bench_of().stand(FAR, unsure=("a",))
    (a,) = bench.scheduler.plan().confirm_turns
    said(a.doubt)
    bench.stand([1.5 * TURN, 0.1], unsure=("w",))
    said(raised(RunError, agree, bench.scheduler, 100, consent_of("", yes=True)[0], False))


def test_added_turns_are_in_the_plan_and_need_no_confirmation(bench_of, said):
    bench = bench_of().stand([0.82, 0.1], added=[AddedTurns(-1, -TURN), AddedTurns(2, 0.2)])
    said(map(str, bench.scheduler.plan().joints))
    bench.arm()


def test_a_joint_that_has_moved_since_it_was_confirmed_is_not_switched_on(bench_of, said):
    bench = bench_of()
    plan = bench.scheduler.plan()
    said(bench.stand([0.5, 0.0]).refused(agreed=plan))
    bench.stand([0.019, 0.0]).arm(plan)  # less than what counts


def test_where_references_are_not_known_ahead_the_plan_says_so(bench_of, said):
    said(bench_of("controllers=[{name: arm, type: push.py, joints: [a]}]").scheduler.plan().lines())


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
    places = [0.0, 0.3, 0.5, 0.6, *[0.61] * round(STILL / LOOK_PAUSE)]
    monkeypatch.setattr("cosim.rig.run.consent.time.sleep", lambda seconds: None)
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
    monkeypatch.setattr("cosim.rig.run.consent.time.sleep", lambda seconds: None)
    standing = bench.scheduler.standing

    def looked_at():
        bench.drives.position = [0.1 * next(looks) % 1.0, 0.0]
        return standing()

    monkeypatch.setattr(bench.scheduler, "standing", looked_at)
    agree(bench.scheduler, 100, lambda plan, moved: bool(seen.append(moved)), False)
    assert seen == [""] and next(looks) == LONGEST_WAIT / LOOK_PAUSE + 1


def test_with_yes_nobody_compares_where_joints_stand(bench_of):
    """The rig decides where they stand when the motors are switched on."""
    bench = bench_of()
    consent, _ = consent_of("", yes=True)
    assert agree(bench.scheduler, 100, consent, False) == Agreement(None, False)
    asked, _ = consent_of("yes\n")
    assert agree(bench.scheduler, 100, asked, False).plan is not None


DOUBTFUL = {"more than a turn": {"position": FAR}, "turns that may be lost": {"position": [0.3, 0.0], "unsure": ("a",)}}


@pytest.mark.parametrize("case", DOUBTFUL)
def test_doubtful_turns_are_confirmed_a_second_time(bench_of, said, case):
    plan = bench_of().stand(**DOUBTFUL[case]).scheduler.plan()
    for answers, confirmed in (("yes\nyes\n", True), ("yes\nno\n", False), ("no\n", False)):
        consent, out = consent_of(answers)
        if confirmed:
            assert consent(plan, "") is True
        else:
            with pytest.raises(InputError, match=r"^not confirmed, the motors stay off$"):
                consent(plan, "")
        assert ("Type yes again to confirm these turns: " in out.getvalue()) == (answers != "no\n")
        if confirmed:
            said(out.getvalue())
    # --yes needs its own option for them
    said(raised(RunError, lambda: consent_of("", yes=True)[0](plan, "")))
    assert consent_of("", yes=True, allow_turns=True)[0](plan, "") is True
