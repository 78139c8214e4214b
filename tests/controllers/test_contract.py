"""The contract of controllers, for every file of the folder: signals, shapes, finite values, purity, tracing."""

from collections.abc import Iterator
from dataclasses import fields, replace
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from cosim.core.compile import ArrayPort, compile
from cosim.core.errors import CompileError, InputError
from cosim.core.layout import Layout
from cosim.core.types import (
    ALL,
    COMMAND,
    FEEDBACK,
    REFERENCE,
    ControllerContext,
    DiscreteBlock,
    Limits,
    joint_signals,
    signals_of,
)
from cosim.mechanics.multibody import Model
from cosim.mechanics.multibody.description.urdf import parse_urdf
from tests.kit.levels import chosen
from tests.kit.plugins import modules, name_of, parameter_sets

ARM = "".join(
    ['<robot name="arm"><link name="base"/>']
    + [
        f'<link name="l{k}"><inertial><origin xyz="0.2 0 0.1"/><mass value="{1 + k}"/>'
        '<inertia ixx="0.02" iyy="0.03" izz="0.04" ixy="0" ixz="0" iyz="0"/></inertial></link>'
        for k in range(3)
    ]
    + [
        f'<joint name="{"abc"[k]}" type="continuous"><parent link="{"base" if k == 0 else f"l{k - 1}"}"/>'
        f'<child link="l{k}"/><origin xyz="0.4 0 0"/><axis xyz="{axis}"/>'
        '<dynamics damping="0.5" friction="0.2"/></joint>'
        for k, axis in enumerate(("0 0 1", "0 1 0", "1 0 0"))
    ]
    + ["</robot>"]
)
MODEL = Model(parse_urdf(ARM))
JOINTS, INDEX, N = ("c", "a"), np.array([2, 0]), 2
ALLOWED = {**joint_signals((*FEEDBACK, *REFERENCE), N), **joint_signals(ALL, MODEL.nv)}


def context(prescribed: bool) -> ControllerContext:
    limits = Limits(np.full(N, -3.0), np.full(N, 3.0), np.full(N, 5.0), np.full(N, 50.0))
    return ControllerContext(JOINTS, INDEX, MODEL, 0.01, limits, np.array([False, prescribed, False]))


def loaded() -> Iterator[Any]:
    """Every controller with every set of parameters that it accepts."""
    for module in modules("cosim.plugins.controllers"):
        for label, params in parameter_sets(module, N, text="l2"):  # a link
            try:
                module.load(params, context(False))
            except InputError:  # combinations that the controller refuses
                continue
            yield pytest.param(module, params, id=f"{name_of(module)}: {label}")


LOADED = list(loaded())
CASES = pytest.mark.parametrize(("module", "params"), LOADED)


def test_every_controller_accepts_some_parameters() -> None:
    assert {name_of(case.values[0]) for case in LOADED} == set(map(name_of, modules("cosim.plugins.controllers")))


def inputs_of(block: Any, seed: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    return {name: rng.uniform(-1.0, 1.0, signal.shape) for name, signal in block.inputs.items()}


@CASES
def test_signals_and_shapes(module: ModuleType, params: Any) -> None:
    block = module.load(params, context(False))
    assert isinstance(block, DiscreteBlock)
    assert block.params == params
    assert block.inputs.items() <= ALLOWED.items()
    assert dict(block.outputs) == dict(joint_signals(COMMAND, N))
    state = block.initial()
    after, y = block.update(0.0, block.params, state, inputs_of(block, 0))
    assert y.keys() == {*COMMAND, *signals_of(block)} and after.keys() == state.keys()
    assert all(np.shape(after[name]) == np.shape(state[name]) for name in state)
    for name in COMMAND:
        assert np.shape(y[name]) == (N,)
    for name, signal in signals_of(block).items():
        assert np.shape(y[name]) == signal.shape and signal.shape in ((), (N,))


@CASES
@pytest.mark.parametrize("prescribed", [False, True])
def test_results_are_finite_and_depend_on_the_arguments_alone(
    module: ModuleType, params: Any, prescribed: bool
) -> None:
    def run(block: Any, steps: int = 3) -> list[Any]:
        state, results = block.initial(), []
        for k in range(steps):
            u = inputs_of(block, k)
            before = {name: value.copy() for name, value in u.items()}
            state, y = block.update(0.01 * k, block.params, state, u)
            assert all(np.array_equal(u[name], before[name]) for name in u)
            results.append([np.array(y[name], dtype=float) for name in COMMAND])
        return results

    block = module.load(params, context(prescribed))
    first, again, other = run(block), run(block), run(module.load(params, context(prescribed)))
    assert np.isfinite(first).all()
    np.testing.assert_array_equal(first, again)
    np.testing.assert_array_equal(first, other)


def is_tuple_of_joints(value: Any) -> bool:
    return isinstance(value, tuple) and len(value) == N and all(isinstance(each, float) for each in value)


def choices(case: Any) -> Iterator[tuple[str, str, Any]]:
    """Which of the options of its controller a case takes, and which fields are as they are by default."""
    module, params = case.values
    for field in fields(params):
        value = getattr(params, field.name)
        as_by_default = value in (field.default, (field.default,) * N)
        yield name_of(module), field.name, value if isinstance(value, (bool, str)) else as_by_default


@pytest.mark.parametrize(("module", "params"), chosen(LOADED, choices))
def test_traced_results_equal_numeric_results_or_the_error_names_the_line(module: ModuleType, params: Any) -> None:
    block = module.load(params, context(True))
    layout, names = Layout(block.initial()), list(block.inputs)
    tuned = {f.name: np.array(value) for f in fields(params) if is_tuple_of_joints(value := getattr(params, f.name))}

    def update(t: Any, x: Any, *values: Any) -> tuple[Any, ...]:
        given = dict(zip((*names, *tuned), values, strict=True))
        p = replace(block.params, **{name: given[name] for name in tuned})
        after, y = block.update(t, p, layout.unpack(x), {name: given[name] for name in names})
        return layout.pack(after), *(y[name] for name in COMMAND)

    shapes = [ArrayPort(name, block.inputs[name].shape) for name in names]
    shapes += [ArrayPort(name, value.shape) for name, value in tuned.items()]
    try:
        compiled = compile(update, [ArrayPort("t", ()), ArrayPort("x", (layout.size,)), *shapes], "update")
    except CompileError as error:
        assert f"{module.__file__}:" in str(error)  # runs in Python; the summary gives this reason
        return
    x = layout.pack(block.initial())
    for k in range(5):
        arguments = [np.array(0.01 * k), x, *inputs_of(block, k).values(), *tuned.values()]
        expected = update(*arguments)
        for got, value in zip(compiled(*arguments), expected, strict=True):
            np.testing.assert_allclose(got, value, rtol=1e-10, atol=1e-10)
        x = np.asarray(expected[0], dtype=float)
