"""Sweeps over many bodies as loops in machine code.

Straight-line code of a thousand bodies compiles slowly and exceeds the instruction cache. Here the function of one
body is traced once per class of bodies (same kind of joint; also same constants if there are few distinct bodies)
and called in a loop. Values common to all bodies of a class are constants in its code. Values that stay zero along a
sweep are found by tracing to a fixed point, so that a planar chain costs the operations of a planar chain.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol

import numpy as np

from cosim.core import ops
from cosim.core.compile.loops import Buffer, LoopWriter
from cosim.core.compile.pytree import VARIES, Form, Pytree, count, flatten, unflatten
from cosim.core.compile.routine import Routine
from cosim.core.compile.trace import RoutineBase, Shape, symbols
from cosim.core.types import Array, Numeric

BodyFunction = Callable[..., Pytree]  # (kind, body, *values) -> result, of one body

# with more distinct bodies, differing constants are read from a table
MAX_CLASSES = 12


class BodySweeps(Protocol):
    """The tree of bodies that sweeps go over, with sweeps that evaluate on numbers: `multibody.sweeps.Unrolled`."""

    @property
    def parents(self) -> Sequence[int]: ...  # −1: the ground

    @property
    def kinds(self) -> Sequence[Hashable]: ...

    @property
    def bodies(self) -> Sequence[Pytree]: ...


@dataclass(frozen=True)
class BodyColumn:
    """One pytree per body: its form, and the buffer of the varying scalars of each body."""

    form: Form
    buffer: Buffer


@dataclass(frozen=True)
class Input:
    """An input vector of the routine; `index`: among its inputs."""

    index: int


@dataclass
class Result:
    """An output of the routine: (nv,) from a column, or a sum over bodies."""

    shape: Shape
    write: Callable[[LoopWriter, str], None]


@dataclass
class RolledSweeps:
    """Implements `multibody.sweeps.Sweeps` by writing loops; vectors are `Input`s or constant arrays."""

    parents: Sequence[int]
    kinds: Sequence[Hashable]
    bodies: Sequence[Pytree]
    sizes: Sequence[tuple[int, int]]  # (nq, nv) of each body's joint
    name: str
    stages: list[Callable[[LoopWriter], None]] = field(default_factory=list)
    kernels: list[Routine] = field(default_factory=list)
    buffers: list[Buffer] = field(default_factory=list)

    @cached_property
    def classes(self) -> list[int]:
        """The class of each body."""
        exact = [(kind, str(flatten(body)[0])) for kind, body in zip(self.kinds, self.bodies, strict=True)]
        few = len(set(exact)) <= MAX_CLASSES
        keys = exact if few else [(kind, "") for kind in self.kinds]
        order = list(dict.fromkeys(keys))
        return [order.index(key) for key in keys]

    @cached_property
    def members(self) -> list[list[int]]:
        """The bodies of each class."""
        return [[k for k, c in enumerate(self.classes) if c == number] for number in range(max(self.classes) + 1)]

    @cached_property
    def _constants(self) -> tuple[list[Form], Buffer]:
        """The form of the bodies of each class, and the table of the differing constants."""
        forms, rows = [], [[] for _ in self.bodies]
        for members in self.members:
            form, _ = Form.of(self.bodies[members[0]])
            for k in members[1:]:
                form = form.merged(Form.of(self.bodies[k])[0])
            forms.append(form)
            for k in members:
                rows[k] = form.row(flatten(self.bodies[k])[0])
        return forms, self._table(rows)

    def _table(self, rows: list[list[float]]) -> Buffer:
        width = max(map(len, rows))
        table = np.zeros((len(rows), width))
        for k, row in enumerate(rows):
            table[k, : len(row)] = row
        return Buffer.table(f"table{len(self.buffers)}", table, self.buffers)

    # --- the interface of Sweeps ---

    def by_q(self, q: Numeric) -> BodyColumn:
        return self._cut(q, [nq for nq, _ in self.sizes])

    def by_v(self, v: Numeric) -> BodyColumn:
        return self._cut(v, [nv for _, nv in self.sizes])

    def _cut(self, vector: Numeric, sizes: list[int]) -> BodyColumn:
        starts = np.cumsum([0, *sizes[:-1]])
        if isinstance(vector, Input):
            form = Form((sizes[0],), (VARIES,) * sizes[0])
            return BodyColumn(form, Buffer.slices(f"in{vector.index}", starts, self.buffers))
        pieces = [vector[a : a + n] for a, n in zip(starts, sizes, strict=True)]
        form, _ = Form.of(pieces[0])
        for piece in pieces[1:]:
            form = form.merged(Form.of(piece)[0])
        return BodyColumn(form, self._table([form.row(flatten(piece)[0]) for piece in pieces]))

    def pick(self, column: BodyColumn, index: int) -> BodyColumn:
        _, fields = column.form.structure
        counts = [count(f) for f in fields]
        first = sum(counts[:index])
        chosen = column.form.constants[first : first + counts[index]]
        skipped = sum(c is VARIES for c in column.form.constants[:first])
        return BodyColumn(Form(fields[index], chosen), column.buffer.shifted(skipped))

    def vector(self, column: BodyColumn) -> Result:
        starts = np.cumsum([0, *[nv for _, nv in self.sizes][:-1]])
        total = sum(nv for _, nv in self.sizes)
        return Result((total,), lambda w, target: w.scatter(column.buffer, column.form.constants, target, starts))

    def outward(self, step: BodyFunction, root: Pytree, *columns: BodyColumn) -> BodyColumn:
        start, scalars = Form.of(root)
        passed, stored = self._fixed_point(step, start, columns)
        down, out = self._rows(passed, len(self.bodies) + 1), self._rows(stored, len(self.bodies))
        kernels = self._kernels(step, passed, columns, (passed, stored))
        first, given = passed.row(scalars), self._given(columns)
        self.stages.append(lambda w: w.outward(kernels, self.classes, self.parents, given, first, down, out))
        return BodyColumn(stored, out)

    def inward(self, own: BodyFunction, step: BodyFunction, *columns: BodyColumn) -> BodyColumn:
        def with_own(kind: Hashable, body: Pytree, passed: Pytree, *values: Pytree) -> Pytree:
            return step(kind, body, _sum(own(kind, body, *values), passed), *values)

        passed, stored = self._fixed_point(with_own, self._zero_form(own, columns), columns)
        sums, out = self._rows(passed, len(self.bodies) + 1), self._rows(stored, len(self.bodies))
        kernels = self._kernels(with_own, passed, columns, (passed, stored), adding=True)
        given = self._given(columns)
        self.stages.append(lambda w: w.inward(kernels, self.classes, self.parents, given, sums, out))
        return BodyColumn(stored, out)

    def gather(self, own: BodyFunction, *columns: BodyColumn) -> Result:
        zero = self._zero_form(own, columns)
        form = Form(zero.structure, (VARIES,) * len(zero.constants))
        total = self._rows(form, 1)

        def counted(kind: Hashable, body: Pytree, so_far: Pytree, *values: Pytree) -> Pytree:
            return _sum(own(kind, body, *values), so_far), ()

        kernels = self._kernels(counted, form, columns, (form, Form((tuple, ()), ())))
        given = self._given(columns)
        self.stages.append(lambda w: w.gather(kernels, self.classes, given, total))
        return Result((), lambda w, target: w.move(total, target))

    # --- tracing the function of one body ---

    def _fixed_point(self, step: BodyFunction, first: Form, columns: Sequence[BodyColumn]) -> tuple[Form, Form]:
        """(form of the value passed on, form of the value stored) for every body, starting from `first`: values that
        vary after a step are traced as varying, until the form does not change."""
        while True:
            traced = [self._trace(step, c, first, columns) for c in range(len(self.members))]
            widened = _merge_all([first, *(passed for passed, _ in traced)])
            if widened == first:
                return first, _merge_all([stored for _, stored in traced])
            first = widened

    def _given(self, columns: Sequence[BodyColumn]) -> list[Buffer]:
        return [self._constants[1], *(c.buffer for c in columns)]

    def _rows(self, form: Form, count: int) -> Buffer:
        return Buffer.workspace(f"rows{len(self.buffers)}", count, len(form.places), self.buffers)

    def _call(self, fn: BodyFunction, number: int, forms: Sequence[Form], rows: Sequence[Numeric]) -> Pytree:
        """fn of a body of class `number` with the varying scalars of the body and its arguments in `rows`."""
        kind = self.kinds[self.members[number][0]]
        body = self._constants[0][number].fill(rows[0])
        return fn(kind, body, *(form.fill(row) for form, row in zip(forms, rows[1:], strict=True)))

    def _shapes(self, number: int, forms: Sequence[Form]) -> list[Shape]:
        return [(len(form.places),) for form in (self._constants[0][number], *forms)]

    def _trace(self, step: BodyFunction, number: int, first: Form, columns: Sequence[BodyColumn]) -> tuple[Form, Form]:
        """The forms of the value that one step passes on and of the value it stores."""
        forms = [first, *(c.form for c in columns)]
        rows = [symbols("s", shape)[1] for shape in self._shapes(number, forms)]
        passed, stored = self._call(step, number, forms, rows)
        return Form.of(passed)[0], Form.of(stored)[0]

    def _zero_form(self, own: BodyFunction, columns: Sequence[BodyColumn]) -> Form:
        """The form of the result of `own`, with every scalar 0."""
        forms = [c.form for c in columns]
        rows = [symbols("s", shape)[1] for shape in self._shapes(0, forms)]
        _, structure = flatten(self._call(own, 0, forms, rows))
        return Form(structure, (0.0,) * count(structure))

    def _kernels(
        self,
        step: BodyFunction,
        first: Form,
        columns: Sequence[BodyColumn],
        given: tuple[Form, Form],
        adding: bool = False,
    ) -> list[Routine]:
        """One routine per class: (body, first, columns…) -> rows of the values passed on and stored.

        adding: the last argument is a row to which the value passed on is added.
        """
        numbers = range(len(self.members))
        routines = [self._kernel(step, number, first, columns, given, adding) for number in numbers]
        self.kernels += routines
        return routines

    def _kernel(
        self,
        step: BodyFunction,
        number: int,
        first: Form,
        columns: Sequence[BodyColumn],
        given: tuple[Form, Form],
        adding: bool,
    ) -> Routine:
        forms = [first, *(c.form for c in columns)]
        shapes = self._shapes(number, forms)

        def kernel(*rows: Numeric) -> tuple[Numeric, ...]:
            results = self._call(step, number, forms, rows[: len(forms) + 1])
            passed, stored = (
                ops.array(form.row([ops._boxed(x) for x in flatten(r)[0]]))
                for form, r in zip(given, results, strict=True)
            )
            return (rows[-1] + passed if adding else passed), stored

        if adding:
            shapes = [*shapes, (len(given[0].places),)]
        return Routine(kernel, shapes, f"{self.name}_step", self._uniform(columns))

    @staticmethod
    def _uniform(columns: Sequence[BodyColumn]) -> list[int]:
        """Inputs of a kernel that are tables: one value for all SIMD lanes."""
        return [0, *(k for k, c in enumerate(columns, 2) if c.buffer.constant)]


def _merge_all(forms: list[Form]) -> Form:
    result = forms[0]
    for form in forms[1:]:
        result = result.merged(form)
    return result


def _sum(x: Pytree, y: Pytree) -> Pytree:
    """The sum of two pytrees of one structure."""
    (a, structure), (b, _) = flatten(x), flatten(y)
    return unflatten(structure, iter([ops._boxed(p) + ops._boxed(q) for p, q in zip(a, b, strict=True)]))


class RolledRoutine(RoutineBase):
    """An algorithm over sweeps as a routine whose code is loops over bodies.

    algorithm(sweeps, *vectors) -> a result or a tuple of results; vectors that are None here are inputs,
    the others constants.
    """

    def __init__(
        self,
        algorithm: Callable[..., Numeric],
        reference: BodySweeps,
        sizes: Sequence[tuple[int, int]],
        shapes: Sequence[Shape],
        constants: Sequence[Array | None],
        name: str,
    ) -> None:
        """reference: the `Unrolled` sweeps of the same bodies, which evaluates on numbers."""
        self.algorithm, self.reference, self.constants, self.name = algorithm, reference, constants, name
        sweeps = RolledSweeps(reference.parents, reference.kinds, reference.bodies, sizes, name)
        given = iter(range(len(shapes)))
        vectors = [Input(next(given)) if c is None else c for c in constants]
        results = algorithm(sweeps, *vectors)
        self._sweeps, self._results = sweeps, list(results) if isinstance(results, tuple) else [results]
        self.shapes = tuple(shapes)
        self.output_shapes = tuple(r.shape for r in self._results)

    @property
    def callees(self) -> list[Routine]:
        return list({kernel.symbol: kernel for kernel in self._sweeps.kernels}.values())

    @property
    def operations(self) -> int:
        """Arithmetic operations of one evaluation."""
        sizes = [len(members) for members in self._sweeps.members]  # a stage has a kernel for each class
        return sum(kernel.operations * sizes[k % len(sizes)] for k, kernel in enumerate(self._sweeps.kernels))

    def _text(self, symbol: str, lanes: int) -> str:
        writer = LoopWriter(f"{symbol}.{lanes}", lanes, len(self.bodies), len(self.shapes), len(self._results))
        for stage in self._sweeps.stages:
            stage(writer)
        for k, result in enumerate(self._results):
            result.write(writer, f"%out{k}")
        return writer.text(self._sweeps.buffers)

    @property
    def bodies(self) -> Sequence[Pytree]:
        return self._sweeps.bodies

    def fn(self, *vectors: Numeric) -> Numeric:
        """On numbers, or inlined in an expression: the same algorithm over unrolled sweeps."""
        given = iter(vectors)
        return self.algorithm(self.reference, *(next(given) if c is None else c for c in self.constants))
