"""The schema loader: what each kind of field accepts, and the exact message for what it does not."""

import dataclasses
import math
from typing import Annotated, Any, Literal

import pytest

from cosim.errors import MOST_ERRORS, MOST_SHOWN, ErrorList, InputError, InputErrors, SourceLocation
from cosim.rig.reading.schema import Reading, read, read_fields
from cosim.rig.reading.yaml_values import dotted
from cosim.types import PerJoint, param, params


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


KEYS = ", ".join(field.name for field in dataclasses.fields(Everything))


def place(path: tuple) -> SourceLocation:
    return SourceLocation("rig.yaml", len(path), dotted(path))


def load(cls: type, data: Any, joints: Any = None, n: int | None = None, besides: Any = ()) -> tuple[Any, list[str]]:
    errors: list[InputError] = []
    result = read(cls, data, ("arm",), Reading(place, errors).of(joints, n), besides)
    assert (result is None) == bool(errors)
    return result, [str(error) for error in errors]


@pytest.mark.parametrize(
    "key, data, value",
    [
        ("gain", 3, 3.0),
        ("gain", "1e-3", 1e-3),
        ("gain", "50 %", 0.5),
        ("time", "2 ms", 0.002),
        ("time", 0, 0.0),
        ("count", 4096, 4096),
        ("count", 4e3, 4000),
        ("flag", True, True),
        ("flag", False, False),
        ("flag", "yes", True),
        ("flag", "no", False),
        ("word", "on", "on"),
        ("mode", "slow", "slow"),
        ("level", 1, 1),
        ("values", [1, "2 mm"], (1.0, 0.002)),
        ("values", [], ()),
        ("vector", [1, 2, 3], (1.0, 2.0, 3.0)),
        ("names", ["a", "b"], ("a", "b")),
        ("maybe", None, None),
        ("maybe", "3", 3.0),
        ("inner", {"delay": "1 s"}, Inner(1.0)),
        ("maybe_inner", None, None),
        ("maybe_inner", {"delay": 2}, Inner(2.0)),
        ("inners", [{"delay": 1}, {"delay": 2}], (Inner(1.0), Inner(2.0))),
        ("inner_list", [{"delay": 1}], [Inner(1.0)]),
        ("plain", {"a": [1, "x"]}, {"a": [1, "x"]}),
        ("plain", None, {}),
        ("plain_list", [1, "x"], [1, "x"]),
    ],
)
def test_accepts(key, data, value):
    result, errors = load(Everything, {key: data})
    assert errors == []
    read_value = getattr(result, key)
    assert read_value == value
    assert type(read_value) is type(value)


@pytest.mark.parametrize("data", [{}, None])
def test_defaults(data):
    assert load(Everything, data) == (Everything(), [])


