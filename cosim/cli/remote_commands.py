"""Commands for a run that runs elsewhere, through its control socket."""

from __future__ import annotations

from pathlib import Path

from cosim.core.errors import InputError


def set_(values: list[str], connect: str | None, key: Path | None, force: bool) -> None:
    """Set parameters of a run while it runs, all between the same two ticks."""
    from cosim.output.client import connect as connected

    changes = _assignments(values)
    with connected(connect, "cosim live set", key=key) as client, client.control(force):
        tick = client.set(changes)
        print(f"before tick {tick:,}: " + ", ".join(f"{name} = {value}" for name, value in changes.items()))


def get(names: list[str], connect: str | None, key: Path | None) -> None:
    """Print parameters of a run while it runs."""
    from cosim.output.client import connect as connected
    from cosim.output.text_table import TextTable

    with connected(connect, "cosim live get", key=key) as client:
        known, values = client.parameters(), client.get(*names)
    table = TextTable(("parameter", "unit"), ("value", "min", "max"))
    for name, value in values.items():
        about = known[name.partition("/")[0]]
        numbers = value if isinstance(value, list) else [value]
        bounds = ("–" if about[bound] is None else f"{about[bound]:g}" for bound in ("min", "max"))
        shown = ("∞" if number is None else f"{number:g}" for number in numbers)
        table.add_row(name, about["unit"], ", ".join(shown), *bounds)
    print("\n".join(table.lines()))


def stop(connect: str | None, key: Path | None, force: bool, now: bool) -> None:
    """Stop a run while it runs: a controlled stop where it has one, or immediately."""
    from cosim.output.client import connect as connected

    with connected(connect, "cosim live stop", key=key) as client:
        if now:
            print(f"emergency stop before tick {client.estop():,}")
            return
        with client.control(force):
            print(f"stopped before tick {client.stop():,}")


def _assignments(texts: list[str]) -> dict[str, float | list[float] | str]:
    found: dict[str, float | list[float] | str] = {}
    for name, value in map(_assignment, texts):
        if name in found:
            raise InputError(f"{name} is given twice; give each parameter once", "cosim live set")
        found[name] = value
    return found


def _assignment(text: str) -> tuple[str, float | list[float] | str]:
    """Name and value of `arm.kp=800`, `arm.kp=[800, 400]` or `arm.kp=800 N*m/rad`."""
    from orjson import JSONDecodeError, loads

    name, sign, value = text.partition("=")
    if not sign or not name.strip() or not value.strip():
        raise InputError(f"expected NAME=VALUE such as arm.kp=800, got '{text}'", "cosim live set")
    try:
        return name.strip(), loads(value)
    except JSONDecodeError:
        return name.strip(), value.strip()
