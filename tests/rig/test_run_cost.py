"""What a run costs besides its loop: memory for its signals once, one ring, figures accumulated on the way."""

import tracemalloc

import numpy as np
import pytest

from cosim import Rig
from cosim.rig.run.summary import followed_signals, summary_of
from cosim.simulation.loop.tick_ring import TickRing
from tests.rig.test_parameters import ARM


@pytest.fixture(scope="module")
def rig():
    rig = Rig.from_dict({**ARM, "schedule": {"duration": 20.0}})
    rig.run(0.01)
    return rig


def test_a_free_run_has_one_ring(rig, monkeypatch):
    made, begin = [], TickRing.__post_init__

    def noted(ring):
        made.append(ring)
        begin(ring)

    monkeypatch.setattr(TickRing, "__post_init__", noted)
    run = rig.run()
    assert len(run.t) == 20_001 and len(made) == 1 and made[0].places < 20_000


def test_a_run_takes_the_memory_of_its_signals_once(rig):
    tracemalloc.start()
    try:
        run = rig.run(60.0)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    rest = 0.9 * run.values.nbytes  # the ring and what is computed block by block
    assert run.values.nbytes + run.t.nbytes < peak < run.values.nbytes + run.t.nbytes + rest


def test_the_summary_is_that_of_all_ticks(rig):
    """Accumulated block by block, or from the signals of the whole run."""
    run = rig.run()
    stored = run.summary
    position, reference = run["elbow/position"], run["elbow/reference_position"]
    joint = stored["joints"]["elbow"]
    assert joint["error_rms"] == pytest.approx(np.sqrt(np.mean((reference - position) ** 2)), rel=1e-12)
    assert joint["error_max"] == np.abs(reference - position).max()
    assert (joint["position_min"], joint["position_max"]) == (position.min(), position.max())
    assert joint["speed_max"] == np.abs(run["elbow/velocity"]).max()
    assert stored["energy"]["work_in"] == run["energy/work"][-1]
    run.statistics = None
    again = summary_of(run)
    for name, figures in stored["joints"].items():
        assert again["joints"][name] == figures
    assert again["energy"] == stored["energy"] and again["ticks"] == stored["ticks"] == 20_000


def test_a_value_that_is_no_number_stays_one_in_the_figures(rig):
    from cosim.output.signal_statistics import SignalStatistics

    names = tuple(rig.run(0.01).signals)
    statistics = SignalStatistics(names, followed_signals(rig.run(0.01).rig, names))
    values = np.ones((100, len(names)))
    values[70, names.index("elbow/position")] = np.nan
    statistics.add(values)
    statistics.add(np.ones((5, len(names))))
    figures = statistics.by_name()
    found = figures["elbow/position"]
    assert np.isnan([found.min, found.max, found.rms, found.peak]).all() and found.last == 1.0
    assert np.isnan(figures["elbow/position_error"].peak) and figures["elbow/effort"].rms == 1.0
