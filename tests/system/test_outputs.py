"""Outputs during a run: the recording, live telemetry, progress."""

import os
import socket

import numpy as np
import pytest
from orjson import loads

from cosim.core.errors import InputError
from cosim.output.view3d.motion import TOPICS
from cosim.rig.run.run import StoppedRun
from tests.kit.recordings import recorded_messages
from tests.kit.refusals import raised
from tests.kit.rigs import signal_units

RIG = """
name: swing
mechanism:
  bodies:
    - {name: link, joint: hinge, axis: [0, 1, 0], mass: 1 kg, com: [0, 0, -0.5], inertia: [0.1, 0.1, 0.1]}
joints: {hinge: {initial: {position: 0.3}}}
controllers:
  - {name: hold, type: pid, kp: 50, ki: 10, kd: 5, trajectory: {type: quintic, goal: 30 deg, duration: 0.5}}
schedule: {duration: 1.5 s}
"""
UNSTABLE = "controllers.hold.kd=1e9"


def messages(path):
    """topic -> [(time in ns, message)] as the mcap package reads them; counts without the view in 3D."""
    from mcap.reader import make_reader

    found: dict[str, list] = {}
    for message in recorded_messages(path):
        found.setdefault(message.topic, []).append((message.t_ns, message.fields))
    with path.open("rb") as file:
        reader = make_reader(file, validate_crcs=True)
        summary = reader.get_summary()
        attachments = {a.name: a.data for a in reader.iter_attachments()}
        metadata = {m.name: m.metadata for m in reader.iter_metadata()}
    assert summary is not None and summary.statistics is not None
    counts = {summary.channels[k].topic: n for k, n in summary.statistics.channel_message_counts.items()}
    counts = {topic: n for topic, n in counts.items() if topic not in TOPICS}
    return found, counts, attachments, metadata


def test_a_recording_holds_every_tick_and_the_rig(rig_of, tmp_path):
    path = tmp_path / "run.mcap"
    rig = rig_of(RIG)
    run = rig.run(record=path)
    found, counts, attachments, metadata = messages(path)
    assert counts == {"/joints/hinge": 1501, "/energy": 1501}
    for topic, group in (("/joints/hinge", "hinge"), ("/energy", "energy")):
        assert [t for t, _ in found[topic]] == [k * 1_000_000 for k in range(1501)]
        names = [name.removeprefix(f"{group}/") for name in run.signals if name.startswith(f"{group}/")]
        assert list(found[topic][0][1]) == names
        for name in names:
            recorded = [message[name] for _, message in found[topic]]
            np.testing.assert_array_equal(recorded, run[f"{group}/{name}"])
    assert attachments["rig.yaml"] == (tmp_path / "rig.yaml").read_bytes()
    assert metadata["run"]["rig"] == "swing"


@pytest.mark.parametrize("interpret", [False, True])
def test_the_recording_of_a_diverging_run_is_kept_with_the_reason(rig_of, tmp_path, interpret):
    path = tmp_path / "run.mcap"
    with pytest.raises(StoppedRun) as caught:
        rig_of(RIG, UNSTABLE, interpret=interpret).run(record=path)
    run = caught.value.run
    found, counts, _, _ = messages(path)
    assert counts == {"/joints/hinge": len(run.t), "/energy": len(run.t), "/log": 1}
    time, event = found["/log"][0]
    assert time == round(run.t[-1] * 1e9) == (len(run.t) - 1) * 1_000_000
    assert (event["message"], event["level"]) == (run.fault, 4)
    tick = len(run.t) - 1
    assert run.fault.startswith(f"stopped at tick {tick} (t = {run.t[-1]:g} s): joint 'hinge' is not finite (")
    last = found["/joints/hinge"][-1][1]
    assert not np.isfinite([last["velocity"], last["command_effort"]]).all()
    before = [message for _, message in found["/joints/hinge"][:-1]]
    assert np.isfinite([[message["position"], message["velocity"]] for message in before]).all()


def test_the_summary_of_a_diverging_run_has_no_nan(rig_of):
    with pytest.raises(StoppedRun) as caught:
        rig_of(RIG, UNSTABLE).run()
    run = caught.value.run
    assert 2 < len(run.t) < 500
    assert np.isfinite(run["hinge/position"][:-2]).all()
    summary = run.summary
    assert summary["outcome"] == run.fault
    assert summary["ticks"] == len(run.t) - 1
    assert not np.isfinite(summary["energy"]["residual"])
    assert not summary["energy"]["residual_relative"] < 1.0