@pytest.mark.parametrize(
    "key, data, message",
    [
        ("gain", "abc", "2 arm.gain: expected a number, got 'abc'"),
        ("gain", "a\n b", "2 arm.gain: expected a number, got 'a b'"),
        ("gain", True, "2 arm.gain: expected a number, got true"),
        ("gain", None, "2 arm.gain: expected a number, got nothing"),
        ("gain", [1], "2 arm.gain: expected a number, got a list"),
        ("gain", {}, "2 arm.gain: expected a number, got a mapping"),
        ("gain", -1, "2 arm.gain: must be above 0, is -1"),
        ("gain", 0, "2 arm.gain: must be above 0, is 0"),
        ("gain", 100.5, "2 arm.gain: must be at most 100, is 100.5"),
        ("gain", math.inf, "2 arm.gain: must be a finite number, is inf"),
        ("gain", math.nan, "2 arm.gain: must be a finite number, is nan"),
        ("gain", "1e999", "2 arm.gain: must be a finite number, is inf"),
        ("time", "-1 ms", "2 arm.time: must be at least 0 s, is -0.001 s"),
        ("time", "3 V", "2 arm.time: unit 'V' does not fit here; use s, ms, us, min, h"),
        ("count", 0, "2 arm.count: must be at least 1, is 0"),
        ("count", 1.5, "2 arm.count: expected a whole number, got 1.5"),
        ("flag", 3, "2 arm.flag: expected true, false, yes or no, got 3"),
        ("flag", "off", "2 arm.flag: expected true, false, yes or no, got 'off'"),
        ("flag", "Yes", "2 arm.flag: expected true, false, yes or no, got 'Yes'"),
        ("flag", 1, "2 arm.flag: expected true, false, yes or no, got 1"),
        ("flag", None, "2 arm.flag: expected true, false, yes or no, got nothing"),
        ("flag", {}, "2 arm.flag: expected true, false, yes or no, got a mapping"),
        ("gain", "x" * 70, f"2 arm.gain: expected a number, got '{'x' * 60}…'"),
        ("mode", "x" * 70, f"2 arm.mode: expected one of fast, slow; got '{'x' * 59}…"),
        ("x" * 70, 1, f"2 arm: unknown key '{'x' * 60}…'; known: {KEYS}"),
        ("word", 5, "2 arm.word: expected text, got 5; put it in quotes"),
        ("word", ["a"], "2 arm.word: expected text, got a list"),
        ("mode", "c", "2 arm.mode: expected one of fast, slow; got 'c'"),
        ("level", True, "2 arm.level: expected one of 0, 1; got true"),
        ("level", 2, "2 arm.level: expected one of 0, 1; got 2"),
        ("values", 3, "2 arm.values: expected a list of numbers, got 3"),
        ("values", [1, "x"], "3 arm.values[1]: expected a number, got 'x'"),
        ("values", [1, 10], "3 arm.values[1]: must be at most 9 m, is 10 m"),
        ("vector", [1, 2], "2 arm.vector: expected 3 numbers, got 2"),
        ("vector", "z", "2 arm.vector: expected 3 numbers, got 'z'"),
        ("names", "a", "2 arm.names: expected a list of names, got 'a'"),
        ("maybe", "x", "2 arm.maybe: expected a number, got 'x'"),
        ("inner", 3, "2 arm.inner: expected a mapping, got 3"),
        ("inner", {}, "2 arm.inner: missing key 'delay'"),
        ("inner", {"delay": 1, "daley": 2}, "3 arm.inner: unknown key 'daley'; did you mean 'delay'?"),
        ("inners", [{"delay": 1}, {"delay": "x"}], "4 arm.inners[1].delay: expected a number, got 'x'"),
        ("plain", 3, "2 arm.plain: expected a mapping, got 3"),
        ("plain_list", {}, "2 arm.plain_list: expected a list of values, got a mapping"),
        ("gian", 3, "2 arm: unknown key 'gian'; did you mean 'gain'?"),
    ],
)
def test_rejects(key, data, message):
    assert load(Everything, {key: data}) == (None, [f"rig.yaml:{message}"])


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


