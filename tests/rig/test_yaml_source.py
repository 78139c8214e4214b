"""YAML sources: plain data, the line of every element, overrides, and what is said of broken files."""

import math

import pytest

from cosim.errors import InputError
from cosim.rig.reading.yaml_source import dotted, load_yaml, override

RIG = """\
base: &gains
  kp: 1e-3
  on: off
joints:
  elbow:
    encoder: {cpr: 4096,
              delay: 1}
controllers:
  - name: arm
    kp: [1,
         2]
  - type: pid
    <<: *gains
    kp: 5
"""


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


def test_the_later_override_wins(load):
    source = override(override(load(RIG), "controllers.arm.kp=7"), "controllers.arm={kp: 8}")
    assert source.data["controllers"][0] == {"kp": 8}
    assert str(source.place(("controllers", 0, "kp"))) == "--set controllers.arm={kp: 8}"


@pytest.mark.parametrize(
    "text, what",
    [
        ("controllers.arn.kp=2", "no 'arn' in controllers; did you mean 'arm'?"),
        ("controllers.7=2", "no '7' in controllers; known: arm, pid, 0, 1"),
        ("joints.elbow.encoder.delay.x=2", "no 'x' in joints.elbow.encoder.delay"),
        ("joints.elbow", "expected key=value, for example schedule.step=2ms"),
        ("=3", "expected key=value, for example schedule.step=2ms"),
        ("base.kp=[1", "broken YAML: expected ',' or ']', but got '<stream end>'"),
        ("base.kp={a: 1, a: 2}", "key 'a' is given twice; the first is in line 1"),
    ],
)
def test_wrong_overrides(load, text, what):
    with pytest.raises(InputError) as caught:
        override(load(RIG), text)
    assert str(caught.value) == f"--set {text}: {what}"


@pytest.mark.parametrize(
    "text, message",
    [
        ("", "rig.yaml: the file is empty; it needs at least a 'mechanism'"),
        ("# nothing\n", "rig.yaml: the file is empty; it needs at least a 'mechanism'"),
        ("\n- a\n", "rig.yaml:2: expected 'key: value' lines at the top level"),
        ("a: [1\nb: 2\n", "rig.yaml:2: broken YAML: expected ',' or ']', but got ':'"),
        (
            "a:\n\tb: 1\n",
            "rig.yaml:2: broken YAML: found character '\\t' that cannot start any token; indent with spaces",
        ),
        ("a: *b\n", "rig.yaml:1: broken YAML: found undefined alias 'b'"),
        ("a: 1\n---\nb: 2\n", "rig.yaml:2: broken YAML: but found another document"),
        ("? [a]\n: 3\n", "rig.yaml:1: broken YAML: a key must be a single word"),
        ("a: b\nc: \x01\n", "rig.yaml:2: broken YAML: character '\\x01' is not allowed"),
        ("a: !foo 3\n", "rig.yaml:1 a: unknown tag '!foo'; leave it out"),
        ("a: !!int x\n", "rig.yaml:1 a: 'x' is no int"),
        ("a: &a [*a]\n", "rig.yaml: nested too deeply, or an alias inside its own anchor"),
        (b"\xff\xfe\xff", "rig.yaml: is not UTF-8 text"),
        (
            "a: 1\nb: {c: 1,\n    c: 2}\na: 2\na: 3\n",
            "rig.yaml:4: key 'a' is given twice; the first is in line 1\n"
            "rig.yaml:5: key 'a' is given twice; the first is in line 1\n"
            "rig.yaml:3 b: key 'c' is given twice; the first is in line 2",
        ),
    ],
)
def test_broken_files(load, text, message):
    with pytest.raises(InputError) as caught:
        load(text)
    assert str(caught.value) == message


def test_unreadable_files(tmp_path):
    with pytest.raises(InputError) as caught:
        load_yaml(tmp_path / "absent.yaml")
    assert str(caught.value) == f"{tmp_path}/absent.yaml: no such file"
    with pytest.raises(InputError) as caught:
        load_yaml(tmp_path)
    assert str(caught.value) == f"{tmp_path}: cannot be read: Is a directory"
