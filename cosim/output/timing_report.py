"""The timing of a real-time run as lines for the terminal."""

from __future__ import annotations

from typing import Any

from cosim.timing.deadlines import SPREAD
from cosim.units import format_seconds

TOLD = 4  # causes that are named


def timing_lines(summary: dict[str, Any]) -> list[str]:
    """A summary of `DeadlineRecord` in words."""
    none = [_line("timing", "no tick was taken")]
    found = [*_times(summary), _missed(summary["missed"])] if summary["ticks"] else none
    if lost := _lost(summary):
        found.append(_line("lost", lost))
    return found + [_line("right", f"no {name}: {mend}") for name, mend in summary["mends"].items()]


def _times(summary: dict[str, Any]) -> list[str]:
    heaviest = max(summary["tasks"], key=lambda name: summary["tasks"][name]["median_s"] or 0.0)
    timed = {"wake-up latency": "latency", "pulse interval": "pulse_interval", "end to end": "end_to_end"}
    told = [f"{name} {_three(summary[key])}" for name, key in timed.items() if summary[key]]
    tick = f"{_three(summary['tick'])} of {format_seconds(summary['period_s'])}, in {summary['lane']}"
    return [
        _line("timing", "; ".join(told)),
        _line("tick", f"{tick}; heaviest task {heaviest}: {_three(summary['tasks'][heaviest])}"),
    ]


def _three(found: dict[str, float]) -> str:
    return "{} median, {} p99, {} max".format(*(format_seconds(found[key]) for key in SPREAD))


def _missed(missed: dict[str, Any]) -> str:
    of = f"{missed['of']:,} deadline{'s' * (missed['of'] != 1)}"
    if not missed["of"]:
        return _line("missed", "nothing that counts: the run ended within its grace")
    if not missed["count"]:
        return _line("missed", f"none of {of}")
    causes = list(missed["causes"].items())
    named = [f"{cause} {count:,}" for cause, count in causes[:TOLD]]
    named += [f"others {sum(count for _, count in causes[TOLD:]):,}"] if causes[TOLD:] else []
    worst = missed["worst"][0]
    since = f" (tick {worst['root']})" if worst["root"] != worst["number"] else ""
    late, number = format_seconds(worst["late_s"]), worst["number"]
    return _line(
        "missed",
        f"{missed['count']:,} of {of}: {', '.join(named)}; worst {late} at tick {number} (t = {worst['t_s']:.6g} s),"
        f" {worst['cause']}{since}",
    )


def _lost(summary: dict[str, Any]) -> str:
    told, factor = [], summary["real_time_factor"]["worst_window"]
    if summary["lost_s"]:
        slow = f", {factor:.4g} of the rate asked for in the worst second" if factor is not None else ""
        told.append(f"{format_seconds(summary['lost_s'])} given up to late ticks{slow}")
    if n := summary["dropped"]:
        told.append(f"the rows of {n:,} tick{'s' * (n != 1)}, which came faster than they could be taken")
    return "; ".join(told)


def _line(heading: str, text: str) -> str:
    return f"{heading:<8} {text}"
