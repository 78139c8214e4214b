"""The energy balance of rigs in rigs/drives that have all kinds of parts, by the integrator of `--reference`."""

from collections.abc import Callable

import pytest

from cosim import Rig
from cosim.cli.reference_run import SETTINGS
from tests.kit.samples import FOLDER, few_samples

NAMES = sorted(f"drives/{path.stem}" for path in (FOLDER / "drives").glob("*.yaml"))
SECONDS = 0.05  # most have no later start of their motion
LATER = {"drives/hydraulic_boom": 0.5, "drives/dc_start": 0.5}


COVERING = few_samples(NAMES, "joints")


@pytest.mark.parametrize("name", COVERING)
def test_what_a_rig_is_supplied_with_it_stores_or_dissipates(sample: Callable[..., Rig], name: str) -> None:
    energy = sample(name, *SETTINGS).run(LATER.get(name, SECONDS)).summary["energy"]
    assert energy is not None and energy["residual_relative"] < 1e-6
    assert energy["dissipated"] > 1e-6 and max(abs(energy["work_in"]), abs(energy["stored"])) > 1e-6
