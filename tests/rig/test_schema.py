"""The schema loader: what each kind of field accepts, and the exact message for what it does not."""

import math
from typing import Annotated, Any, Literal

import pytest

from cosim.core.errors import MOST_ERRORS, MOST_SHOWN, ErrorList, InputError, InputErrors, SourceLocation
from cosim.core.types import PerJoint, param, params
from cosim.rig.reading.schema import Reading, read, read_fields
from cosim.rig.reading.yaml_values import dotted
from tests.kit.refusals import raised


@params
class Inner:
    delay: float = param(unit="s", min=0)


@params
class Everything:
    gain: float = param(default=1.0, above=0, max=100)
    time: float = param(unit="s", min=0, default=0.5)
    count: int = param(min=1, default=2)
    flag: bool = param(default=False)
    word: str = param(default="x")
    mode: Literal["fast", "slow"] = param(default="fast")
    level: Literal[0, 1] = param(default=0)
    values: tuple[float, ...] = param(unit="m", max=9, default=())
    vector: tuple[float, float, float] = param(default=(0.0, 0.0, 1.0))
    names: tuple[str, ...] = param(default=())
    maybe: float | None = param(default=None)
    inner: Inner = param(default=Inner(0.0))
    maybe_inner: Inner | None = param(default=None)
    inners: tuple[Inner, ...] = param(default=())
    inner_list: list[Inner] = param(default=())
    plain: dict = param(default=None)
    plain_list: list = param(default=None)


@params
class Gains:
    kp: PerJoint = param(above=0)
    kd: PerJoint = param(unit="joint velocity", min=0, default=2)
    goal: PerJoint | None = param(unit="joint position", default=None)
    limit: PerJoint = param(unit="joint effort", default=math.inf)


def place(path: tuple) -> SourceLocation:
    return SourceLocation("rig.yaml", len(path), dotted(path))


def load(cls: type, data: Any, joints: Any = None, n: int | None = None, besides: Any = ()) -> tuple[Any, list[str]]:
    errors: list[InputError] = []
    result = read(cls, data, ("arm",), Reading(place, errors).of(joints, n), besides)
    assert (result is None) == bool(errors)
    return result, [str(error) for error in errors]


ACCEPTED = {
    "gain": [(3, 3.0), ("1e-3", 1e-3), ("50 %", 0.5)],
    "time": [("2 ms", 0.002), (0, 0.0)],
    "count": [(4096, 4096), (4e3, 4000)],
    "flag": [(True, True), (False, False), ("yes", True), ("no", False)],
    "word": [("on", "on")],
    "mode": [("slow", "slow")],
    "level": [(1, 1)],
    "values": [([1, "2 mm"], (1.0, 0.002)), ([], ())],
    "vector": [([1, 2, 3], (1.0, 2.0, 3.0))],
    "names": [(["a", "b"], ("a", "b"))],
    "maybe": [(None, None), ("3", 3.0)],
    "inner": [({"delay": "1 s"}, Inner(1.0))],
    "maybe_inner": [(None, None), ({"delay": 2}, Inner(2.0))],
    "inners": [([{"delay": 1}, {"delay": 2}], (Inner(1.0), Inner(2.0)))],
    "inner_list": [([{"delay": 1}], [Inner(1.0)])],
    "plain": [({"a": [1, "x"]}, {"a": [1, "x"]}), (None, {})],
    "plain_list": [([1, "x"], [1, "x"])],
}


@pytest.mark.parametrize("key", ACCEPTED)
def test_accepts(key):
    for data, value in ACCEPTED[key]:
        result, errors = load(Everything, {key: data})
        assert errors == []
        read_value = getattr(result, key)
        assert read_value == value
        assert type(read_value) is type(value)


@pytest.mark.parametrize("data", [{}, None])
def test_defaults(data):
    assert load(Everything, data) == (Everything(), [])


REJECTED = {
    "gain": ["abc", "a\n b", True, None, [1], {}, -1, 0, 100.5, math.inf, math.nan, "1e999", "x" * 70],
    "time": ["-1 ms", "3 V"],
    "count": [0, 1.5],
    "flag": [3, "off", "Yes", 1, None, {}],
    "word": [5, ["a"]],
    "mode": ["c", "x" * 70],
    "level": [True, 2],
    "values": [3, [1, "x"], [1, 10]],
    "vector": [[1, 2], "z"],
    "names": ["a"],
    "maybe": ["x"],
    "inner": [3, {}, {"delay": 1, "daley": 2}],
    "inners": [[{"delay": 1}, {"delay": "x"}]],
    "plain": [3],
    "plain_list": [{}],
    "gian": [3],
    "x" * 70: [1],
}


