"""User-defined joints, constraint laws and force laws: loaded and checked before use.

Their functions must return arrays of the right shape and be traceable, for joints and constraints also differentiable.
An error names the line of the user's file.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from cosim.core import ops
from cosim.core.compile.trace import Trace, origin, trace
from cosim.core.errors import CompileError, InputError, where_raised
from cosim.core.plugin_loading import CONSTRAINT, FORCE, JOINT, SHAPES, PluginKind
from cosim.core.types import Numeric, breaks_of
from cosim.core.units import is_work
from cosim.mechanics.multibody.constraint_laws import ConstraintLaw, ForceLaw, FrameState, ReactionSpec
from cosim.mechanics.multibody.differentiate import HingeOf
from cosim.mechanics.multibody.elastic.shape_functions import ShapeFunctions
from cosim.mechanics.multibody.joints import GeneralMotion
from cosim.mechanics.multibody.mechanism import pose_of
from cosim.rig.reading.plugins import load_plugin, read_named_plugin
from cosim.rig.reading.schema import Reading
from cosim.rig.reading.yaml_source import YamlValue
from cosim.simulation.plant.breaks import just_after, just_before
from cosim.simulation.plant.recorded_reactions import OF_A_CONSTRAINT

UserFunction = Callable[..., Numeric]

ORTHONORMAL = 1e-6  # tolerance of the axes of a rotation
STEP, DERIVATIVE_TOLERANCE = 1e-6, 1e-3  # step and relative tolerance of finite differences
LINEAR = 1e-9  # relative tolerance of linearity in the velocities
CONTINUOUS = 1e-9  # relative to 1 + the values, of a jump in time that counts as none
INDEPENDENT = 1e-8  # smallest singular value of linearly independent unit directions


def read_motion(type: str, params: YamlValue, path: tuple, reading: Reading) -> GeneralMotion | None:
    """The user-defined joint that the section at `path` names by its `type`; None after an error."""
    return _read(
        JOINT,
        GeneralMotion,
        "GeneralMotion of cosim.plugin",
        _check_motion,
        type,
        params,
        path,
        reading,
    )


def read_law(
    type: str, params: YamlValue, path: tuple, reading: Reading, links: int, nq: int, nv: int
) -> ConstraintLaw | None:
    """The user-defined constraint law, checked with `links` frames, `nq` coordinates and `nv` velocities of joints."""

    def check(law: ConstraintLaw) -> None:
        _check_law(law, links, nq, nv)

    return _read(
        CONSTRAINT,
        ConstraintLaw,
        "ConstraintLaw of cosim.plugin",
        check,
        type,
        params,
        path,
        reading,
    )


def read_force_law(
    type: str, params: YamlValue, path: tuple, reading: Reading, links: int, nq: int, nv: int
) -> ForceLaw | None:
    """The user-defined force law, checked with `links` frames, `nq` coordinates and `nv` velocities of joints."""

    def check(law: ForceLaw) -> None:
        _check_force_law(law, links, nq, nv)

    return _read(FORCE, ForceLaw, "ForceLaw of cosim.plugin", check, type, params, path, reading)


def read_shapes(type: str, params: YamlValue, path: tuple, reading: Reading) -> ShapeFunctions | None:
    """The mode shapes of a link along x that the section at `path` names by its `type`; None after an error."""
    words = "ShapeFunctions of cosim.plugin"
    return _read(SHAPES, ShapeFunctions, words, _check_shapes, type, params, path, reading)


def _read(
    kind: PluginKind,
    cls: type,
    words: str,
    check: Callable[[Any], None],
    type: str,
    params: YamlValue,
    path: tuple,
    reading: Reading,
) -> Any:
    plugin = read_named_plugin(kind, type, params, path, reading)
    if plugin is None:
        return None
    at, before = (*path, "type"), len(reading.errors)
    made = load_plugin(plugin, at, reading)
    if len(reading.errors) > before:
        return None
    if not isinstance(made, cls):
        what = f"load returned {_type_name(made)}; return a {words} ({origin(plugin.module.load)})"
        return reading.fail(at, what)
    try:
        check(made)
    except ValueError as error:
        return reading.fail(at, str(error))
    return made


def _type_name(value: object) -> str:
    return "nothing" if value is None else f"a {type(value).__name__}"


def _check_motion(motion: GeneralMotion) -> None:
    """Raises ValueError for an invalid motion."""
    n = len(motion.names)
    if len(motion.units) != n or not set(motion.units) <= {"rad", "m"}:
        what = f"names the coordinates {motion.names} with the units {motion.units}"
        raise ValueError(f"{what}; give each coordinate one of the units 'rad' and 'm' ({origin(motion.place)})")
    if len(set(motion.names)) < n:
        what = f"names the coordinates {motion.names}; give each coordinate another name"
        raise ValueError(f"{what} ({origin(motion.place)})")
    values = _call_on_numbers("place", motion.place, lambda q, t: tuple(motion.place(q, t)), [_sample_values(n), 0.0])
    shapes = [np.shape(value) for value in values]
    wanted = f"the child's axes (3, 3) and its origin (3,) ({origin(motion.place)})"
    if shapes != [(3, 3), (3,)]:
        raise ValueError(f"place returns arrays of shapes {', '.join(map(str, shapes))}; return {wanted}")
    axes = np.asarray(values[0], dtype=float)
    if not (np.abs(axes.T @ axes - np.eye(3)).max() < ORTHONORMAL and np.linalg.det(axes) > 0.0):
        raise ValueError(f"the axes that place returns are no rotation; return {wanted}")
    traced = _trace_checked("place", lambda q, t: tuple(motion.place(q, t)), [_sample_values(n), 0.0])
    _check_time("place", motion.place, traced, motion.timed)
    _check_breaks("place", motion.place, traced, [_sample_values(n)], motion)
    for q in (np.zeros(n), _sample_values(n)):
        _check_smooth("place", motion.place, traced, [q, 0.0], q)
    _check_independent(motion, _sample_values(n))  # not at 0, where a joint may be singular


def _check_independent(motion: GeneralMotion, q: np.ndarray) -> None:
    """Raises ValueError unless the coordinates move the child in linearly independent directions."""
    columns = HingeOf(motion)(q, np.zeros(q.size), 0.0).columns
    directions = np.array([np.concatenate([c.linear, c.angular]) for c in columns], dtype=float).reshape(-1, 6)
    sizes = np.linalg.norm(directions, axis=1, keepdims=True)
    rank = np.linalg.matrix_rank(directions / np.where(sizes > 0.0, sizes, 1.0), tol=INDEPENDENT)
    if rank < q.size:
        moves = f"{_count(q.size, 'coordinate')} of place {'moves' if q.size == 1 else 'move'} the child"
        what = f"the {moves} in {_count(int(rank), 'direction')} {_position_text(q)}"
        raise ValueError(f"{what}; let each have a direction of its own ({origin(motion.place)})")


def _check_law(law: ConstraintLaw, links: int, nq: int, nv: int) -> None:
    """Raises ValueError for an invalid law."""
    if not law.rows or not all(isinstance(row, ReactionSpec) for row in law.rows):
        raise ValueError("the law has no rows; give it one ReactionSpec of cosim.plugin per equation")
    for k, row in enumerate(law.rows):
        if not all(isinstance(text, str) for text in row[:3]):
            raise ValueError(f"row {k + 1} is {tuple(row[:3])}; give its name and its units as text")
        if not (isinstance(row.length, float | int) and 0.0 < row.length < float("inf")):
            raise ValueError(f"row {k + 1} has the length {row.length}; give it a length above 0 in m")
    rotations, positions, *moving = _sample_frames(links)
    q, v, t = _sample_values(nq), _sample_values(nv), 0.0

    def residual(rotations: Numeric, positions: Numeric, q: Numeric, t: Numeric) -> Numeric:
        assert law.residual is not None
        return law.residual([FrameState(rotations[k], positions[k]) for k in range(links)], q, t)

    def rate(
        rotations: Numeric, positions: Numeric, angular: Numeric, linear: Numeric, q: Numeric, v: Numeric, t: Numeric
    ) -> Numeric:
        assert law.rate is not None
        frames = [FrameState(rotations[k], positions[k], angular[k], linear[k]) for k in range(links)]
        return law.rate(frames, q, v, t)

    count, parts = 0, []
    for name, written, fn, arguments in (
        ("residual", law.residual, residual, [rotations, positions, q, t]),
        ("rate", law.rate, rate, [rotations, positions, *moving, q, v, t]),
    ):
        if written is None:
            continue
        shape = np.shape(_call_on_numbers(name, written, fn, arguments))
        if len(shape) != 1:
            what = f"{name} returns an array of shape {shape}; return a list with one number per row"
            raise ValueError(f"{what} ({origin(written)})")
        traced = _trace_checked(name, fn, arguments)
        _check_time(name, written, traced, law.timed)
        if written is law.residual:
            _check_breaks(name, written, traced, arguments[:-1], law)
        _check_smooth(name, written, traced, arguments, q)
        if written is law.rate:
            _check_linear(written, lambda w, u, v: rate(rotations, positions, w, u, q, v, t), [*moving, v])
        count += shape[0]
        parts.append((name, written, shape[0]))
    if not parts:
        raise ValueError("the law has neither residual nor rate; give it one of them")
    if count != len(law.rows):
        who = " and ".join(f"{name} ({origin(written)})" for name, written, _ in parts)
        verb = "returns" if len(parts) == 1 else "return together"
        have, given = _count(len(law.rows), "row"), _count(count, "number")
        raise ValueError(f"the law has {have}, but {who} {verb} {given}; return one per row")
    owners = [(name, written) for name, written, size in parts for _ in range(size)]
    for k, (row, (name, written)) in enumerate(zip(law.rows, owners, strict=True)):
        if row.residual_unit.endswith("/s") != (name == "rate"):
            must = "end in '/s', units of residual not" if name == "rate" else "not end in '/s', units of rate do"
            unit = row.residual_unit
            what = f"row {k + 1}, '{row.name}', is one of {name}, and what vanishes in it has the unit '{unit}'"
            raise ValueError(f"{what}; units of {name} must {must} ({origin(written)})")
        if row.name in (*OF_A_CONSTRAINT, *(other.name for other in law.rows[:k])):
            raise ValueError(f"row {k + 1}: there is a signal '{row.name}' of the constraint already; rename the row")
        if not is_work(row.unit, row.residual_unit):
            product = "a power, W: N and m/s, N*m and rad/s" if name == "rate" else "an energy, J: N and m, N*m and rad"
            what = f"row {k + 1}, '{row.name}', has a reaction in '{row.unit}' and {name} in '{row.residual_unit}'"
            raise ValueError(f"{what}; their product must be {product} ({origin(written)})")


def _sample_frames(links: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Rotations (links, 3, 3), positions, angular and linear velocities (links, 3) without special values."""
    poses = [pose_of((0.3 * k, 0.2, 0.1 * k), (0.1 * k, 0.15, 0.2 * k)) for k in range(1, links + 1)]
    rotations = np.array([pose.rotation for pose in poses]).reshape(links, 3, 3)
    positions = np.array([pose.position for pose in poses]).reshape(links, 3)
    return rotations, positions, 0.1 * rotations[:, 0], 0.2 * rotations[:, 1]


