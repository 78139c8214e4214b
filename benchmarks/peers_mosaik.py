"""A loop of two simulators in mosaik, a peer of masters in Python."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks.peers import import_peer

Update = Callable[[float, float], float]  # (own value, input) -> the value after a step


def run_loop(
    updates: tuple[Update, Update], starts: tuple[float, float], steps: int, after: Callable[[], None]
) -> float:
    """Step two simulators in turns: the first one gets what the second one had before the step, the second one what
    the first one has after it. after: called after each step of both. Returns the last value of the second one.
    Raises MissingPeer."""
    mosaik, api = import_peer("mosaik"), import_peer("mosaik_api_v3")
    starters = import_peer("mosaik.starters")
    made: list[Any] = []

    class Simulated(api.Simulator):
        def __init__(self, update: Update, start: float, after: Callable[[], None]) -> None:
            models = {"Value": {"public": True, "params": [], "attrs": ["u", "y"]}}
            super().__init__({"api_version": "3.0", "type": "time-based", "models": models})
            self.update, self.value, self.after = update, start, after
            made.append(self)

        def create(self, num: int, model: str) -> list[dict[str, str]]:
            return [{"eid": "value", "type": model}]

        def step(self, time: int, inputs: dict[str, Any], max_advance: int) -> int:
            (given,) = inputs["value"]["u"].values()
            self.value = self.update(self.value, given)
            self.after()
            return time + 1

        def get_data(self, outputs: dict[str, list[str]]) -> dict[str, dict[str, float]]:
            return {"value": {"y": self.value}}

    sims = zip(updates, starts, (lambda: None, after), strict=True)
    config = {name: starters.PythonStarter(Simulated, args=args) for name, args in zip("AB", sims, strict=True)}
    world = mosaik.World(config, skip_greetings=True, configure_logging=False)
    a, b = (world.start(name).Value() for name in config)
    world.connect(a, b, ("y", "u"))
    world.connect(b, a, ("y", "u"), time_shifted=True, initial_data={"y": starts[1]})
    world.run(until=steps, print_progress=False)
    return made[1].value
