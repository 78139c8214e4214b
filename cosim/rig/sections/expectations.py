"""The sentences of `expect`: how a run with faults is to end, and bounds that signals must keep.

stopped [within 2 ticks] [by jump [of elbow]]       completed       degraded [within 20 ms] [of arm]
motors off [within 150 ms]                          elbow/position_error at most 2 deg [after 0.5 s]
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass

from cosim.core.errors import did_you_mean, shortened
from cosim.core.units import parse_quantity
from cosim.execution.stop_cause import WORDS
from cosim.rig.reading.schema import KeyPath, Reading, show
from cosim.rig.reading.yaml_source import YamlValue

STOPPED, COMPLETED, DEGRADED, OFF = "stopped", "completed", "degraded", "motors off"
ENDS = (STOPPED, COMPLETED, DEGRADED)  # of which a scenario has one
HAS = {STOPPED: ("within", "by", "of"), COMPLETED: (), DEGRADED: ("within", "of"), OFF: ("within",)}
RELATIONS = ("at most", "above", "below")
SAMPLES = (
    "'stopped within 2 ticks by jump of elbow', 'completed', 'degraded', 'motors off within 150 ms' or"
    " 'elbow/position_error at most 2 deg'"
)
_OUTCOME = re.compile(rf"({'|'.join(HAS)})(?: within ([^ ]+(?: [^ ]+)?))??(?: by (\w+))?(?: of (.+?))?")
_BOUND = re.compile(rf"([^ ].*?/[^ ]+) ({'|'.join(RELATIONS)}) (.+?)(?: after (.+))?")
_TICKS = re.compile(r"([1-9][0-9]*) ticks?")


@dataclass(frozen=True)
class ExpectedEnd:
    """within: time from the beginning of the last fault [s], or `ticks`; None: any; cause, name: "" for any."""

    text: str
    key: KeyPath
    what: str
    within: float | None = None
    ticks: int | None = None
    cause: str = ""
    name: str = ""


@dataclass(frozen=True)
class Bound:
    """A signal from `after` [s] behind the beginning of the last fault on: `at most` bounds its magnitude, `above` and
    `below` the signal itself. value: as it is written, in a unit of the signal."""

    text: str
    key: KeyPath
    signal: str
    relation: str
    value: str
    after: float = 0.0


def read_expectations(
    data: YamlValue, at: KeyPath, named: Collection[str], reading: Reading
) -> tuple[ExpectedEnd | Bound, ...]:
    """The sentences, one or a list of them; errors are recorded in `reading`. named: joints, drivers and controllers.

    Where none of them states or implies how the run ends, it is to be completed."""
    items = data if isinstance(data, list) else [data]
    if not items:
        reading.fail(at, f"expects nothing; write {SAMPLES}")
    found: list[ExpectedEnd | Bound] = []
    for k, item in enumerate(items):
        key: KeyPath = (*at, k) if isinstance(data, list) else at
        if not isinstance(item, str):
            reading.fail(key, f"expected a sentence, got {show(item)}; write {SAMPLES}")
        elif (sentence := _read_sentence(" ".join(item.split()), key, named, reading)) is not None:
            found.append(sentence)
    ends = [each for each in found if isinstance(each, ExpectedEnd) and each.what in ENDS]
    for other in ends[1:]:
        reading.fail(other.key, f"'{other.text}' beside '{ends[0].text}'; a run ends in one way")
    implied = any(isinstance(each, ExpectedEnd) for each in found)  # motors that are off
    if not implied and len(found) == len(items):
        found.insert(0, ExpectedEnd(COMPLETED, at, COMPLETED))
    return tuple(found)


def _read_sentence(text: str, key: KeyPath, named: Collection[str], reading: Reading) -> ExpectedEnd | Bound | None:
    try:
        if match := _BOUND.fullmatch(text):
            signal, relation, value, after = match.groups()
            return Bound(text, key, signal, relation, value, parse_quantity(after, "s") if after else 0.0)
        if match := _OUTCOME.fullmatch(text):
            return _expected_end(text, key, match, named)
        raise ValueError(f"cannot read '{shortened(text)}'; write {SAMPLES}")
    except ValueError as error:
        return reading.fail(key, str(error))


def _expected_end(text: str, key: KeyPath, match: re.Match[str], named: Collection[str]) -> ExpectedEnd:
    what, within, cause, name = match.groups()
    for word, given in zip(("within", "by", "of"), (within, cause, name), strict=True):
        if given and word not in HAS[what]:
            raise ValueError(f"'{what}' has no '{word}'; take it out")
    if cause and cause not in WORDS:
        raise ValueError(f"there is no cause '{cause}'{did_you_mean(cause, WORDS)}")
    if name and name not in named:
        raise ValueError(f"there is no '{name}'{did_you_mean(name, named)}")
    ticks = _TICKS.fullmatch(within or "")
    seconds = None if within is None or ticks else _time(within)
    return ExpectedEnd(text, key, what, seconds, int(ticks[1]) if ticks else None, cause or "", name or "")


def _time(text: str) -> float:
    """Raises ValueError for what is neither a time with a unit nor a number of ticks."""
    if re.fullmatch(r"[-+0-9.]+(?: ticks?)?", text):
        raise ValueError(f"'within {text}' is no time; write e.g. 'within 2 ticks' or 'within 20 ms'")
    seconds = parse_quantity(text, "s")
    if not seconds > 0.0:
        raise ValueError(f"'within {text}' must be above 0 s")
    return seconds
