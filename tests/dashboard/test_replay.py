"""A recording as the source of a page."""

import numpy as np
import pytest

from cosim import load_rig
from cosim.apps.dashboard.panels.scene import Poses
from cosim.apps.dashboard.replay import Replay
from cosim.rig.run.run import Run
from cosim.rig.scene import drawing_of


@pytest.fixture(scope="module")
def run() -> Run:
    return load_rig("rigs/arm_sim.yaml").run(0.2)


class Seconds:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_everything_comes_with_the_first_poll(run: Run) -> None:
    replay = Replay(run)
    news = replay.poll()
    np.testing.assert_array_equal(news.t, run.t)
    np.testing.assert_array_equal(news.values[:, 3], run.values[:, 3])
    assert not len(replay.poll().t)
    assert list(replay.about.joints) == list(run.joints) and replay.about.units == run.units


def test_time_goes_on_while_it_plays_and_ends_at_the_end(run: Run) -> None:
    clock = Seconds()
    replay = Replay(run, clock)
    replay.play()
    clock.now += 0.05
    assert replay.t == pytest.approx(0.05) and replay.playing
    replay.pause()
    clock.now += 10
    assert replay.t == pytest.approx(0.05)
    replay.play(2.0)
    clock.now += 0.05
    assert replay.t == pytest.approx(0.15)
    clock.now += 0.05
    assert replay.t == pytest.approx(0.2) and not replay.playing
    replay.play()
    assert replay.t == pytest.approx(0.0)


def test_seeking_stays_within_the_recording_and_goes_on_playing(run: Run) -> None:
    clock = Seconds()
    replay = Replay(run, clock)
    replay.seek(7.0)
    assert replay.t == replay.last
    replay.seek(-1.0)
    replay.play()
    clock.now += 0.01
    replay.seek(0.1)
    clock.now += 0.01
    assert replay.t == pytest.approx(0.11)


def test_bodies_are_where_the_model_has_them(run: Run) -> None:
    rig = load_rig("rigs/arm_sim.yaml")
    model = rig.plant.model
    poses = Poses(drawing_of(rig), {name: k for k, name in enumerate(run.units)})
    row = np.asarray(run.values)[-1]
    q = np.array([run[f"{name}/position"][-1] for name in model.coordinate_names])
    positions, _ = poses.actual(row, float(run.t[-1]))
    np.testing.assert_array_equal(positions, model.body_poses(q)[:, :, 3])
    references = np.array([run[f"{name}/reference_position"][-1] for name in model.coordinate_names])
    assert poses.has_reference
    np.testing.assert_array_equal(poses.reference(row, 0.0)[0], model.body_poses(references)[:, :, 3])
