"""Which calls of a tick pass derivatives on: those on which the figure depends, of what is varied."""

from __future__ import annotations

import numpy as np
import pytest

from cosim.rig.rollouts import accumulation_of
from cosim.tick.reverse_program import reverse_program
from tests.kit.samples import sample  # noqa: F401


@pytest.fixture
def passing(sample):  # noqa: F811
    """Names of the calls of ur5_sim with an adjoint -> (inputs, outputs) that take part, by the varied region."""
    model = sample("ur5_sim").tick_model

    def calls(*region, metrics=("error_rms",)):
        varied = np.zeros(model.layout.size, dtype=bool)
        varied[model.layout.place(*region).where] = True
        program = reverse_program(model, accumulation_of(model, metrics, 10), varied)
        return {c.forward.name.removesuffix("_taped"): (c.wrt, c.seeded) for c in program.calls if c.adjoint}

    return calls


def test_gains_act_through_the_whole_loop(passing):
    found = passing("parameters")
    assert list(found) == ["measure", "controller_arm", "check_command", "request", "advance", "accumulate"]
    assert found["controller_arm"][0] == (1,)  # measured positions have no effect on what it commands
    assert found["advance"] == ((1, 2), (0,))


def test_what_has_no_influence_has_no_adjoint(passing):
    assert passing("warned") == {}
    assert passing("guard_fault") == {}


def test_a_start_acts_on_the_plant_too(passing):
    assert "advance" in passing("plant")