@pytest.mark.parametrize(
    ("key", "right", "wrong", "words"),
    [
        ("over", math.nextafter(2, UP), 2.0, "must be above 2, is 2"),
        ("over", 3, 1, "must be above 2, is 1"),
        ("least", 2, math.nextafter(2, DOWN), "must be at least 2, is 2"),
        ("least", "2", "1.5", "must be at least 2, is 1.5"),
        ("most", 2, math.nextafter(2, UP), "must be at most 2, is 2"),
        ("most", -1e12, 3, "must be at most 2, is 3"),
        ("zero", 0, -5e-324, "must be at least 0, is -4.94065645841e-324"),
        ("zero", -0.0, -1, "must be at least 0, is -1"),
        ("whole", 2, 1, "must be at least 2, is 1"),
        ("whole", 4, 5, "must be at most 4, is 5"),
        ("whole", 4.0, 3.5, "expected a whole number, got 3.5"),
        ("optional", 1, math.nextafter(1, UP), "must be at most 1, is 1"),
        ("optional", 1e-15, 0, "must be above 0, is 0"),
        ("time", 1e9, math.nextafter(1e9, UP), "must be at most 1000000000 s in size, is 1000000000 s"),
        ("time", -1e9, "-1e6 h", "must be at most 1000000000 s in size, is -3600000000 s"),
        ("rate", 1e9, 1e12, "must be at most 1000000000 Hz in size, is 1e+12 Hz"),
        ("length", 1e12, 1.1e12, "must be at most 1e+12 m in size, is 1.1e+12 m"),
        ("length", 1e-300, -1e300, "must be at most 1e+12 m in size, is -1e+300 m"),
        ("torque", 1e12, 1e30, "must be at most 1e+12 in size, is 1e+30"),
        ("positive", 1e-15, 9e-16, "is 9e-16 kg, too close to 0; give at least 1e-15 kg"),
        ("positive", "1e-12 g", 1e-320, "is 1e-320 kg, too close to 0; give at least 1e-15 kg"),
        ("seed", 2**63 - 1, 2**63, "must be at most 9.22337203685e+18 in size, is 9.22337203685e+18"),
        ("seed", -(2**63) + 1, -(2**63), "must be at most 9.22337203685e+18 in size, is -9.22337203685e+18"),
        ("seed", 1e15, 1e30, "must be at most 9.22337203685e+18 in size, is 1e+30"),
        ("seed", 0, 10**400, "must be a finite number, is 1" + 59 * "0" + "…"),
    ],
)
def test_values_at_a_bound_and_beyond(key, right, wrong, words):
    assert load(Bounds, {key: right})[1] == []
    assert load(Bounds, {key: wrong}) == (None, [f"rig.yaml:2 arm.{key}: {words}"])


@pytest.mark.parametrize(
    ("key", "words"), [("several", "must be at least 2, is 1"), ("joints", "must be at least 0, is -1")]
)
def test_bounds_hold_for_every_element(key, words):
    least = {"several": 2, "joints": 0}[key]
    assert load(Bounds, {key: [4, least, 3]})[1] == []
    assert load(Bounds, {key: [4, least, 4.5, least - 1]})[1] == [
        f"rig.yaml:3 arm.{key}[2]: must be at most 4, is 4.5",
        f"rig.yaml:3 arm.{key}[3]: {words}",
    ]


def test_reading_ends_after_many_mistakes():
    errors = ErrorList()
    with pytest.raises(InputErrors) as caught:
        read(Inner, {f"k{i}": 1 for i in range(1000)}, ("arm",), Reading(place, errors))
    assert len(caught.value.errors) == MOST_ERRORS
    *shown, last = str(caught.value).splitlines()
    assert shown == [f"rig.yaml:2 arm: unknown key 'k{i}'; known: delay" for i in range(MOST_SHOWN)]
    assert last == "… and at least 80 more; correct these first"


def test_every_mistake_is_reported():
    _, errors = load(Gains, {"kd": [1, -1, "x"], "kq": 1}, n=3)
    assert errors == [
        "rig.yaml:2 arm: unknown key 'kq'; known: kp, kd, goal, limit",
        "rig.yaml:1 arm: missing key 'kp'",
        "rig.yaml:3 arm.kd[1]: must be at least 0, is -1",
        "rig.yaml:3 arm.kd[2]: expected a number, got 'x'",
    ]


def test_a_section_is_a_mapping():
    assert load(Inner, [1]) == (None, ["rig.yaml:1 arm: expected a mapping with the keys delay; got a list"])


def test_an_override_has_no_second_place():
    errors: list[InputError] = []
    reading = Reading(lambda path: SourceLocation("--set arm.daley=2"), errors)
    read(Inner, {"delay": 1, "daley": 2}, ("arm",), reading)
    assert [str(error) for error in errors] == ["--set arm.daley=2: unknown key 'daley'; did you mean 'delay'?"]


# --- one value per joint ------------------------------------------------------------------------

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