def _check_force_law(law: ForceLaw, links: int, nq: int, nv: int) -> None:
    """Raises ValueError for an invalid law."""
    if law.wrenches is None and law.efforts is None:
        raise ValueError("the law has neither wrenches nor efforts; give it one of them")
    arguments = [*_sample_frames(links), _sample_values(nq), _sample_values(nv), 0.0]
    wanted = {
        "wrenches": ([(links, 3), (links, 6)], "a force (3,), or force and moment (6,), for each link of 'between'"),
        "efforts": ([(nv,)], "one number for each dof of 'joints'"),
    }
    for name, (shapes, words) in wanted.items():
        written = getattr(law, name)
        if written is None:
            continue

        def fn(
            rotations: Numeric,
            positions: Numeric,
            angular: Numeric,
            linear: Numeric,
            q: Numeric,
            v: Numeric,
            t: Numeric,
            written: UserFunction = written,
        ) -> Numeric:
            frames = [FrameState(rotations[k], positions[k], angular[k], linear[k]) for k in range(links)]
            return ops.array(written(frames, q, v, t))

        shape = np.shape(_call_on_numbers(name, written, fn, arguments))
        if shape not in shapes or shape[0] == 0:
            raise ValueError(f"{name} returns an array of shape {shape}; return {words} ({origin(written)})")
        _check_time(name, written, _trace_checked(name, fn, arguments), law.timed)
    _times_of(law, law.wrenches or law.efforts)


