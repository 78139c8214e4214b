"""Layouts: every curve exists in the stream or the recording of its rig; the ready ones come from the command."""

import json
import re
from functools import cache
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from mcap.reader import make_reader
from mcap_protobuf.decoder import DecoderFactory

from cosim import load_rig
from cosim.cli.layout import KINDS, write_layout
from cosim.output.stream.messages import sample_of, template_of
from cosim.rig.run.run_metadata import run_metadata_of
from cosim.rig.run.stream import streamed_columns
from tests.output.stream.plotjuggler import PlotJuggler3

ROOT = Path(__file__).parents[2]
READY = ROOT / "rigs" / "layouts"
RIGS = ["ur5_sim", "mechanisms/floating_chain", "mechanisms/four_bar"]


@cache
def rig_of(path, *overrides):
    return load_rig(ROOT / "rigs" / f"{path}.yaml", overrides)


def layout(path, kind, folder, *overrides, recording=False):
    rig = rig_of(path, *overrides)
    return rig, write_layout(rig, kind, recording, folder / f"layout{KINDS[kind].suffix}").read_text()


def curves(text):
    root = ElementTree.fromstring(text)
    for splitter in root.iter("DockSplitter"):
        children = [child for child in splitter if child.tag in ("DockSplitter", "DockArea")]
        assert len(children) == int(splitter.get("count")) == len(splitter.get("sizes").split(";"))
    return [curve.get("name") for curve in root.iter("curve")]


@pytest.fixture(scope="module", params=RIGS)
def recorded(request, tmp_path_factory):
    """(name of a rig, topic -> names of the fields of its first message as Protobuf has them, all topics)."""
    folder, found = tmp_path_factory.mktemp("rig"), {}
    rig_of(request.param).run(duration=0.05, record=folder / "a.mcap")
    with open(folder / "a.mcap", "rb") as file:
        reader = make_reader(file, decoder_factories=[DecoderFactory()])
        topics = {channel.topic for channel in reader.get_summary().channels.values()}
        for _, channel, _, decoded in reader.iter_decoded_messages():
            found.setdefault(channel.topic, [field.name for field in decoded.DESCRIPTOR.fields])
    return request.param, found, topics


@pytest.mark.parametrize("path", RIGS)
def test_plotjuggler_finds_every_curve_in_the_stream(path, tmp_path):
    rig, text = layout(path, "plotjuggler", tmp_path)
    names = [list(run_metadata_of(rig).units)[k] for k in streamed_columns(rig.spec, tuple(run_metadata_of(rig).units))]
    plot = PlotJuggler3()
    values = np.ones(len(names))
    plot.receive([json.dumps(sample_of(template_of(names), values, {"timestamp": 1.0})).encode()], 0.0)
    assert curves(text)
    assert set(curves(text)) <= plot.curves.keys()


def test_plotjuggler_finds_every_curve_in_a_recording(recorded, tmp_path):
    path, fields, _ = recorded
    _, text = layout(path, "plotjuggler", tmp_path, recording=True)
    assert curves(text)
    assert set(curves(text)) <= {f"{topic}/{field}" for topic, names in fields.items() for field in names}


def test_only_signals_that_are_published(tmp_path):
    _, text = layout("ur5_sim", "plotjuggler", tmp_path, 'telemetry.signals=["elbow_joint/effort"]')
    assert curves(text) == ["/elbow_joint/effort"]


def panels_of(tree):
    """The panels in a tree of a layout."""
    if isinstance(tree, str):
        return [tree]
    assert tree["direction"] in ("row", "column") and 0 < tree["splitPercentage"] < 100
    return panels_of(tree["first"]) + panels_of(tree["second"])


def test_foxglove_finds_every_topic_in_a_recording(recorded, tmp_path):
    path, fields, topics = recorded
    rig, text = layout(path, "foxglove", tmp_path)
    found = json.loads(text)
    panels = found["configById"]
    shown = panels_of(found["layout"])
    shown += [panel for tab in panels["Tab!plots"]["tabs"] for panel in panels_of(tab["layout"])]
    assert sorted(shown) == sorted(panels)  # each once
    view = panels["3D!view"]
    assert set(view["topics"]) <= topics
    assert view["followTf"] == rig.plant.model.mechanism.root
    assert panels["RosOut!events"]["topicToRender"] in topics
    paths = [path["value"] for panel in panels.values() for path in panel.get("paths", ())]
    assert paths
    for each in paths:
        topic, field = re.fullmatch(r'"?([^"]+?)"?\.(\w+)', each).groups()
        assert field in fields[topic]
        assert '"' in each or "." not in topic


@pytest.mark.parametrize("path", sorted(READY.iterdir()), ids=lambda path: path.name)
def test_a_ready_layout_is_that_of_the_command(path, tmp_path):
    rig, kind, _ = path.name.split(".")
    assert layout(rig, kind, tmp_path)[1] == path.read_text()


def test_the_command_writes_here(command):
    assert command("export", "layout", "rig.yaml", "--for", "foxglove") == (0, "wrote rig.foxglove.json\n", [])
    assert json.loads(Path("rig.foxglove.json").read_text())["layout"]
    assert command("export", "layout", "rig.yaml", "--for", "plotjuggler", "-o", "a.xml")[0] == 0
    assert curves(Path("a.xml").read_text())