@pytest.mark.parametrize("key", REJECTED)
def test_rejects(said, key):
    said(rejected(Everything, *({key: data} for data in REJECTED[key])))


def rejected(cls, *given, **options):
    """The one line that each is refused with."""
    lines = []
    for data in given:
        result, (line,) = load(cls, data, **options)
        assert result is None and line.startswith("rig.yaml:")
        lines.append(line)
    return lines


@params
class Bounds:
    """One field per bound and kind of value."""

    over: float = param(above=2, default=3.0)
    least: float = param(min=2, default=3.0)
    most: float = param(max=2, default=1.0)
    zero: float = param(min=0, default=0.0)
    whole: int = param(min=2, max=4, default=3)
    several: tuple[float, ...] = param(min=2, max=4, default=())
    joints: PerJoint = param(min=0, max=4, default=1)
    optional: float | None = param(above=0, max=1, default=None)
    time: float = param(unit="s", default=1.0)
    rate: float = param(unit="Hz", default=1.0)
    length: float = param(unit="m", default=1.0)
    positive: float = param(unit="kg", above=0, default=1.0)
    seed: int = param(default=0)
    torque: float = param(unit="joint effort", default=0.0)


UP, DOWN = math.inf, -math.inf


# the last value that is right, and one beyond
BOUNDS = {
    "over": [(math.nextafter(2, UP), 2.0), (3, 1)],
    "least": [(2, math.nextafter(2, DOWN)), ("2", "1.5")],
    "most": [(2, math.nextafter(2, UP)), (-1e12, 3)],
    "zero": [(0, -5e-324), (-0.0, -1)],
    "whole": [(2, 1), (4, 5), (4.0, 3.5)],
    "optional": [(1, math.nextafter(1, UP)), (1e-15, 0)],
    "time": [(1e9, math.nextafter(1e9, UP)), (-1e9, "-1e6 h")],
    "rate": [(1e9, 1e12)],
    "length": [(1e12, 1.1e12), (1e-300, -1e300)],
    "torque": [(1e12, 1e30)],
    "positive": [(1e-15, 9e-16), ("1e-12 g", 1e-320)],
    "seed": [(2**63 - 1, 2**63), (-(2**63) + 1, -(2**63)), (1e15, 1e30), (0, 10**400)],
}


@pytest.mark.parametrize("key", BOUNDS)
def test_values_at_a_bound_and_beyond(said, key):
    assert all(load(Bounds, {key: right})[1] == [] for right, _ in BOUNDS[key])
    said(rejected(Bounds, *({key: wrong} for _, wrong in BOUNDS[key])))


@pytest.mark.parametrize(("key", "least"), [("several", 2), ("joints", 0)])
def test_bounds_hold_for_every_element(said, key, least):
    assert load(Bounds, {key: [4, least, 3]})[1] == []
    said(load(Bounds, {key: [4, least, 4.5, least - 1]})[1])


def test_reading_ends_after_many_mistakes():
    errors = ErrorList()
    caught = raised(InputErrors, read, Inner, {f"k{i}": 1 for i in range(1000)}, ("arm",), Reading(place, errors))
    assert len(caught.errors) == MOST_ERRORS
    *shown, last = str(caught).splitlines()
    assert shown == [f"rig.yaml:2 arm: unknown key 'k{i}'; known: delay" for i in range(MOST_SHOWN)]
    assert last == "… and at least 80 more; correct these first"


def test_every_mistake_is_reported(said):
    said(load(Gains, {"kd": [1, -1, "x"], "kq": 1}, n=3)[1])
    assert rejected(Inner, [1]) == ["rig.yaml:1 arm: expected a mapping with the keys delay; got a list"]


def test_an_override_has_no_second_place():
    errors: list[InputError] = []
    reading = Reading(lambda path: SourceLocation("--set arm.daley=2"), errors)
    read(Inner, {"delay": 1, "daley": 2}, ("arm",), reading)
    assert [str(error) for error in errors] == ["--set arm.daley=2: unknown key 'daley'; did you mean 'delay'?"]


ARM = {"elbow": "revolute", "lift": "prismatic"}


