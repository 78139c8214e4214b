"""A rig of parts without a mechanism: what it cannot have."""

from __future__ import annotations

from collections.abc import Mapping

from cosim.rig.reading.schema import KeyPath, Reading
from cosim.rig.reading.yaml_source import YamlValue

_OF_PARTS = "give it to the parts"
# keys that act on a mechanism, and what to do instead of adding one
_OF_A_MECHANISM: Mapping[KeyPath, str] = {
    ("joints",): "take it out",
    ("drivers",): "take it out",
    ("emulator",): "take it out",
    ("controllers",): "take it out, or write the controller as a part",
    ("events",): "take it out",
    ("guard",): "take it out; a bond has `residual_limit`",
    ("tuning",): "take it out",
    ("schedule", "integrator"): _OF_PARTS,
    ("schedule", "substeps"): f"{_OF_PARTS}, as their `step`",
    ("schedule", "tolerance"): "take it out",
    ("schedule", "seed"): "take it out",
    ("schedule", "order"): "take it out",
    ("schedule", "blend"): "take it out",
    ("recording", "frame_rate"): "take it out",
}


def check_parts_only(data: Mapping[str, YamlValue], reading: Reading) -> None:
    """Record the keys of a rig without a mechanism that act on one."""
    for path, fix in _OF_A_MECHANISM.items():
        section: YamlValue = data
        for key in path:
            section = section.get(key) if isinstance(section, dict) else None
        if section is not None:
            reading.fail(path, f"acts on a mechanism, and this rig has none; {fix}, or add `mechanism`")
