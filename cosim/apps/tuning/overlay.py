"""The gains of a trial as an overlay, a file for `cosim run --overlay`."""

from __future__ import annotations

from pathlib import Path

from cosim.apps.tuning.session_data import SessionData
from cosim.apps.tuning.trials import Trial
from cosim.output.output_files import write_file
from cosim.rig.parameters import tunables_of
from cosim.rig.reading.yaml_source import overlay_text


def overlay_values(session: SessionData, trial: Trial) -> dict[str, object]:
    """key of the rig file -> value."""
    gains = tunables_of(session.evaluator.rig)
    values = session.parameters_of(trial)
    return {f"controllers.{name}" if name in gains else _key(name): value for name, value in values.items()}


def _key(number: str) -> str:
    """Of a number of the plant."""
    section, _, rest = number.partition(".")
    return f"mechanism.numbers.{rest}" if section == "mechanism" else number


def write_gains(session: SessionData, trial: Trial, path: str | Path) -> None:
    """Raises InputError for a file that cannot be written, RunError for a full disk."""
    text = overlay_text(overlay_values(session, trial), str(session.evaluator.rig.spec.path))
    write_file(path, text.encode(), "gains")
