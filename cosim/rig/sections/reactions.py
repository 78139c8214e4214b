"""The key `reactions` of a mechanism: the joints whose wrenches are signals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cosim.core.errors import did_you_mean
from cosim.mechanics.multibody.mechanism import Joint, LoopJoint
from cosim.rig.reading.schema import READERS, KeyPath, Reading, show
from cosim.rig.reading.yaml_source import YamlValue

ALL = "all"
# kinds that `all` leaves out: a fixed joint would make one more body, a free one is no bearing
LEFT_OUT = ("fixed", "free")


class NamesOrAll(tuple):
    """Names of joints, or ALL alone."""


def _names_or_all(
    reading: Reading, hint: object, value: YamlValue, meta: Mapping[str, Any], path: KeyPath
) -> NamesOrAll | None:
    names = [value] if value == ALL else value
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        return reading.fail(path, f"expected a list of names or '{ALL}', got {show(value)}")
    return NamesOrAll(names)


READERS[NamesOrAll] = _names_or_all


def joints_with_reactions(
    given: NamesOrAll, joints: Sequence[Joint], loops: Sequence[LoopJoint], at: tuple, reading: Reading
) -> tuple[str, ...]:
    """The joints of the tree whose wrenches are recorded; errors are recorded. Those of loops always are."""
    if given == (ALL,):
        return tuple(joint.name for joint in joints if joint.kind not in LEFT_OUT)
    of_tree = [joint.name for joint in joints]
    known = [*of_tree, *(loop.joint.name for loop in loops)]
    for k, name in enumerate(given):
        if name not in known:
            reading.fail((*at, k), f"there is no joint '{name}'{did_you_mean(name, known)}")
    return tuple(dict.fromkeys(name for name in given if name in of_tree))
