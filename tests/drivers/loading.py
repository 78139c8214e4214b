"""What a rig of one driver is refused for before anything is opened."""

from pathlib import Path
from typing import Any

import pytest

from cosim.core.errors import InputError, InputErrors
from cosim.rig.rig import Rig
from cosim.rig.sections.rig_spec import read_rig
from tests.conformance.families import Case, rig, section, write_rig


def mistakes_of(folder: Path, case: Case, *joints: dict[str, Any], **keys: Any) -> list[str]:
    """The messages without the path. keys: of the driver's section"""
    with pytest.raises((InputError, InputErrors)) as caught:
        spec = read_rig(write_rig(folder / "rig.yaml", rig(section(case, folder, **keys), joints)))
        (context,) = Rig(spec, interpret=True).contexts.values()
        spec.drivers[0].plugin.module.load(spec.drivers[0].plugin.params, context)
    errors = getattr(caught.value, "errors", [caught.value])
    return [str(error).partition("rig.yaml:1 ")[2] for error in errors]
