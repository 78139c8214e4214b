"""Which calls of a tick pass derivatives on: those on which the figure depends, of what is varied."""

import numpy as np

from cosim.rig.rollouts import accumulation_of
from cosim.tick.reverse_program import reverse_program


def test_calls_have_an_adjoint_where_the_figure_depends_on_what_is_varied(sample):
    model = sample("ur5_sim").tick_model

    def passing(region):
        """Names of the calls with an adjoint -> (inputs, outputs) that take part."""
        varied = np.zeros(model.layout.size, dtype=bool)
        varied[model.layout.place(region).where] = True
        program = reverse_program(model, accumulation_of(model, ("error_rms",), 10), varied)
        return {c.forward.name.removesuffix("_taped"): (c.wrt, c.seeded) for c in program.calls if c.adjoint}

    gains = passing("parameters")  # act through the whole loop
    assert list(gains) == ["measure", "controller_arm", "check_command", "request", "advance", "accumulate"]
    assert gains["controller_arm"][0] == (1,)  # measured positions have no effect on what it commands
    assert gains["advance"] == ((1, 2), (0,))
    assert passing("warned") == passing("guard_fault") == {}  # have no influence
    assert "advance" in passing("plant")