def _check_shapes(shapes: ShapeFunctions) -> None:
    """Raises ValueError for invalid shapes."""
    for name in ("mass", "linear", "angular", "curve"):
        written = getattr(shapes, name)
        if written is not None:
            _call_on_numbers(name, written, written, [0.5 * shapes.length])
    try:
        shapes.link()
        shapes.displacement(np.zeros(3))
    except InputError as error:
        raise ValueError(f"{error.what} ({origin(shapes.linear)})") from None


def _check_linear(written: UserFunction, fn: UserFunction, speeds: Sequence[Numeric]) -> None:
    """Raises ValueError unless the rate is affine in the velocities, a₀ + a·q̇."""
    rng = np.random.default_rng(0)
    first, second = ([rng.uniform(0.5, 1.0, np.shape(speed)) for speed in speeds] for _ in range(2))
    together, none = [a + b for a, b in zip(first, second, strict=True)], [np.zeros(np.shape(s)) for s in speeds]
    terms = np.array(
        [_call_on_numbers("rate", written, fn, each) for each in (together, none, first, second)], dtype=float
    )
    wrong = ~(np.abs(terms[0] + terms[1] - terms[2] - terms[3]) <= LINEAR * (1.0 + np.abs(terms).sum(axis=0)))
    if wrong.any():
        what = "rate is not linear in the velocities; leave out squares and products of them"
        raise ValueError(f"{what} ({origin(written)})")


