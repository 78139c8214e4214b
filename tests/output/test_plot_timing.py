"""Plots of the timing of a real-time run: their content, and thinning without loss of spikes."""

import numpy as np
import pytest

from cosim.core.errors import InputError
from cosim.execution.timing.deadlines import DeadlineRecord, TaskTime
from cosim.output.plot.timing_plot import plot_timing
from tests.output.plot_helpers import LONG, assert_on_the_picture_and_apart, keys

US, MS = 1_000, 1_000_000
NAMES = ("read", "arm", "guard", "write", "step", "publish")


def run(k=300, late=None, names=NAMES, **settings):
    """k ticks of 1 ms; each wakes after 10 µs, and its tasks take 20 µs. late: (tick, task or "wake") -> ns more."""
    took = np.full((k, len(names)), 20 * US)
    wake = np.full(k, 10 * US)
    cpu = took.sum(axis=1)
    for (tick, name), more in (late or {}).items():
        if name == "wake":
            wake[tick] += more
        else:
            took[tick, names.index(name)] += more
            cpu[tick] += more
    due = np.arange(k) * MS
    triggered = settings.get("triggered", False)
    woke = due + wake
    stamps = np.column_stack(
        [woke if triggered else due, woke, woke[:, None] + np.cumsum(took, axis=1), np.cumsum(cpu)]
    )
    tasks = tuple(TaskTime(name, 1, 0, MS, name == "read") for name in names)
    usual = {"period_ns": MS, "slip_ns": 0, "lost_rows": 0, "warm_up_ns": 0, "rate": 1.0, "triggered": False}
    return DeadlineRecord(
        tasks, numbers=np.arange(k), stamps=stamps, engine="compiled", privileges=(), **{**usual, **settings}
    )


@pytest.fixture
def draw(drawn, tmp_path):
    """Draws a run; the figure that was saved."""

    def draw(timing, title="arm", note=""):
        plot_timing(tmp_path / "a.png", timing, title, note)
        return drawn.pop()

    return draw


def titles(figure):
    return [axes.get_title() for axes in figure.axes]


def names_beside(axes):
    return [label.get_text() for label in axes.get_yticklabels()]


LATE = {(100, "wake"): 900 * US, (150, "step"): 890 * US, (200, "step"): 895 * US, (250, "read"): 950 * US}


def test_distributions_curves_causes_and_deadlines_are_on_the_plot(draw):
    figure = draw(run(late=LATE), "my arm", "done in time")
    waking, tasks, over_time, end_to_end = figure.axes
    assert titles(figure) == [
        "wake-up latency",
        "execution time",
        "wake-up latency",
        "end to end: from due time to commands written",
    ]
    assert keys(waking.get_legend()) == ["median 10 µs", "p99 10 µs", "max 910 µs"]
    assert keys(tasks.get_legend()) == ["median", "to p99", "max", "period 1 ms"]
    assert names_beside(tasks) == [*NAMES, "tick"]
    assert keys(over_time.get_legend()) == ["step overran (2)", "wake-up latency (1)", "bus late in read (1)"]
    assert keys(end_to_end.get_legend()) == ["deadline of write, 1 ms"]
    assert end_to_end.get_xlabel() == "time [s]"
    assert [text.get_text() for text in figure.texts] == [
        "my arm",
        "299 ms in ticks of 1 ms, compiled engine  ·  4 deadlines missed  ·  real-time factor 1.0000 at worst",
        "done in time",
    ]
    # late ticks stand where they happened
    points = [line.get_xydata().tolist() for line in over_time.lines[1:]]
    assert points == [[[0.15, 10e-6], [0.2, 10e-6]], [[0.1, 910e-6]], [[0.25, 10e-6]]]
    # of the late ticks only one wrote its commands after their deadline
    points = [line.get_xydata().tolist() for line in end_to_end.lines[1:4]]
    assert points == [[], [], [[0.25, 1040e-6]]]
    colors = [line.get_color() for line in over_time.lines[1:]]
    assert len(set(colors)) == 3
    assert [line.get_color() for line in end_to_end.lines[1:4]] == colors


def test_no_spike_of_a_dense_run_is_lost(draw):
    spikes = {(tick, "wake"): 500 * US + tick for tick in range(0, 50_000, 1237)}
    *_, waking, end_to_end = draw(run(50_000, spikes)).axes
    drawn = waking.lines[0].get_ydata()
    assert len(drawn) < 2000
    assert set(np.round(drawn * 1e9)) >= {10 * US + more for more in spikes.values()}
    assert waking.get_ylim()[1] > max(drawn)
    assert end_to_end.get_ylim()[0] < 90e-6 < 1e-3 < end_to_end.get_ylim()[1]


def test_the_worst_of_many_late_ticks_is_marked(draw):
    late = {(tick, "wake"): 890 * US + tick for tick in range(5000)}
    *_, waking, _ = draw(run(5000, late)).axes
    (marks,) = waking.lines[1:]
    assert len(marks.get_ydata()) < 500
    assert max(marks.get_ydata()) == 904_999e-9
    assert keys(waking.get_legend()) == ["wake-up latency (5,000)"]


