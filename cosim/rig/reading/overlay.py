"""Overlays: a YAML file of values that replace a rig's, as `--set` does; its keys are paths with dots."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import yaml

from cosim.rig.reading.yaml_source import Override, YamlSource, load_yaml


def read_overlay(path: str | Path) -> list[Override]:
    """The overrides of a file in its order, each with its line. Raises InputError for an invalid file."""
    return overrides_in(load_yaml(path, least="one value"))


def overrides_in(source: YamlSource, but: str = "") -> list[Override]:
    """The overrides of a file that was read; but: a key that is no override."""
    items = ((key, value) for key, value in source.data.items() if key != but)
    return [(f"{key}={_flow(value)}", str(source.place((key,)))) for key, value in items]


def overlays_of(overrides: Iterable[Override]) -> Iterator[Path]:
    """The files that overrides were read from."""
    for text, place in (each for each in overrides if not isinstance(each, str)):
        line = place.removesuffix(f" {text.partition('=')[0]}")
        if file := line.rpartition(":")[0]:  # none in the place of an option
            yield Path(file)


def overrides_of(values: Mapping[str, object]) -> list[Override]:
    """The same values without a file."""
    return [f"{key}={_flow(value)}" for key, value in values.items()]


def overlay_text(values: Mapping[str, object], rig: str) -> str:
    """The file with these values; rig: the file that they are for."""
    lines = [f"{_flow(key)}: {_flow(value)}\n" for key, value in values.items()]
    return f"# cosim run {' '.join(rig.split())} --overlay THIS_FILE\n" + "".join(lines)


def _flow(value: object) -> str:
    """In one line. YAML ends a lone scalar with a line of dots."""
    text = yaml.safe_dump(value, default_flow_style=True, width=10**6, allow_unicode=True)
    return text.removesuffix("...\n").strip()
