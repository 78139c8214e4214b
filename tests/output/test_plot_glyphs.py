"""Names with characters that the fonts of plots lack. Warnings are errors in the tests."""

from pathlib import Path

import numpy as np
import pytest

from cosim.apps.derive.graph_report import derive_graph
from cosim.execution.timing.deadlines import DeadlineRecord, TaskTime
from cosim.output.plot import RunPlot, style
from cosim.output.plot.timing_plot import plot_timing
from tests.kit.fonts import only_fonts_of_matplotlib  # noqa: F401
from tests.output.plot_helpers import run, texts, words

NAMES = {
    "肩关节": r"\u80a9\u5173\u8282",
    "🤖 arm": r"\u1f916 arm",
    "bras_é": "bras_é",
    "$a_1^": "$a_1^",
    "_low": "_low",
}


@pytest.mark.parametrize(("name", "shown"), NAMES.items())
def test_characters_without_a_glyph_are_numbers(name, shown):
    assert style.drawable(name) == shown


def test_an_installed_font_shows_its_characters(monkeypatch):
    more = min(style._characters("STIXGeneral") - style._characters(style.FONT))
    assert style.drawable(chr(more)) == f"\\u{more:04x}"
    monkeypatch.setattr(style, "OTHER_FONTS", ("a font that is not installed", "STIXGeneral"))
    style.families.cache_clear()
    assert style.families() == (style.FONT, "STIXGeneral")
    assert style.drawable(chr(more)) == chr(more)


@pytest.mark.parametrize("suffix", ["svg", "png"])
def test_a_run_with_such_names_is_drawn(tmp_path, suffix):
    path = tmp_path / f"run.{suffix}"
    t, signals, units = run(list(NAMES), ("position",))
    RunPlot(t, signals, list(NAMES), "机器人", units, "注", "说明", [(0.5, "锁")]).save(path)
    assert path.stat().st_size > 1000
    if suffix == "svg":
        found = " ".join(texts(path))
        assert r"\u80a9\u5173\u8282" in found and r"\u673a\u5668\u4eba" in found


def test_the_timing_of_a_controller_with_such_a_name_is_drawn(tmp_path, drawn):
    stamps = np.cumsum(np.full((50, 5), 1000), axis=1) + 1_000_000 * np.arange(50)[:, None]
    tasks = tuple(TaskTime(name, 1, 0, 1_000_000, False) for name in ("肩", "write"))
    record = DeadlineRecord(tasks, 1e6, np.arange(50), stamps, 0, 0, 0, 1.0, False, "Python", ())
    plot_timing(tmp_path / "timing.png", record, "机器人")
    assert any(r"\u80a9" in text for text in words(drawn[0]))


def test_a_graph_with_such_names_is_drawn(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("rig.yaml").write_text("mechanism: {bodies: [{name: 肩, mass: 1, com: [1, 0, 0], inertia: [1, 1, 1]}]}\n")
    derive_graph(Path("rig.yaml"), Path("graph.svg"))
    assert any(r"\u80a9" in text for text in texts(tmp_path / "graph.svg"))
    assert "肩" in capsys.readouterr().out