@pytest.mark.parametrize(
    "data, message",
    [
        ({"kp": [1, 2, 3]}, "2 arm.kp: expected 2 numbers (one per joint), got 3"),
        ({"kp": [1, -1]}, "3 arm.kp[1]: must be above 0, is -1"),
        ({"kp": -1}, "2 arm.kp: must be above 0, is -1"),
        ({"kp": "x"}, "2 arm.kp: expected a number, got 'x'"),
        ({"kp": {"elbow": 1}}, "2 arm.kp: missing the number of 'lift'"),
        ({"kp": {"elbow": 1, "lift": 0}}, "3 arm.kp.lift: must be above 0, is 0"),
        ({"kp": {"elbow": 1, "lift": 1, "left": 1}}, "3 arm.kp: unknown key 'left'; did you mean 'lift'?"),
        ({"kp": 1, "goal": "90 deg"}, "2 arm.goal: unit 'deg' does not fit linear joint 'lift'; use m, cm, mm, um"),
        (
            {"kp": 1, "goal": ["1 mm", 0]},
            "3 arm.goal[0]: unit 'mm' does not fit rotational joint 'elbow'; use rad, mrad, deg, turn",
        ),
        ({"kp": 1, "kd": [1, -1]}, "3 arm.kd[1]: must be at least 0 m/s, is -1 m/s"),
    ],
)
def test_per_joint_mistakes(data, message):
    assert load(Gains, data, joints=ARM) == (None, [f"rig.yaml:{message}"])


def test_a_mapping_needs_the_names_of_the_joints():
    _, errors = load(Gains, {"kp": {"elbow": 1}}, n=2)
    assert errors == ["rig.yaml:2 arm.kp: expected a number, got a mapping"]


@pytest.mark.parametrize(
    ("kind", "units"),
    [
        ("revolute", "rad, mrad, deg, turn"),
        ("spherical", "rad, mrad, deg, turn"),
        ("screw", "rad, mrad, deg, turn"),
        ("prismatic", "m, cm, mm, um"),
        ("planar", "rad, mrad, deg, turn, m, cm, mm, um"),
        ("general", "rad, mrad, deg, turn, m, cm, mm, um"),
        (None, "rad, mrad, deg, turn, m, cm, mm, um"),
    ],
)
def test_units_of_every_kind_of_joint(kind, units):
    _, errors = load(Gains, {"kp": 1, "goal": "1 V"}, joints={"a": kind})
    assert errors == [f"rig.yaml:2 arm.goal: unit 'V' does not fit here; use {units}"]


# --- checks of single values ---------------------------------------------------------------------


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


@pytest.mark.parametrize(
    ("key", "data", "message"),
    [
        ("half", 3, "2 arm.half: must be even"),
        ("half", "x", "2 arm.half: expected a number, got 'x'"),
        ("maybe", 3, "2 arm.maybe: must be even"),
        ("points", 3, "2 arm.points: expected a list of points, got 3"),
        ("points", [[1]], "3 arm.points[0]: expected 2 numbers, got 1"),
        ("pair", [[1, 2]], "2 arm.pair: expected 2 points, got 1"),
    ],
)
def test_a_check_that_fails(key, data, message):
    assert load(Checked, {key: data}) == (None, [f"rig.yaml:{message}"])


# --- corners --------------------------------------------------------------------------------------


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


@pytest.mark.parametrize(
    "hint, shown", [(float | str, "float | str"), (Any, "typing.Any"), (complex, "<class 'complex'>")]
)
def test_an_annotation_that_no_file_can_fill(hint, shown):
    @params
    class Odd:
        x: Any = param(default=None)

    Odd.__annotations__["x"] = hint
    _, errors = load(Odd, {"x": 1})
    assert errors == [f"rig.yaml:2 arm.x: is declared as {shown}, which cannot be read from a file"]


def test_a_declared_unit_without_name_takes_bare_numbers():
    @params
    class Odd:
        k: float = param(unit="V*s/rad", min=0)

    assert load(Odd, {"k": 0.1})[0].k == 0.1
    assert load(Odd, {"k": "0.1 V"})[1] == [
        "rig.yaml:2 arm.k: expected a number, got '0.1 V'; its Params declare the unit 'V*s/rad', which is not known,"
        " so give a bare number"
    ]
