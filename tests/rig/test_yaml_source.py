"""YAML sources: plain data, the line of every element, overrides, and what is said of broken files."""

import math
import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cosim.core.errors import InputError, InputErrors
from cosim.rig.reading import yaml_source, yaml_values
from cosim.rig.reading.yaml_source import MOST_BYTES, load_yaml, override
from cosim.rig.reading.yaml_values import MOST_VALUES, dotted
from tests.kit.given import beside
from tests.kit.refusals import refusal

GIVEN = beside(__file__)

RIG = GIVEN["rig"]


WORDS = [*"-:,[]{}#&*|>'\"?!%@~\n\t\\", *(" ", "  ", "\n  ", "- ", ": ", ", ", "a", "b c", "1")]
WORDS += ["&a ", "*a", "<<: ", "---\n", "é"]


@given(st.lists(st.sampled_from(WORDS), max_size=12).map("".join), st.integers(0, len(RIG)))
@settings(max_examples=400)
def test_libyaml_reads_what_is_read_in_python(text, place):
    """A text of its own, and within a rig; where libyaml complains, the complaint is Python's."""
    for whole in (text, RIG[:place] + text + RIG[place:]):
        with pytest.MonkeyPatch.context() as patch:
            fast = outcome(whole)
            patch.setattr(yaml_values, "_FastLoader", yaml_values._Loader)
            assert fast == outcome(whole)


def outcome(text):
    """What is read, or what is said instead."""
    try:
        return yaml_values.parse(text, "rig.yaml")
    except (InputError, InputErrors) as error:
        return str(error)


def test_libyaml_reads_plain_rigs(monkeypatch):
    monkeypatch.delattr(yaml_values, "_Loader")
    assert yaml_values.parse(RIG, "rig.yaml")[0]["base"] == {"kp": 1e-3, "on": "off"}


