"""Each mutant of the guard, its table of limits and its plausibility checks fails a battery of checks on numbers."""

import ast
import dataclasses
import math
import sys
import time
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest import mock

import numpy as np
import pytest

from cosim.control import guard, limits, plausibility, standstill
from cosim.core.compile import ArrayPort
from cosim.core.compile import compile as compiling
from cosim.core.compile.routine import Routine
from cosim.core.types import COMMAND
from tests.control import guard_battery
from tests.kit.mutants import mutants

MODULES = {guard: 180, limits: 200, plausibility: 25, standstill: 25}  # least number of mutants
SOURCES = {m.__name__: Path(m.__file__ or "").read_text(encoding="utf-8") for m in MODULES}
LIMIT = 40.0  # s of processor time for all mutants of a module


def loaded(name: str, code: ast.Module) -> ModuleType:
    module = ModuleType(name)
    with mock.patch.dict(sys.modules, {name: module}):
        exec(compile(code, name, "exec"), vars(module))
    return module


# --- the battery ------------------------------------------------------------------------------------

ENDS = np.array([1.7976931348623157e308, -1.7976931348623157e308, math.inf, -math.inf, math.nan])
ACTIONS = ("warn", "saturate", "stop")
KEYS = tuple(guard_battery.LIMITS)
# one limit each, and its action
SINGLE = [{"bounds": {}}, *({"bounds": bounds} for bounds in ({"lower": -1.0}, {"upper": 2.0}))]
SINGLE += [{"bounds": {"lower": -1.0, "upper": 2.0}}, {"bounds": {"stale": 1.0}}]
SINGLE += [{"bounds": {"lower": -1.0, "upper": 2.0}, "actions": {"position": "saturate"}}]
SINGLE += [
    {"bounds": {key: 1.0}, "actions": {key: do}}
    for key in KEYS
    if key in guard_battery.BOUNDS
    for do in guard_battery.CHOICES[key]
]
# names of fields of a row in the table of cases -> in the product
FIELDS = {"unit": "unit", "keys": "bound_keys", "positive": "positive", "inherited": "inherited"}
FIELDS |= {"action": "default_action", "stop_category": "stop_category"}
FIELDS |= {name: name for name in ("saturates_while_stopping", "reference", "needs_history")}
FIELDS |= {name: name for name in ("needs_twin", "needs_reaction", "needs_wall")}


