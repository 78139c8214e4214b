"""The events in the report: what comes again and again is summed up; stops, markers and what is rare are listed."""

from __future__ import annotations

from cosim.cli.run_summary import event_lines


def event(t, name, lost=0.0, count=1):
    return {"t_s": t, "name": name, "count": count, "energy_lost_J": lost, "level": "info"}


def test_few_events_are_listed():
    events = [event(0.1 * k, "ball: impact", 0.5) for k in range(8)]
    assert event_lines(events)[7] == "event    0.7 s  ball: impact, 500 mJ lost" and len(event_lines(events)) == 8


def test_many_changes_hide_neither_markers_nor_the_stop():
    changes = [event(0.1 * k, f"arm.kp = {k} N*m/rad (was {k - 1} N*m/rad), set by 'page'") for k in range(10)]
    others = [event(0.95, "marker by 'page': tool on"), event(1.5, "stopped by 'page'")]
    assert event_lines([*changes, *others]) == [
        "event    0 s  arm.kp = 0 N*m/rad (was -1 N*m/rad), set by 'page'",
        "event    0.1 s  arm.kp = 1 N*m/rad (was 0 N*m/rad), set by 'page'",
        "event    0.2 s  arm.kp = 2 N*m/rad (was 1 N*m/rad), set by 'page'",
        "event    0.95 s  marker by 'page': tool on",
        "event    1.5 s  stopped by 'page'",
        "event    … 7 more of arm.kp until 0.9 s",
    ]


def test_the_losses_of_many_impacts_are_summed_up():
    impacts = [event(float(k), "ball: impact", 0.5, 2) for k in range(10)]
    lines = event_lines([*impacts, event(11.0, "marker by 'page': end")])
    assert lines[2:] == [
        "event    2 s  ball: impact (2 times), 500 mJ lost",
        "event    11 s  marker by 'page': end",
        "event    … 14 more of ball: impact until 9 s, 3.5 J lost",
    ]