def free_endpoint():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"tcp://127.0.0.1:{probe.getsockname()[1]}"


def test_a_subscriber_gets_samples_during_the_run(rig_of):
    import zmq

    endpoint, received = free_endpoint(), []
    rig = rig_of(RIG, f"telemetry={{publish: '{endpoint}', rate: 200 Hz}}", "schedule.duration=20000 s")
    with zmq.Context() as context, context.socket(zmq.SUB) as subscriber:
        subscriber.setsockopt(zmq.SUBSCRIBE, b"")
        subscriber.setsockopt(zmq.RECONNECT_IVL, 5)
        subscriber.connect(endpoint)  # before the run binds it: the run need not wait for anyone

        def listen(fraction: float) -> None:
            if {"n", "schema"} <= {key for message in received for key in message}:
                raise KeyboardInterrupt  # as the user ends a long run
            while subscriber.poll(50 if not received else 0):
                received.append(loads(subscriber.recv()))

        with pytest.raises(StoppedRun, match="interrupted after tick") as caught:
            rig.run(progress=listen)
    run = caught.value.run
    samples = [message for message in received if "n" in message]
    assert run.summary["stream"] == {"endpoint": endpoint, "open": True, "missed": 0, "failure": None}
    for sample in samples:
        assert sample["tick"] % 5 == 0 and sample["t"] == pytest.approx(run.t[sample["tick"]])
        for name in run.signals:
            group, what = name.split("/")
            assert sample[group][what] == run[name][sample["tick"]]
    schema = loads(next(message["schema"] for message in received if "schema" in message))
    assert schema["signals"] == signal_units(rig)
    assert (schema["rig"], schema["pid"], schema["realtime"]) == (rig.spec.name, os.getpid(), False)
    assert (schema["rate"], schema["step"], schema["control"]) == (200.0, 0.001, None)
    assert schema["joints"]["hinge"]["unit"] == "rad" and schema["joints"]["hinge"]["real"] is False
    kp = {"unit": "N*m/rad", "min": 0, "max": None, "value": [50.0], "joints": ["hinge"]}
    kp |= {"about": "effort per position error", "changes": "live"}
    assert schema["parameters"]["hold.kp"] == kp and schema["parameters"].keys() == rig.parameters.keys()


MISTAKES = {
    "no such signal": (f"{RIG}telemetry: {{signals: [hinge/positon]}}\n",),
    "no timing": (f"{RIG}telemetry: {{signals: ['hinge/*', timing/latency]}}\n",),
    "a joint with the name of a field": (RIG.replace("hinge", "tick"), "telemetry.publish=ipc://rig"),
}


@pytest.mark.parametrize("case", MISTAKES)
def test_what_cannot_be_published_is_reported_when_the_rig_is_read(rig_of, said, case):
    said(raised(InputError, rig_of, *MISTAKES[case]))


def test_names_and_units_of_signals(rig_of):
    units = signal_units(rig_of(RIG))
    assert units == {
        "hinge/position": "rad",
        "hinge/velocity": "rad/s",
        "hinge/acceleration": "rad/s^2",
        "hinge/effort": "N*m",
        "energy/kinetic": "J",
        "energy/potential": "J",
        "energy/stored": "J",
        "energy/work": "J",
        "energy/dissipated": "J",
        "hinge/reference_position": "rad",
        "hinge/reference_velocity": "rad/s",
        "hinge/reference_acceleration": "rad/s^2",
        "hinge/command_effort": "N*m",
        "hinge/integral": "N*m",
    }
    sliding = signal_units(rig_of(RIG.replace("axis:", "type: prismatic, axis:").replace("30 deg", "0.1 m")))
    assert [sliding[f"hinge/{what}"] for what in ("position", "velocity", "acceleration", "effort")] == [
        "m", "m/s", "m/s^2", "N"
    ]  # fmt: skip


def test_a_run_without_a_single_step_is_refused(rig_of):
    rig = rig_of(RIG)
    for duration in (0.0, -1.0, 4e-4):
        with pytest.raises(InputError) as caught:
            rig.run(duration)
        assert str(caught.value) == f"duration: {duration:g} s is shorter than one step; use a longer one"
    with pytest.raises(InputError, match=r"^duration: 1e\+300 s is too long; use a shorter one$"):
        rig.run(1e300)
    assert len(rig.run(6e-4).t) == 2
