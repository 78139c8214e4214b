"""A controller that stays in Python: the reason names the line of the user's file, whatever part fails;
reverse programs."""

import numpy as np
import pytest

from cosim.rig.rollouts import accumulation_of
from cosim.simulation.tick.reverse_program import reverse_program
from tests.kit.rigs import controller, rig_in

RIG = """
mechanism:
  bodies: [{name: link, joint: hinge, axis: [0, 1, 0], mass: 1 kg, com: [0, 0, -0.5], inertia: [0.1, 0.1, 0.1]}]
controllers: [{type: push.py}]
"""
LINES = {
    "an if": "effort = ops.array([1.0 if q[0] > 0 else 0.0])",
    "math": "effort = ops.array([math.sin(q[0])])",
    "float": "effort = ops.array([float(q[0])])",
    "a library": "effort = np.linalg.inv(np.array([[q[0]]]))[0]",
    "the model": "effort = self.model.frame_pose(q, 'hand')[:1, 3]",
    "shapes in the model": "effort = self.model.nonlinear_effects(q, v[:0])",
    "any error": "effort = ops.array([{}['a']])",
}
# of the function, as no line of it is to blame
WHOLE = {
    "hidden state": "self.seen.append(0); effort = ops.array([1.0 * len(self.seen)])",
    "symbols of an earlier call": "self.kept = getattr(self, 'kept', q); effort = self.kept * 1.0",
    "a wrong output": "effort = 'text'",
}
OF_NUMPY = {"a library": r"(?<=: cannot be traced: ).*"}


@pytest.mark.parametrize("case", LINES | WHOLE)
def test_the_reason_names_the_users_line(tmp_path, said, case):
    line = (LINES | WHOLE)[case]
    source = controller(line).replace("params, []", "params, []; self.model = context.model")
    told = rig_in(tmp_path, RIG, push=source).tick_model.untraceable["push"]
    number = 1 + next(k for k, text in enumerate(source.splitlines()) if text.strip().startswith(line))
    first = 1 + next(k for k, text in enumerate(source.splitlines()) if "def update" in text)
    place = f"push.py:{number}: " if case in LINES else f"push.py:{first} Push.update: "
    assert told.startswith(f"{tmp_path}/{place}")
    said(told, *filter(None, [OF_NUMPY.get(case)]))


# --- reverse programs ---


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
