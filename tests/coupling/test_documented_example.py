"""The example of the page on co-simulation runs as it stands."""

from typing import Any

import numpy as np
import pytest

from tests.docs.documents import PAGES, blocks


def test_the_example_is_the_motion_of_a_mass_on_a_spring(capsys):
    (text,) = blocks(PAGES["explanation/co-simulation.md"], "python")
    scope: dict[str, Any] = {}
    exec(compile(text, "co-simulation.md", "exec"), scope)
    run = scope["run"]
    assert run["mass.velocity"] == pytest.approx(np.cos(5.0 * run.t), abs=2e-3)
    velocity, residual = map(float, capsys.readouterr().out.split())
    assert velocity == pytest.approx(run["mass.velocity"][-1])
    energy = run["mass.velocity"] ** 2 + (run["spring.force"] ** 2) / 100.0
    assert residual == pytest.approx(energy[-1] - energy[0], abs=1e-9)
