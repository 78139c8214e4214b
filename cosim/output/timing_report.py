"""The timing of a real-time run as lines for the terminal."""

from __future__ import annotations

from typing import Any

from cosim.core.units import format_seconds
from cosim.execution.timing.percentiles import PERCENTILES

WORDS = ("timing", "tick", "missed", "slip", "lost", "system")  # with which lines begin
MAX_CAUSES = 4  # by name


def is_timing_line(text: str) -> bool:
    """Whether it is one of `timing_lines`, which are events at the end of a recording."""
    return text.startswith(tuple(_line(word, "") for word in WORDS))


def timing_lines(summary: dict[str, Any]) -> list[str]:
    """The summary of a `DeadlineRecord` as lines."""
    if summary["ticks"]:
        lines = [*_time_lines(summary), _missed_line(summary["missed"])]
    else:
        lines = [_line("timing", "no tick was run")]
    if slip := summary["clock_slip_s"]:
        factor = summary["real_time_factor"]["worst_window"]
        worst = f", real-time factor {factor:.4g} of the set rate in the worst second" if factor is not None else ""
        lines.append(_line("slip", f"{format_seconds(slip)} of clock slip after late ticks{worst}"))
    if n := summary["lost_rows"]:
        lines.append(_line("lost", f"the rows of {n:,} tick{'s' * (n != 1)}, faster than they could be read"))
    return lines + [_line("system", f"no {name}: {fix}") for name, fix in summary["privilege_fixes"].items()]


def _time_lines(summary: dict[str, Any]) -> list[str]:
    slowest = max(summary["tasks"], key=lambda name: summary["tasks"][name]["median_s"] or 0.0)
    keys = {"wake-up latency": "latency", "trigger interval": "trigger_interval", "end to end": "end_to_end"}
    percentiles = [f"{name} {_percentiles(summary[key])}" for name, key in keys.items() if summary[key]]
    tick = f"{_percentiles(summary['tick'])} of {format_seconds(summary['period_s'])}, {summary['engine']} engine"
    return [
        _line("timing", "; ".join(percentiles)),
        _line("tick", f"{tick}; slowest task {slowest}: {_percentiles(summary['tasks'][slowest])}"),
    ]


def _percentiles(times: dict[str, float]) -> str:
    return "{} median, {} p99, {} max".format(*(format_seconds(times[key]) for key in PERCENTILES))


def _missed_line(missed: dict[str, Any]) -> str:
    deadlines = f"{missed['of']:,} deadline{'s' * (missed['of'] != 1)}"
    if not missed["of"]:
        return _line("missed", "none counted: the run ended within its warm-up")
    if not missed["count"]:
        return _line("missed", f"none of {deadlines}")
    counts = list(missed["causes"].items())
    causes = [f"{cause} {count:,}" for cause, count in counts[:MAX_CAUSES]]
    causes += [f"others {sum(count for _, count in counts[MAX_CAUSES:]):,}"] if counts[MAX_CAUSES:] else []
    worst = missed["worst"][0]
    since = f" (tick {worst['root']})" if worst["root"] != worst["number"] else ""
    late, number = format_seconds(worst["late_s"]), worst["number"]
    return _line(
        "missed",
        f"{missed['count']:,} of {deadlines}: {', '.join(causes)}; worst {late} at tick {number}"
        f" (t = {worst['t_s']:.6g} s), {worst['cause']}{since}",
    )


def _line(heading: str, text: str) -> str:
    return f"{heading:<8} {text}"
