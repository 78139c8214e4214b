"""The rigs of the rows of first runs are rigs, and the rows measure them."""

import numpy as np
import pytest

from benchmarks import rows_compile
from benchmarks.paired_timing import QUICK
from benchmarks.peers import MissingPeer
from cosim import load_rig


@pytest.mark.parametrize(("make", "bodies"), [(rows_compile.apart, 6), (rows_compile.in_a_row, 5)])
def test_two_linkages_run(tmp_path, make, bodies):
    file = tmp_path / "rig.yaml"
    file.write_text(make(2))
    rig = load_rig(file)
    assert len(rig.joints) == bodies
    run = rig.run(0.02)
    assert max(np.abs(run[f"pin{k}/violation"]).max() for k in range(2)) < 1e-9


def test_the_humanoid_is_a_rig(tmp_path):
    try:
        text = rows_compile.humanoid(3)
    except MissingPeer as missing:
        pytest.skip(str(missing))
    file = tmp_path / "rig.yaml"
    file.write_text(text)
    rig = load_rig(file, interpret=True)
    assert len(rig.joints) == 38 and len(rig.plant.actuators) == 3


def test_a_first_run_is_timed_with_an_empty_cache(monkeypatch):
    folders = []

    def fresh(statements, file, folder):
        folders.append(folder)
        assert statements == rows_compile.RUN and file.is_file() and not folder.exists()
        return np.array([0.5, 1.0, 1.5])

    monkeypatch.setattr(rows_compile, "fresh", fresh)
    measured = rows_compile.growth(rows_compile.in_a_row, QUICK)
    assert measured.samples.ours == pytest.approx([3.0 / rows_compile.MANY] * QUICK.starts)
    assert len(set(folders)) == 2 * QUICK.starts
