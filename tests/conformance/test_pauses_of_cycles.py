"""What a compiled cycle does when commands or answers pause: a request without a command, drives that can only be
commanded, and drives that may have restarted meanwhile."""

import numpy as np
import pytest

from cosim.core.driver_contract import CycleOutcome
from cosim.plugins.drivers.common.frame_layout import Role
from cosim.plugins.drivers.transport import now

from .families import cases, load_cycle
from .two_engines import CanLine, TwoEngines, silent_bench

COMPILED = [case for case in cases() if case.compiled and case.line == "udp_multicast"]
SECOND = 10**9


@pytest.fixture(scope="module")
def engines(case, tmp_path_factory):
    load_cycle(case)
    with silent_bench(case, tmp_path_factory.mktemp(case.family), "effort") as (driver, seen):
        line = CanLine(driver, packed=False)
        try:
            yield (
                TwoEngines(driver, line),
                [
                    line.wire(each.frame._replace(data=seen[k]))
                    for k, each in enumerate(driver.interpreted.reception.frames)
                    if k in seen
                ],
            )
        finally:
            line.close()


def heard(engines: TwoEngines, sound: list[bytes]) -> None:
    for data in sound:
        engines.line.put(data)
    assert engines.read() == (CycleOutcome.NOMINAL, "")
    engines.line.sent()


compiled = pytest.mark.parametrize("case", COMPILED, ids=str, scope="module")


@compiled
def test_a_read_without_a_command_requests_what_the_driver_in_python_requests(case, engines):
    engines, sound = engines
    repeated = [sent.joint for sent in engines.layout.transmission.frames if sent.repeated]
    for effort in (0.03, -0.02):  # the last command is what is repeated
        heard(engines, sound)
        engines.cmd.effort[:] = effort
        assert engines.write() == (CycleOutcome.NOMINAL, "")
        engines.line.sent()
        heard(engines, sound)  # the answers to this command
        engines.cycle._set(commanded=0, written_ns=now())
        for data in sound:
            engines.line.put(data)
        assert engines.read() == (CycleOutcome.NOMINAL, "")
        requests, python = engines.line.sent()
        assert requests == python
        assert requests[len(requests) - len(repeated) :] == [engines.driver.interpreted.last[k] for k in repeated]
    engines.cycle._set(commanded=0, written_ns=now() - 2 * SECOND)
    assert engines.run("read", now()) is (CycleOutcome.SUSPECT if repeated else CycleOutcome.NOMINAL)
    engines.cycle._set(commanded=1, written_ns=now())


@compiled
def test_no_command_follows_a_pause_after_which_drives_may_be_off(case, engines):
    engines, sound = engines
    heard(engines, sound)
    layout, pause = engines.layout, 3 * SECOND
    assert layout.longest_pause_ns < pause
    engines.cycle._set(written_ns=now() - pause)
    outcome = engines.run("write", now() + SECOND, now() + SECOND)
    assert outcome is (CycleOutcome.SUSPECT if layout.longest_pause_ns else CycleOutcome.NOMINAL)
    assert bool(engines.line.sent()[0]) != bool(layout.longest_pause_ns)


@compiled
def test_an_answer_after_a_gap_in_which_a_drive_may_have_restarted_is_judged(case, engines):
    engines, sound = engines
    heard(engines, sound)
    gaps = [each.longest_gap_ns for each in engines.layout.reception.frames]
    engines.cycle._received_frames["t_ns"] -= np.array(gaps) + SECOND * (np.array(gaps) > 0)
    for data in sound:
        engines.line.put(data)
    outcome = engines.run("read", now())
    assert outcome is (CycleOutcome.SUSPECT if any(gaps) else CycleOutcome.NOMINAL)
    engines.line.sent()
    asked, compiled = [], engines.driver.compiled
    engines.driver._request_limits = lambda: asked.extend(engines.driver._suspects)
    engines.cycle.hand_back()
    assert set(asked) == ({0, 1} if any(gaps) else set())  # nobody answers here
    engines.driver.compiled = compiled
    del engines.driver._request_limits
    heard(engines, sound)


@compiled
def test_a_silent_drive_does_not_make_the_measurements_of_another_one_old(case, engines):
    """The time of each joint is in its command, where its state finds it."""
    engines, sound = engines
    heard(engines, sound)
    frames, rows = engines.layout.reception.frames, engines.cycle._received_frames
    first = [k for k, each in enumerate(frames) if each.joint == 0 and each.role is Role.MEASUREMENT]
    rows["t_ns"][first] -= SECOND // 100
    engines.cycle._set(commanded=1)
    engines.run("read", now())
    measured = {
        joint: min(
            row["t_ns"]
            for each, row in zip(frames, rows, strict=True)
            if each.joint == joint and each.role is Role.MEASUREMENT
        )
        for joint in (0, 1)
    }
    assert engines.cycle.commands[:, -1].tolist() == [float(measured[0]), float(measured[1])]
    assert engines.cycle.t_ns[0] == measured[0] < measured[1]