class Checks:
    """What a guard must do, as a function of the modules."""

    def __init__(self, battery: ModuleType) -> None:
        self.battery = battery
        self.groups = [
            (
                group,
                battery.guard_fields(group, soft),
                battery.feedback(group) | {"armed": armed},
                battery.command(group),
            )
            for soft, armed, group in battery.groups()
        ]
        self.costs = self.operations(guard)

    def guard(self, m: ModuleType) -> None:
        assert m.is_finite(ENDS).tolist() == [True, True, False, False, False]
        for cases, fields, feedback, command in self.groups:
            self.battery.verify(cases, *m.check(m.Guard(**fields), feedback, command))
        self.actions(m)
        self.uncommanded(m)
        assert self.operations(m) == self.costs

    def limits(self, m: ModuleType) -> None:
        """The table, and the guard with it."""
        for row, (key, expected) in zip(m.LIMITS, self.battery.LIMITS.items(), strict=True):
            found = {name: getattr(row, field) for name, field in FIELDS.items()}
            found |= {name: list(value) for name, value in found.items() if isinstance(value, tuple)}
            assert (row.key, found) == (key, {name: expected[name] for name in FIELDS})
        assert list(m.LIMIT_OF) == list(KEYS)
        assert all(m.LIMIT_OF[key] is row for key, row in zip(KEYS, m.LIMITS, strict=True))
        assert all(row.actions == self.battery.CHOICES[key] for key, row in zip(KEYS, m.LIMITS, strict=True))
        codes = {"ok": m.OK, **m.CODES, "stale": m.STALE, "not_finite": m.NOT_FINITE}
        assert list(codes.items()) == [(name, code) for code, name in enumerate(self.battery.VERDICTS)]
        assert {key: 2.0**k for k, key in enumerate(KEYS)} == m.BITS
        assert (m.WARN, m.SATURATE, m.STOP) == ACTIONS
        assert self.battery.POSITION_TOLERANCE == m.POSITION_TOLERANCE
        self.row(m)
        self.defaults(m)
        with mock.patch.dict(sys.modules, {limits.__name__: m}):  # the guard with this table
            with_table = loaded(guard.__name__, ast.parse(SOURCES[guard.__name__]))
        self.guard(with_table)

    def row(self, m: ModuleType) -> None:
        """A row by itself: its defaults and its units."""
        fields = dict.fromkeys(("meaning", "default_action", "stop_category", "exceeded", "reason", "warning"), "")
        row = m.GuardLimit("stiffness", "joint stiffness", **fields)
        assert row.bound_keys == ("stiffness",) and row.actions == ("warn", "stop")
        assert (row.inherited, row.positive, row.controlled_stop, row.saturates_while_stopping) == ((), True, "", True)
        assert (row.effort_bounds, row.slew_bounds, row.position_bounds, row.derating) == (None,) * 4
        assert row.listed == "{limit}"
        assert (row.reference, row.real_default) == ("", None)
        assert (row.needs_history, row.needs_twin, row.needs_reaction, row.needs_wall) == (False,) * 4
        assert [row.unit_of(unit) for unit in ("rad", "m")] == ["N*m/rad", "N/m"]
        assert [m.LIMIT_OF["power"].unit_of(unit) for unit in ("rad", "m")] == ["W", "W"]
        assert m.LIMIT_OF["position"].show([-math.pi, 1.0], "rad") == "-3.14159 to 1 rad"
        assert m.LIMIT_OF["velocity"].show([math.pi], "m", 3) == "3.14 m/s"
        assert m.LIMIT_OF["units"].show([2.5], "m") == "2.5"
        assert all(cls.__dataclass_params__.frozen for cls in (m.GuardLimit, m.GuardInputs))
        with pytest.raises(TypeError):
            m.GuardLimit("stiffness", "joint stiffness", "positional", **fields)

    def defaults(self, m: ModuleType) -> None:
        """The bounds of real joints that have none."""
        given = {row.key for row in m.LIMITS if row.real_default is not None}
        assert given == {key for key, row in self.battery.LIMITS.items() if "real_default" in row}
        for key in given:
            for case in self.battery.LIMITS[key]["real_default"]:
                bounds = self.battery.BOUNDS | case["bounds"]
                assert m.LIMIT_OF[key].real_default(bounds) == case["expect"], case

    def plausibility(self, m: ModuleType) -> None:
        self.functions(m, "plausibility")

    def standstill(self, m: ModuleType) -> None:
        self.functions(m, "standstill")

    def functions(self, m: ModuleType, section: str) -> None:
        """Functions of numbers."""
        for case in self.battery.DATA[section]:
            (name, arguments), (_, expected) = case.items()
            assert float(getattr(m, name)(*(np.array(value, dtype=float) for value in arguments))) == expected, case

    def actions(self, m: ModuleType) -> None:
        """Which limits have a bound, and their actions."""
        held = m.Guard(**self.battery.guard_fields(SINGLE))
        assert m.Guard.__dataclass_params__.frozen
        expected = (held.bounds[key] for key in ("lower", "upper", "velocity", "effort"))
        assert all(a is b for a, b in zip(vars(held.limits).values(), expected, strict=True))
        needs = ((name, name) for name in ("needs_history", "needs_reaction"))
        for field, found in (("reference", "uses_reference"), *needs):
            checked = {key for row in self.battery.LIMITS.values() if row[field] for key in row["keys"]}
            assert getattr(held, found).tolist() == [bool(checked & set(case["bounds"])) for case in SINGLE]
            rows = [dataclasses.replace(row, **{field: True}) for row in m.LIMITS]
            with mock.patch.object(m, "LIMITS", rows):
                assert getattr(held, found).tolist() == [bool(set(case["bounds"]) - {"stale"}) for case in SINGLE]
        for key in KEYS:
            default, names = self.battery.ACTIONS[key], set(self.battery.LIMITS[key]["keys"])
            found = [c.get("actions", {}).get(key, default) if names & set(c["bounds"]) else None for c in SINGLE]
            for action in ACTIONS:
                assert held.has_action(action, key).tolist() == [action == each for each in found]
            assert held.raises_alarm(key).tolist() == [each in ("warn", "saturate") for each in found]

    def uncommanded(self, m: ModuleType) -> None:
        """A joint without controller: its command is all zeros, and terms with it vanish."""
        names, zeros = ("position", "velocity"), dict.fromkeys(COMMAND, np.zeros(1))
        free, rest = m.Guard(**self.battery.guard_fields([{}])), {name: np.zeros(1) for name in self.battery.FEEDBACK}

        def fault_codes(*values: Any) -> Any:
            return m.check(free, {**rest, **dict(zip(names, values, strict=True)), "armed": 0.0}, zeros)[1]

        compiled = compiling(fault_codes, [ArrayPort(name, (1,)) for name in names], interpret=False)
        for values in ((math.nan, 0.0), (math.inf, 0.0), (0.0, math.nan), (0.0, -math.inf), (math.nan, math.nan)):
            assert compiled(*np.array(values)[:, None]).tolist() == [self.battery.VERDICTS.index("not_finite")]
        assert compiled(*np.zeros((2, 1))).tolist() == [0.0]

    def operations(self, m: ModuleType) -> list[int]:
        """Of each limit in machine code: one without a bound costs nothing."""
        n, found = len(self.battery.FEEDBACK), []
        for case in SINGLE:
            single = m.Guard(**self.battery.guard_fields([case]))

            def judge(*values: Any, single: Any = single) -> Any:
                feedback = dict(zip(self.battery.FEEDBACK, values, strict=False)) | {"armed": 0.0}
                safe, *rest = m.check(single, feedback, dict(zip(COMMAND, values[n:], strict=True)))
                return *safe.values(), *rest

            found.append(Routine(judge, [(1,)] * (n + len(COMMAND)), "guard").operations)
        return found


@pytest.fixture(scope="module")
def checks(battery):
    return Checks(battery)


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__.rpartition(".")[2])
def test_every_mutant_is_detected(checks, module):
    name, begun, alive, count = module.__name__, time.process_time(), [], 0
    verify = getattr(checks, name.rpartition(".")[2])
    with np.errstate(all="ignore"):
        verify(loaded(name, ast.parse(SOURCES[name])))
        for what, code, _ in mutants(SOURCES[name]):
            count += 1
            try:
                verify(loaded(name, code))
            except Exception:
                continue
            alive.append(what)
    assert alive == []  # a mutant that no check can detect is code that is not needed
    assert count > MODULES[module]
    assert time.process_time() - begun < LIMIT
