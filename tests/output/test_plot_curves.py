"""Plots: rotations and thinned curves."""

import numpy as np
import pytest

from cosim.output.plot import RunPlot, thin
from cosim.output.plot.curves import thin_pieces
from tests.output.plot_helpers import axes_of


def tumbling(k=1000):
    """A joint whose rotation vector changes to the opposite one at t = 0.5, mostly along x."""
    t = np.linspace(0.0, 1.0, k)
    turned = np.where(t < 0.5, 1.0, -1.0)
    signals = {f"ball.{dof}/position": size * turned for dof, size in (("rx", 3.1), ("ry", 0.2), ("x", 1.0))}
    units = dict.fromkeys(("ball.rx/position", "ball.ry/position"), "rad") | {"ball.x/position": "m"}
    signals |= {"ball.rx/velocity": 9.0 * turned, "ball.qx/position": t}
    return t, signals, units | {"ball.rx/velocity": "rad/s", "ball.qx/position": "1"}


def gaps(axes):
    return [int(np.isnan(line.get_ydata()).sum()) for line in axes.lines]


def test_angles_of_a_rotation_break_where_it_jumps_in_all_parts_at_once(tmp_path, drawn):
    t, signals, units = tumbling()
    RunPlot(t, signals, ["ball.rx", "ball.ry", "ball.x"], "arm", units).save(tmp_path / "a.png")
    axes = axes_of(drawn[0])
    assert [gaps(a) for a in axes[::2]] == [[1], [1], [0]]
    assert gaps(axes[1]) == [0]  # the velocity
    (line,) = axes[0].lines
    x, y = line.get_data()
    assert x[np.isnan(y)] == pytest.approx(t[499])
    np.testing.assert_array_equal(y[~np.isnan(y)], signals["ball.rx/position"])


@pytest.mark.parametrize("other", ["hinge", "ball.base", "bal"])
def test_joints_without_a_quaternion_do_not_break(tmp_path, drawn, other):
    t, signals, units = tumbling()
    signals = {name.replace("ball.rx", f"{other}.rx"): values for name, values in signals.items()}
    RunPlot(t, signals, [f"{other}.rx"], "arm", units | {f"{other}.rx/position": "rad"}).save(tmp_path / "a.png")
    assert gaps(axes_of(drawn[0])[0]) == [0]


def test_pieces_are_thinned_alone_and_lose_no_peak():
    x = np.arange(100_000.0)
    y = np.sin(x / 5000)
    y[[17, 50_010]] = [5.0, -7.0]
    kept_x, kept_y = thin_pieces(x, y, np.array([20, 50_000]), columns=100)
    gap = np.flatnonzero(np.isnan(kept_y))
    assert len(gap) == 2
    assert kept_x[gap[0] + 1] >= 20.0 and kept_x[gap[1] + 1] >= 50_000.0
    assert kept_x[gap[0]] < 20.0 and kept_x[gap[1]] < 50_000.0
    assert len(kept_x) < 220
    assert {17.0, 50_010.0} <= set(kept_x)


def test_short_curves_are_not_thinned():
    x = np.arange(20.0)
    kept_x, kept_y = thin(x, x**2, columns=10)
    np.testing.assert_array_equal(kept_x, x)
    np.testing.assert_array_equal(kept_y, x**2)


@pytest.mark.parametrize("k", [100_000, 99_999, 100_001, 12_345])
def test_thinning_keeps_every_peak_and_the_order(k):
    x = np.arange(float(k))
    y = np.sin(x / 500)
    y[[17, k // 2, k - 1]] = [5.0, -7.0, 9.0]
    kept_x, kept_y = thin(x, y, columns=100)
    assert len(kept_x) <= 200
    assert np.all(np.diff(kept_x) > 0)
    np.testing.assert_array_equal(kept_y, y[kept_x.astype(int)])
    assert {17.0, float(k // 2), k - 1.0} <= set(kept_x)


def test_gaps_stay_gaps_and_hide_no_peak():
    x = np.arange(1000.0)
    y = np.zeros(1000)
    y[200:400] = np.nan
    y[405] = np.inf
    y[409] = 3.0
    kept_x, kept_y = thin(x, y, columns=100)
    assert np.all(np.isnan(kept_y[(kept_x >= 200) & (kept_x < 400)]))
    assert np.sum((kept_x >= 200) & (kept_x < 400)) == 20
    assert kept_y[kept_x == 409.0] == 3.0
    assert not np.any(np.isinf(kept_y))