@pytest.mark.parametrize(
    "data, options, kp",
    [
        (3, {"n": 2}, (3.0, 3.0)),
        ([1, "2"], {"n": 2}, (1.0, 2.0)),
        (3, {"joints": ARM}, (3.0, 3.0)),
        ({"lift": 2, "elbow": 1}, {"joints": ARM}, (1.0, 2.0)),
        ([1, 2, 3], {}, (1.0, 2.0, 3.0)),
        ([], {"n": 0}, ()),
    ],
)
def test_per_joint(data, options, kp):
    result, errors = load(Gains, {"kp": data}, **options)
    assert errors == []
    assert result.kp == kp
    if options:
        assert result.kd == (2.0,) * len(kp)
        assert result.limit == (math.inf,) * len(kp)
    assert result.goal is None


def test_units_are_those_of_each_joint():
    result, errors = load(Gains, {"kp": 1, "goal": ["180 deg", "5 mm"]}, joints=ARM)
    assert errors == []
    assert result.goal == (pytest.approx(math.pi), 0.005)


def test_per_joint_mistakes(said):
    gains = [[1, 2, 3], [1, -1], -1, "x", {"elbow": 1}, {"elbow": 1, "lift": 0}, {"elbow": 1, "lift": 1, "left": 1}]
    others = [{"goal": "90 deg"}, {"goal": ["1 mm", 0]}, {"kd": [1, -1]}]
    said(rejected(Gains, *({"kp": kp} for kp in gains), *({"kp": 1, **other} for other in others), joints=ARM))


def test_a_mapping_needs_the_names_of_the_joints():
    assert rejected(Gains, {"kp": {"elbow": 1}}, n=2) == ["rig.yaml:2 arm.kp: expected a number, got a mapping"]


@pytest.mark.parametrize("kind", ["revolute", "spherical", "screw", "prismatic", "planar", "general", None])
def test_units_of_every_kind_of_joint(said, kind):
    said(rejected(Gains, {"kp": 1, "goal": "1 V"}, joints={"a": kind}))


def even(value: float) -> float:
    if value % 2:
        raise ValueError("must be even")
    return value / 2


@params
class Checked:
    half: Annotated[float, even] = param(unit="m", default=0.0)
    maybe: Annotated[float, even] | None = param(default=None)
    points: tuple[tuple[float, float], ...] = param(unit="m", default=())
    pair: tuple[tuple[float, float], tuple[float, float]] | None = param(default=None)


def test_a_check_gives_the_value():
    result, errors = load(Checked, {"half": "4 m", "maybe": 6, "points": [[1, "2 mm"]]})
    assert errors == []
    assert (result.half, result.maybe, result.points) == (2.0, 3.0, ((1.0, 0.002),))
    assert load(Checked, {"maybe": None})[0].maybe is None


def test_a_check_that_fails(said):
    wrong = {"half": [3, "x"], "maybe": [3], "points": [3, [[1]]], "pair": [[[1, 2]]]}
    said(rejected(Checked, *({key: data} for key, given in wrong.items() for data in given)))


def test_keys_read_elsewhere_are_known():
    assert load(Inner, {"type": "x", "delay": 1}, besides=("type",)) == (Inner(1.0), [])
    _, errors = load(Inner, {"tipe": "x", "delay": 1}, besides=("type",))
    assert errors == ["rig.yaml:2 arm: unknown key 'tipe'; did you mean 'type'?"]


def test_read_fields_keeps_what_is_right():
    errors: list[InputError] = []
    values = read_fields(Gains, {"kp": "x", "kd": 3}, (), Reading(place, errors, n=1))
    assert values == {"kd": (3.0,), "goal": None, "limit": (math.inf,)}
    assert len(errors) == 1


def test_a_check_between_fields_is_reported():
    @params
    class Range:
        low: float = param(default=0.0)
        high: float = param(default=1.0)

        def __post_init__(self):
            if self.low > self.high:
                raise ValueError(f"low {self.low:g} is above high {self.high:g}")

    assert load(Range, {"low": 2}) == (None, ["rig.yaml:1 arm: low 2 is above high 1"])


@pytest.mark.parametrize("hint", [float | str, Any, complex], ids=str)
def test_an_annotation_that_no_file_can_fill(said, hint):
    @params
    class Odd:
        x: Any = param(default=None)

    Odd.__annotations__["x"] = hint
    said(rejected(Odd, {"x": 1}))


def test_a_declared_unit_without_name_takes_bare_numbers(said):
    @params
    class Odd:
        k: float = param(unit="V*s^2/rad", min=0)

    assert load(Odd, {"k": 0.1})[0].k == 0.1
    said(rejected(Odd, {"k": "0.1 V"}))
