"""The turn on which a drive is: its encoder may have lost whole turns while its power was off.

Where the limits of a joint have room for one turn of its drive only, the first measurement of a connection is folded
into them by whole turns, to the place nearest to their middle. Feedback and commands count these turns from then on, in
Python and in machine code: they are a shift of the zero, see `wiring.Units`.
"""

from __future__ import annotations

from collections.abc import Sequence

from cosim.core.driver_contract import Turns
from cosim.core.types import Limits
from cosim.core.units import TURN
from cosim.plugins.drivers.common.wiring import Units


class PowerOnTurns:
    """Of n drives. `pending`: the turns are not known yet."""

    def __init__(self, units: Units, limits: Limits, turns: Sequence[Turns]) -> None:
        """limits (n,): of the joints; turns: see `DriverContext`."""
        self._units, self._limits = units, limits
        self._folded = [k for k, known in enumerate(turns) if known == "folded"]
        self._since_ns, self.pending = 0, bool(self._folded)

    def forget(self, since_ns: int = 0) -> None:
        """The drives may have been without power: only what they report from this time on counts."""
        if self._folded:
            self._units.add_turns([0] * len(self._units.turns))
            self._since_ns, self.pending = since_ns, True

    def find(self, position: Sequence[float], t_ns: Sequence[int]) -> bool:
        """Whether turns were added for these measurements (n,) of the drives [rad], of the times t_ns (0: none)."""
        if min(t_ns) < max(self._since_ns, 1):
            return False
        turns, units = [0] * len(position), self._units
        for k in self._folded:
            middle = 0.5 * float(self._limits.lower[k] + self._limits.upper[k])
            turns[k] = round((units.scale[k] * (middle - units.zero[k]) - position[k]) / TURN)
        units.add_turns(turns)
        self.pending = False
        return any(turns)
