"""A system of SSP in a federate of HELICS."""

import numpy as np

from cosim import load_rig
from cosim.rig.federates import with_federates
from tests.fmi import fmus
from tests.rig.test_ssp_parts import RIG, write


@fmus.needs_gcc
def test_a_system_in_a_federate(tmp_path):
    (tmp_path / "resources").mkdir()
    for model in ("spring", "turntable"):
        fmus.build(tmp_path / "resources", model, 2)
    write(tmp_path)
    path = tmp_path / "rig.yaml"
    path.write_text(RIG)
    settings = "parts.drive.federate=load", "schedule.duration=10 ms"
    loaded = load_rig(path, settings)
    one, other = loaded.run(), with_federates(loaded, path, settings).run()
    assert other.rig.engine["part drive/spring"] == "Python: in the federate 'load'"
    np.testing.assert_array_equal(other.values, one.values)
    assert np.abs(one["drive/meter/echo_1/angle"]).max() > 1e-4
