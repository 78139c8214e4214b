"""The result of many runs of one rig: metrics, signals and faults by run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, overload

from cosim.core.errors import did_you_mean, plural
from cosim.core.types import Array
from cosim.simulation.tick.metrics import METRICS

if TYPE_CHECKING:
    import pandas


class Faults(Sequence[str]):
    """Why each run was stopped, "" where it was not; a reason is found when it is read, by repeating that run."""

    def __init__(self, stopped: Array, reason: Callable[[int], str]) -> None:
        """stopped: bool (k,); reason: of a run that was stopped."""
        self._known: dict[int, str] = {}
        self._stopped, self._reason = stopped, reason

    def __len__(self) -> int:
        return len(self._stopped)

    @overload
    def __getitem__(self, k: int) -> str: ...
    @overload
    def __getitem__(self, k: slice) -> list[str]: ...
    def __getitem__(self, k: int | slice) -> str | list[str]:
        numbers = range(len(self))[k]  # raises IndexError
        if isinstance(numbers, range):
            return [self[number] for number in numbers]
        if not self._stopped[numbers]:
            return ""
        if numbers not in self._known:
            self._known[numbers] = self._reason(numbers)
        return self._known[numbers]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    def __reduce__(self) -> tuple[type[tuple], tuple[list[str]]]:
        return tuple, (list(self),)


@dataclass(eq=False, repr=False)
class RolloutBatch:
    """k runs: `batch["error_rms"]` (k, joints), `batch["elbow_joint/position"]` (k, times), `batch.final[…]` (k,).

    parameters: as given; ticks (k,): that ran after the first; stopped (k,): bool; faults: of each run, why it was
    stopped, else "".
    """

    rig: str
    joints: tuple[str, ...]
    parameters: Mapping[str, Array]
    metrics: Mapping[str, Array]
    t: Array  # (times,) s, of the samples
    samples: Mapping[str, Array]  # signal -> (k, times); NaN after a fault
    final: Mapping[str, Array]  # signal -> (k,), in the last tick
    ticks: Array
    stopped: Array
    faults: Sequence[str]

    def __len__(self) -> int:
        return len(self.ticks)

    def __getitem__(self, name: str) -> Array:
        """A metric, (k, joints) or as its function returns it, or a signal that was kept, (k, times). Raises KeyError
        with what exists."""
        for found in (self.metrics, self.samples):
            if name in found:
                return found[name]
        known = [*self.metrics, *self.samples]
        hint = did_you_mean(name, known) if known else "; nothing was kept, see metrics, signals and every"
        if name in self.final:
            hint = "; it was not kept over time: use batch.final, or signals="
        raise KeyError(f"no metric or signal '{name}'{hint}")

    def __repr__(self) -> str:
        names = ", ".join(self.metrics) or "no metrics"
        return (
            f"<RolloutBatch {self.rig}: {len(self)} {plural(len(self), 'run')}, {self.stopped.sum()} stopped, {names}>"
        )

    def to_pandas(self) -> pandas.DataFrame:
        """A row per run: its parameters, its metrics by joint, how it ended. Raises ImportError without pandas."""
        try:
            import pandas
        except ImportError:
            raise ImportError("to_pandas needs pandas; run 'pip install pandas'") from None
        columns: dict[str, Any] = {}
        for name, values in self.parameters.items():
            columns |= _columns(name, values, ())
        for name, values in self.metrics.items():
            columns |= _columns(name, values, self.joints if name in METRICS else ())
        return pandas.DataFrame({**columns, "ticks": self.ticks, "stopped": self.stopped})


def _columns(name: str, values: Array, labels: Sequence[str]) -> dict[str, Array]:
    """One column per element of a run."""
    flat = values.reshape(len(values), -1)
    if flat.shape[1] == 1 and not labels:
        return {name: flat[:, 0]}
    return {f"{name}/{labels[j] if labels else j}": flat[:, j] for j in range(flat.shape[1])}