@pytest.fixture
def load(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def load(text):
        (tmp_path / "rig.yaml").write_bytes(text if isinstance(text, bytes) else text.encode())
        return load_yaml("rig.yaml")

    return load


@pytest.mark.parametrize(
    "text, value",
    [
        ("1e-3", 1e-3),
        ("-.5E+2", -50.0),
        ("7", 7),
        ("0x1F", 31),
        ("010", 10.0),
        ("-.inf", -math.inf),
        ("true", True),
        ("yes", "yes"),
        ("off", "off"),
        ("1:30", "1:30"),
        ("2024-01-01", "2024-01-01"),
        ("'7'", "7"),
        ("1_000", "1_000"),
        ("~", None),
        ("", None),
    ],
)
def test_scalars_follow_yaml_1_2(load, text, value):
    read = load(f"a: {text}\n").data["a"]
    assert read == value
    assert type(read) is type(value)


def test_keys_are_always_text(load):
    assert load("on: 1\n5: 2\n~: 3\n").data == {"on": 1, "5": 2, "~": 3}


def test_aliases_and_merges(load):
    data = load(RIG).data
    assert data["controllers"][1] == {"type": "pid", "kp": 5, "on": "off"}
    assert load("a: &x {k: 1}\nb: *x\nc: *x\n").data == {"a": {"k": 1}, "b": {"k": 1}, "c": {"k": 1}}
    assert load("a: &x {k: 1, <<: {k: 2, m: 3}}\nb: *x\n").data["b"] == {"k": 1, "m": 3}


@pytest.mark.parametrize(
    "path, place",
    [
        ((), "rig.yaml:1"),
        (("joints", "elbow", "encoder"), "rig.yaml:6 joints.elbow.encoder"),
        (("joints", "elbow", "encoder", "delay"), "rig.yaml:7 joints.elbow.encoder.delay"),
        (("joints", "elbow", "driver"), "rig.yaml:5 joints.elbow.driver"),
        (("controllers", 0), "rig.yaml:9 controllers[0]"),
        (("controllers", 0, "kp", 1), "rig.yaml:11 controllers[0].kp[1]"),
        (("controllers", 1, "on"), "rig.yaml:3 controllers[1].on"),
        (("schedule", "step"), "rig.yaml:1 schedule.step"),
    ],
)
def test_places(load, path, place):
    assert str(load(RIG).place(path)) == place


def test_dotted():
    assert dotted(()) == ""
    assert dotted((0, "a", 1, 2, "b")) == "[0].a[1][2].b"


@pytest.mark.parametrize(
    "text, path, value",
    [
        ("joints.elbow.encoder.delay=0", ("joints", "elbow", "encoder", "delay"), 0),
        ("controllers.arm.kp=200", ("controllers", 0, "kp"), 200),
        ("controllers[0].kp[1]=1e-3", ("controllers", 0, "kp", 1), 1e-3),
        ("controllers.pid.kp=3 V", ("controllers", 1, "kp"), "3 V"),
        ("controllers.1.limit={a: [1]}", ("controllers", 1, "limit"), {"a": [1]}),
        ("schedule={step: 2ms}", ("schedule",), {"step": "2ms"}),
        ("joints.elbow.encoder=", ("joints", "elbow", "encoder"), None),
        ("base.note=a=b", ("base", "note"), "a=b"),
        ("base.a b=1", ("base", "a b"), 1),
        (" base.note =1", ("base", "note"), 1),
    ],
)
def test_override(load, text, path, value):
    source = load(RIG)
    changed = override(source, text)
    found = changed.data
    for part in path:
        found = found[part]
    assert found == value
    assert str(changed.place(path)) == f"--set {text}"
    assert str(changed.place((*path, "below"))) == f"--set {text}"
    assert changed.place(path[:-1]) == source.place(path[:-1])
    assert source.data == load(RIG).data


def test_an_override_makes_the_sections_it_needs(load):
    changed = override(load(RIG), "telemetry.stream.rate=5")
    assert changed.data["telemetry"] == {"stream": {"rate": 5}}
    assert str(changed.place(("telemetry", "stream", "rate"))) == "--set telemetry.stream.rate=5"


NAMES = {("joints",): ("limits", "friction"), ("mechanism", "numbers"): ("friction",)}
DOTTED = (
    "joints: {a: {x: 1}, a.b: {limits: {upper: 2}}, c.d: {}}\nlists: [{name: e.f, kp: 1}]\ngoal: {g.h: 0, g.h.i: 1}\n"
)


@pytest.mark.parametrize(
    ("key", "path"),
    [
        ("joints.a.b.limits.upper", ("joints", "a.b", "limits", "upper")),
        ("joints.a.b", ("joints", "a.b")),
        ("joints.a.limits.upper", ("joints", "a", "limits", "upper")),
        ("joints.a.c.limits.upper", ("joints", "a.c", "limits", "upper")),  # of the robot file alone
        ("joints.a.x", ("joints", "a", "x")),
        ("joints.a.wrong.y", ("joints", "a", "wrong", "y")),
        ("joints.new.x.friction.friction", ("joints", "new.x", "friction", "friction")),
        ("joints[a.friction].friction", ("joints", "a.friction", "friction")),
        ("joints[c.d].limits", ("joints", "c.d", "limits")),
        ("joints.new.wrong", ("joints", "new", "wrong")),
        ("mechanism.numbers.a.b.friction", ("mechanism", "numbers", "a.b", "friction")),
        ("lists.e.f.kp", ("lists", 0, "kp")),
        ("lists[0].kp", ("lists", 0, "kp")),
        ("goal.g.h", ("goal", "g.h")),
        ("goal.g.h.i", ("goal", "g.h.i")),
    ],
)
def test_names_with_dots(load, key, path):
    found = override(load(DOTTED), f"{key}=7", named=NAMES).data
    for part in path:
        found = found[part]
    assert found == 7


def test_the_later_override_wins(load):
    source = override(override(load(RIG), "controllers.arm.kp=7"), "controllers.arm={kp: 8}")
    assert source.data["controllers"][0] == {"kp": 8}
    assert str(source.place(("controllers", 0, "kp"))) == "--set controllers.arm={kp: 8}"


@pytest.mark.parametrize("text", GIVEN["wrong_overrides"])
def test_wrong_overrides(load, said, text):
    words = refusal(override, load(RIG), text)
    assert words.startswith(f"--set {text}: ")
    said(words)


BROKEN = {
    "empty": "",
    "a comment": "# nothing\n",
    "a list": "\n- a\n",
    "no end of a list": "a: [1\nb: 2\n",
    "a tab": "a:\n\tb: 1\n",
    "no anchor": "a: *b\n",
    "two documents": "a: 1\n---\nb: 2\n",
    "a key that is a list": "? [a]\n: 3\n",
    "a control character": "a: b\nc: \x01\n",
    "a tag": "a: !foo 3\n",
    "a tag that does not fit": "a: !!int x\n",
    "an alias in its anchor": "a: &a [*a]\n",
    "an alias deep in its anchor": "a: &a\n  - 1\n  - b: *a\n",
    "a merge with itself": "a: &a\n  b: 1\n  <<: *a\n",
    "a merge with what it is in": "a: &a\n  b: &b\n    <<: *a\n",
    "a merge of a number": "a: &a {k: 1}\nb: {<<: [*a, 3]}\n",
    "deep lists": "a: " + 50 * "[" + 50 * "]",
    "deep mappings": "a: 1\nb: " + 1000 * "{c: ",
    "a long number": "a: 0x" + 5000 * "f",
    "UTF-16 of nothing": b"\xff\xfe\xff",
    "UTF-16 without a mark": "a: 1\n".encode("utf-16-be"),
    "UTF-16": "a: 1\n".encode("utf-16"),
    "a picture": b"a: 1\nb: \x89PNG",
    "XML": '<?xml version="1.0"?>\n<robot name="arm"/>\n',
    "keys given twice": "a: 1\nb: {c: 1,\n    c: 2}\na: 2\na: 3\n",
    "too large": "a: 1\n".ljust(MOST_BYTES + 1, " "),
}


@pytest.mark.parametrize("what", BROKEN)
def test_broken_files(load, said, what):
    words = refusal(load, BROKEN[what])
    assert all(line.startswith("rig.yaml:") for line in words.splitlines())
    said(words)


def test_the_largest_file(load, monkeypatch):
    monkeypatch.setattr(yaml_source, "MOST_BYTES", 1000)
    assert load("a: 1\n".ljust(1000, " ")).data == {"a": 1}


def test_what_is_no_file_is_not_opened(tmp_path, monkeypatch, said):
    """A FIFO without a writer and /dev/zero would never end."""
    monkeypatch.chdir(tmp_path)
    os.mkfifo("fifo")
    for name in ("absent.yaml", tmp_path, "fifo", "/dev/zero"):
        said(refusal(load_yaml, name))


def nested(of, first):
    """Twenty anchors, each with nine aliases of the one before."""
    lines = [f"a{i}: &a{i} {of([f'*a{i - 1}'] * 9)}\n" for i in range(1, 20)]
    return f"a0: &a0 {first}\n" + "".join(lines)


LONG = {
    "lists of aliases": nested(lambda aliases: f"[{', '.join(aliases)}]", "[x, y, z]"),
    "mappings of aliases": nested(
        lambda aliases: "{" + ", ".join(f"k{j}: {a}" for j, a in enumerate(aliases)) + "}", "{x: 1}"
    ),
    "a long list": "a:\n" + "- 1\n" * 10_000,
    "a long mapping": "a: {" + ", ".join(f"k{i}: 1" for i in range(10_000)) + "}",
}


@pytest.mark.parametrize("what", LONG)
def test_the_number_of_values_is_bounded(load, said, what):
    said(refusal(load, LONG[what]))


def test_as_many_values_as_a_file_may_have(load):
    assert len(load("a:\n" + "- 1\n" * (MOST_VALUES - 2)).data["a"]) == MOST_VALUES - 2


def test_merges_of_merges_are_merged_once(load):
    """Each mapping merges the one before ten times: without memory these are 10^20 merges."""
    text = "m0: &m0 {x: 1, y: 2}\n"
    text += "".join(f"m{i}: &m{i} {{<<: [{', '.join([f'*m{i - 1}'] * 10)}], z: {i}}}\n" for i in range(1, 21))
    assert load(text).data["m20"] == {"x": 1, "y": 2, "z": 20}


def test_earlier_mappings_of_a_merge_win(load):
    text = "a: &a {k: 1, m: 1}\nb: &b {k: 2, n: 2}\nc: {<<: [*a, *b], m: 3}\nd: {m: 3, <<: [*b, *a]}\n"
    data = load(text).data
    assert data["c"] == {"k": 1, "m": 3, "n": 2}
    assert data["d"] == {"k": 2, "m": 3, "n": 2}
