"""How many evaluations of the plant the search for an event takes."""

import math

import pytest

from cosim.plant.event_stepper import MAX_SEARCH, TOLERANCE, EventStepper
from tests.plant.event_runs import BALL, SLIDER, EventRun, with_events

SCHEDULE = "step: 50 ms, duration: 0.6"
HALVINGS = math.ceil(-math.log2(TOLERANCE))
FAST = SLIDER.replace("gravity: [2,", "gravity: [200,")
EVENT = "do: latch, of: a, when: {signal: %s, above: %s}"


@pytest.fixture
def searches(monkeypatch):
    """The number of evaluations of each search."""
    counts = []
    narrow = EventStepper._narrow_bracket

    def counted(self, bracket, *others):
        if (bracket[0], bracket[1], bracket[5]) == (0.0, 1.0, 1.0):
            counts.append(0)
        counts[-1] += 1
        return narrow(self, bracket, *others)

    monkeypatch.setattr(EventStepper, "_narrow_bracket", counted)
    return counts


@pytest.mark.parametrize(
    ("text", "bound"),
    [
        (with_events(["do: latch, of: a, at: 0.123"], schedule=SCHEDULE), 3),  # linear
        (with_events([EVENT % ("a/position", 0.3)], schedule=SCHEDULE), 12),  # curved
        (f"{BALL}schedule: {{{SCHEDULE}}}\n", HALVINGS),  # at the end of a step
        (with_events([EVENT % ("energy/kinetic", 1e-9)], FAST, SCHEDULE), 2 * HALVINGS),  # close to a flat start
    ],
)
def test_a_search_takes_few_evaluations(rig_of, searches, text, bound):
    """At most twice as many as bisection alone, as every second evaluation is a bisection."""
    EventRun(rig_of(text, interpret=True))
    assert 0 < max(searches) <= bound
    assert 2 * HALVINGS <= MAX_SEARCH


def test_no_event_no_search(rig_of, searches):
    EventRun(rig_of(with_events(["do: latch, of: a, at: 9"], schedule=SCHEDULE), interpret=True))
    assert searches == []