def _position_text(q: np.ndarray) -> str:
    return f"at the coordinates ({', '.join(f'{x:g}' for x in q)})" if q.size else "at simple positions of its frames"


def _count(n: int, word: str) -> str:
    return f"{n} {word}" if n == 1 else f"{n} {word}s"


def _sample_values(n: int) -> np.ndarray:
    """(n,) numbers without special values such as 0 and 1."""
    return 0.1 * np.arange(1.0, n + 1.0)


def _call_on_numbers(name: str, written: UserFunction, fn: UserFunction, arguments: Sequence[Numeric]) -> Numeric:
    """The result of `fn`, which calls the user's `written`, for numbers. Raises ValueError if it fails."""
    try:
        with np.errstate(all="ignore"):
            value = fn(*arguments)
        parts = value if isinstance(value, tuple) else (value,)
        for part in parts:
            np.asarray(part, dtype=float)
        return value
    except Exception as error:
        what = f"{type(error).__name__}: {' '.join(str(error).split())}"
        raise ValueError(f"{name} fails on numbers: {what} ({_failing_line(error, written)})") from None


def _trace_checked(name: str, fn: UserFunction, arguments: Sequence[Numeric]) -> Trace:
    """The trace of `fn`. Raises ValueError if it cannot be traced."""
    try:
        return trace(fn, [np.shape(argument) for argument in arguments], name)
    except CompileError as error:
        raise ValueError(f"{name} fails on symbols: {error.what} ({error.place})") from None


def _failing_line(error: Exception, written: UserFunction) -> str:
    """The user's line that failed; the location of the function if its result is wrong."""
    place = where_raised(error, but=(__file__,))
    return origin(written) if place.startswith(f"{__file__}:") else place


def _check_time(name: str, written: UserFunction, traced: Trace, timed: bool) -> None:
    """Raises ValueError for a function of time without `timed`, because time derivatives would omit it."""
    import casadi

    if not timed and casadi.depends_on(casadi.vertcat(*traced.outputs), traced.inputs[-1]):
        raise ValueError(f"{name} depends on the time t; pass timed=True ({origin(written)})")


def _times_of(given: object, written: UserFunction | None) -> np.ndarray:
    """The breaks that a user's motion or law declares. Raises ValueError for what are no times."""
    try:
        return breaks_of(given)
    except InputError as error:
        raise ValueError(f"{error.what} ({origin(written) if written else 'breaks'})") from None


def _check_breaks(name: str, written: UserFunction, traced: Trace, arguments: Sequence[Numeric], given: object) -> None:
    """Raises ValueError for breaks that are no times, and for a function of the arguments and the time that jumps at
    one of them: a body would be elsewhere."""
    import casadi

    times = _times_of(given, written)
    fn = casadi.Function("f", traced.inputs, [casadi.vertcat(*traced.outputs)])
    flat = [np.ravel(argument) for argument in arguments]
    for before, after, time in zip(just_before(times), just_after(times), times, strict=True):
        here, there = (np.asarray(fn(*flat, t)).ravel() for t in (before, after))
        if time and (np.abs(there - here) > CONTINUOUS * (1.0 + np.abs(here))).any():
            what = f"{name} jumps at {time:.6g} s, which no motion does"
            raise ValueError(f"{what}; return what is continuous ({origin(written)})")


def _check_smooth(name: str, written: UserFunction, traced: Trace, arguments: Sequence[Numeric], q: np.ndarray) -> None:
    """Raises ValueError unless the traced derivatives, which give velocities and reactions, agree with differences.

    q: the coordinates among the arguments."""
    import casadi

    x = casadi.vertcat(*traced.inputs)
    values = casadi.vertcat(*traced.outputs)
    fn = casadi.Function("f", [x], [values, casadi.jacobian(values, x)])
    at = np.concatenate([np.ravel(argument) for argument in arguments])
    direction = np.random.default_rng(0).uniform(0.5, 1.0, at.size)
    here, slope = fn(at)
    along = np.asarray(slope @ direction).ravel()
    ahead, back = ((np.asarray(fn(at + h * direction)[0] - here).ravel()) / h for h in (STEP, -STEP))
    size = 1.0 + np.abs(ahead) + np.abs(back)
    wrong = ~(np.abs(ahead - along) < DERIVATIVE_TOLERANCE * size) | ~(
        np.abs(back - along) < DERIVATIVE_TOLERANCE * size
    )
    if wrong.any():
        what = f"{name} is not differentiable {_position_text(q)}"
        raise ValueError(f"{what}; use smooth functions ({origin(written)})")
