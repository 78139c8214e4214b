"""The formulations of the equations of motion side by side: whether they agree, and what they cost."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from cosim.apps.derive.graph_report import keep_files_of, read_rig_with_joints
from cosim.apps.derive.plant_model import model_of, read_model
from cosim.apps.derive.tables import counted, table
from cosim.core.compile import ArrayPort, Compiled, compile
from cosim.core.compile.compiled import INTERPRET_VARIABLE, interpreting
from cosim.core.errors import InputError, RunError
from cosim.mechanics.formulations import (
    SEPARATE_BODIES,
    Formulation,
    dependent_row,
    known_formulations,
    loaded,
)
from cosim.mechanics.multibody import Model, assembly
from cosim.mechanics.multibody.description.robot_formats import SUFFIXES
from cosim.mechanics.multibody.part_names import given_names
from cosim.output import console
from cosim.output.output_files import write_json

STATES, SEED = 5, 0
ATTEMPTS = 20  # random guesses of a configuration with closed loops
LARGEST_DIFFERENCE = 1e-9  # relative
TIMED = 0.05  # s, of calls that are timed together
BLOCKS = 5

State = tuple[np.ndarray, np.ndarray, np.ndarray]  # q, v, τ


@dataclass(frozen=True)
class Compared:
    """A formulation of a mechanism; difference: of q̈ to the separate bodies, relative to the largest.
    left_out: states at which the coordinates that it chose in advance are singular."""

    name: str
    about: str
    source: str
    difference: float
    operations: int
    compile_s: float
    call_s: float
    left_out: int = 0


def derive_comparison(path: Path, json: Path | None = None) -> None:
    """Print the formulations that apply to the mechanism of a rig or robot file, at random states, and why the others
    do not. json: a file for the figures, - for stdout instead of the table.

    Raises InputError for errors in the file or if no state with closed loops is found, RunError if formulations differ.
    """
    console.check_targets([], json, rig=path)
    keep_files_of(path, json, "--json")
    if interpreting():
        raise InputError("is set, but the comparison measures compiled code; unset it", INTERPRET_VARIABLE)
    is_robot = path.suffix.lower() in SUFFIXES
    model = read_model(path) if is_robot else model_of(read_rig_with_joints(path))
    if not model.nv:
        raise InputError(f"'{model.mechanism.name}' has no degree of freedom to compare equations of", str(path))
    model, states = consistent_states(model)
    with console.progress(f"the formulations of {path.stem}") as shown:
        compared, refused = compare(model, states, shown)
    if str(json) != "-":
        print("\n".join(comparison_lines(model, compared, refused)))
    if json is not None:
        _write(json, model, compared, refused)
    differing = [row for row in compared if not row.difference < LARGEST_DIFFERENCE]
    if differing:
        what = ", ".join(f"'{row.name}' by {row.difference:.1e}" for row in differing)
        raise RunError(f"formulations differ from '{SEPARATE_BODIES}': {what}", str(path))


def consistent_states(model: Model) -> tuple[Model, list[State]]:
    """(the model without redundant constraint rows, random states that satisfy its constraints)."""
    rng, free = np.random.default_rng(SEED), np.zeros(model.nv, dtype=bool)
    found: list[State] = []
    failed: list[InputError] = []
    while len(found) < STATES:
        try:
            q = assembly.close_loops(model, model.random_configuration(rng), free)
            v = assembly.consistent_velocities(model, q, rng.uniform(-1.0, 1.0, model.nv), free)
            redundant = assembly.find_redundant(model, q, free)
        except InputError as error:
            failed.append(error)
            if len(failed) == ATTEMPTS:
                raise
            continue
        if redundant != model.equations.constraints.redundant:
            model = model.without(redundant)
        found.append((q, v, rng.uniform(-10.0, 10.0, model.nv)))
    return model, found


def compare(
    model: Model, states: list[State], progress: Callable[[float], None] | None = None
) -> tuple[list[Compared], dict[str, str]]:
    """(the formulations that apply, the separate bodies first; the others with the reason). progress: takes the
    fraction that is done."""
    known = known_formulations()
    expected = [_evaluated(model.equations, model, state) for state in states]
    refused = {name: why for name, module in known.items() if (why := module.refusal(model.equations)) is not None}
    able = sorted(known.keys() - refused, key=lambda name: (name != SEPARATE_BODIES, name))
    compared = []
    for name in able:
        module = known[name]
        formulation = loaded(module, model.equations)
        code, seconds = _compiled(formulation, model)
        regular = [k for k, (q, *_) in enumerate(states) if dependent_row(formulation, q) is None]
        if not regular:
            refused[name] = "the coordinates that it chose in advance are singular at all states"
            continue
        differences = [_difference(code(*_given(model, states[k])), expected[k]) for k in regular]
        call = _seconds_per_call(code, _given(model, states[regular[0]]))
        operations = code.routine.operations
        left_out = len(states) - len(regular)
        figures = max(differences), operations, seconds, call, left_out
        compared.append(Compared(name, module.ABOUT, module.SOURCE, *figures))
        if progress is not None:
            progress(len(compared) / len(able))
    return compared, refused


def _given(model: Model, state: State) -> tuple[Any, ...]:
    return (*state, 0.0) if model.timed else state


def _evaluated(formulation: Formulation, model: Model, state: State) -> np.ndarray:
    return np.asarray(formulation.forward_dynamics(*_given(model, state)), dtype=float)


def _difference(found: np.ndarray, expected: np.ndarray) -> float:
    return float(np.abs(found - expected).max() / max(np.abs(expected).max(), np.finfo(float).tiny))


def _compiled(formulation: Formulation, model: Model) -> tuple[Compiled, float]:
    """(machine code of q̈, the seconds that it took)."""
    ports = [ArrayPort("q", (model.nq,)), ArrayPort("v", (model.nv,)), ArrayPort("tau", (model.nv,))]
    ports += [ArrayPort("t", ())] * model.timed

    def forward_dynamics(*given: Any) -> Any:
        return formulation.forward_dynamics(*given)

    with _empty_cache():
        begun = time.perf_counter()
        code = compile(forward_dynamics, ports, "forward_dynamics", interpret=False)
        seconds = time.perf_counter() - begun
    assert isinstance(code, Compiled)
    return code, seconds


@contextmanager
def _empty_cache() -> Iterator[None]:
    """Within this block no code is there that was compiled before."""
    before = os.environ.get("COSIM_CACHE_DIR")
    with tempfile.TemporaryDirectory() as folder:
        os.environ["COSIM_CACHE_DIR"] = folder
        try:
            yield
        finally:
            del os.environ["COSIM_CACHE_DIR"]
            if before is not None:
                os.environ["COSIM_CACHE_DIR"] = before


def _seconds_per_call(code: Compiled, given: tuple[Any, ...]) -> float:
    """The least of a few blocks of calls, as other programs only add to it."""
    arrays, out = [np.asarray(x, dtype=float) for x in given], np.empty(code.outputs[0].shape)
    call: Callable[..., Any] = code.native

    def block(count: int) -> float:
        begun = time.perf_counter()
        for _ in range(count):
            call(*arrays, out=out)
        return (time.perf_counter() - begun) / count

    count = max(1, int(TIMED / max(block(3), 1e-8)))
    return min(block(count) for _ in range(BLOCKS))


# --- the report ---


def comparison_lines(model: Model, compared: list[Compared], refused: dict[str, str]) -> list[str]:
    equations = model.equations
    bodies, rows = _moving_bodies(model), len(equations.constraints.solved)
    size = f"{counted(bodies, 'moving body', 'moving bodies')}, {model.nv} dof"
    size += f", {counted(rows, 'constraint row')}" * bool(rows)
    head = ("formulation", "difference", "operations", "compile", "call")
    lines = [
        f"{model.mechanism.name}: {size}; accelerations at {STATES} random states",
        "",
        *table([head, *map(_cells, compared)], "<"),
        "",
        *table([(row.name, row.about) for row in compared], "<<"),
    ]
    for row in compared:
        if row.left_out:
            what = f"{row.left_out} of {STATES} states left out, where the coordinates that it chose are singular"
            lines += ["", f"{row.name}: {what}"]
    if refused:
        lines += ["", "do not apply", *table([(f"  {name}", why) for name, why in refused.items()], "<<")]
    return lines


def _cells(row: Compared) -> tuple[str, ...]:
    difference = "" if row.name == SEPARATE_BODIES else f"{row.difference:.1e}"
    return row.name, difference, f"{row.operations}", f"{row.compile_s:.2f} s", f"{row.call_s * 1e6:.3g} µs"


def _moving_bodies(model: Model) -> int:
    """Their number, an elastic link as one."""
    return len(given_names(joint.child for joint in model.equations.tree.joints))


def _write(json: Path, model: Model, compared: list[Compared], refused: dict[str, str]) -> None:
    document = {
        "mechanism": model.mechanism.name,
        "bodies": _moving_bodies(model),
        "dof": model.nv,
        "states": STATES,
        "seed": SEED,
        "formulations": [asdict(row) for row in compared],
        "refused": refused,
    }
    if write_json(json, document, "figures"):
        print(f"wrote    {json}")