def test_rare_causes_are_drawn_as_one(draw):
    names = ("read", *(f"c{i}" for i in range(8)), "write")
    late = {(10 + 3 * i, f"c{i}"): 900 * US for i in range(8)} | {(50 + i, "wake"): 900 * US for i in range(2)}
    *_, waking, _ = draw(run(late=late, names=names)).axes
    assert keys(waking.get_legend()) == [
        "wake-up latency (2)",
        *(f"c{i} overran (1)" for i in range(4)),
        "other causes (4)",
    ]


def test_the_histogram_has_every_tick_in_it(draw):
    waking, *_ = draw(run(late={(k, "wake"): k * k * US for k in range(30)})).axes
    (steps,) = waking.patches
    assert steps.get_data().values.sum() == 300
    assert waking.get_yscale() == waking.get_xscale() == "log"


def test_of_many_tasks_the_slowest_are_drawn_and_the_footer_states_it(draw):
    names = ("read", *(f"c{i}" for i in range(16)), "write")
    figure = draw(run(late={(5, f"c{i}"): 1 + 100 * i for i in range(16)}, names=names), note="done")
    assert names_beside(figure.axes[1]) == [*(f"c{i}" for i in range(2, 16)), "tick"]
    assert figure.texts[-1].get_text() == "done  ·  the 14 of 18 tasks that took longest"


def test_clock_slip_is_drawn_only_where_there_is_any(draw):
    timing = run(slip_ns=30 * MS)
    timing.stamps[200:, :-1] += 30 * MS
    figure = draw(timing)
    assert titles(figure)[-1] == "clock slip after late ticks"
    (line,) = figure.axes[-1].lines
    assert (min(line.get_ydata()), max(line.get_ydata())) == (0.0, 0.03)
    assert figure.axes[-1].get_xlabel() == "time [s]" and figure.axes[-2].get_xlabel() == ""


def test_a_triggered_run_shows_intervals_and_drift(draw):
    figure = draw(run(late={(100, "wake"): 700 * US}, triggered=True))
    assert titles(figure) == [
        "trigger interval",
        "execution time",
        "trigger interval",
        "end to end: from the trigger to commands written",
        "triggers behind the clock",
    ]
    histogram, _, intervals, _, behind = figure.axes
    assert histogram.get_ylabel() == "triggers" and histogram.get_xscale() == "linear"
    assert keys(intervals.get_legend()) == ["trigger late (1)"]
    assert len(intervals.lines[0].get_ydata()) == 299
    assert max(behind.lines[0].get_ydata()) == 0.7e-3
    assert "  ·  external trigger  ·  " in figure.texts[1].get_text()


def test_the_rigs_time_and_its_rate_are_shown(draw):
    figure = draw(run(rate=2.0, warm_up_ns=MS * 1000))
    assert figure.axes[-1].lines[0].get_xdata()[-1] == pytest.approx(299 * 2e-3)
    assert (
        figure.texts[1].get_text()
        == "299 ms in ticks of 1 ms, compiled engine  ·  2 × real time  ·  real-time factor 1.0000 at worst"
    )


@pytest.mark.parametrize(("k", "triggered"), [(0, False), (1, False), (1, True), (2, True), (3, False)])
def test_short_runs_are_drawn_without_a_warning(draw, k, triggered):
    figure = draw(run(k, triggered=triggered, slip_ns=MS))
    figure.draw_without_rendering()
    left = sum(text.get_text() == "too few ticks" for axes in figure.axes for text in axes.texts)
    assert left == {0: 5, 1: 3 if triggered else 1}.get(k, 0)


def test_times_of_nothing_are_drawn_without_a_warning(draw):
    timing = run(50)
    timing.stamps[:] = timing.stamps[:, :1]
    assert keys(draw(timing).axes[0].get_legend()) == ["median 0 s", "p99 0 s", "max 0 s"]


LONG_NAMES = ("read", *(f"controller_with_a_long_name_{i}" for i in range(11)), "write", "step")


@pytest.mark.parametrize(
    ("names", "title", "note", "settings"),
    [(NAMES, LONG, LONG, {}), (LONG_NAMES, LONG, "", {"slip_ns": MS}), (LONG_NAMES, "arm", LONG, {"triggered": True})],
)
def test_words_keys_and_axes_stay_on_the_picture_and_apart(draw, names, title, note, settings):
    late = {(100 + 3 * i, name): 900 * US for i, name in enumerate((*names, "wake"))}
    figure = draw(run(late=late, names=names, **settings), title, note)
    boxes = [text.get_window_extent() for text in figure.texts if text.get_text()]
    boxes += [axes.get_tightbbox() for axes in figure.axes]
    assert_on_the_picture_and_apart(figure, boxes, beyond=1.0)
    for axes in figure.axes:
        if legend := axes.get_legend():
            assert not legend.get_window_extent().overlaps(axes.get_window_extent())
            assert not legend.get_window_extent().overlaps(axes.title.get_window_extent())


def test_dollars_in_names_stay_as_they_are(draw):
    figure = draw(run(late={(9, "a$b$"): MS}, names=("read", "a$b$", "write")), "rig $x_1$", "$5 and $6")
    assert not figure.texts[0].get_parse_math()
    assert names_beside(figure.axes[1])[1] == "a$b$"
    assert not figure.axes[1].get_yticklabels()[1].get_parse_math()
    assert keys(figure.axes[2].get_legend()) == ["a$b$ overran (1)"]


def test_other_formats_are_refused():
    with pytest.raises(InputError, match=r"^a\.jpg: cannot draw a plot as '\.jpg'"):
        plot_timing("a.jpg", run(), "arm")
