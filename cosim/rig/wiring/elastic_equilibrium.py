"""Elastic links that start in their equilibrium: in the sag under gravity and springs, the joints at their start."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from cosim.control.elastic_modes import equilibrium
from cosim.core.errors import InputError, InputErrors
from cosim.mechanics.multibody.elastic.link import ElasticLink
from cosim.rig.reading.schema import Reading
from cosim.rig.sections.elastic import AT
from cosim.rig.sections.rig_spec import RigSpec
from cosim.simulation.plant.plant import Plant


def with_elastic_equilibrium(plant: Plant, spec: RigSpec, reading: Reading) -> Plant:
    """The plant with the modes of links with `initial: equilibrium` where they hold these. Raises InputErrors for a
    mechanism with closed loops, a mode with a position of its own, and links without an equilibrium."""
    model = plant.full_model
    links = [link.elastic for link in model.mechanism.links]
    in_equilibrium = [
        f"{link.name}.{mode}"
        for link, elastic in zip(model.mechanism.links, links, strict=True)
        if isinstance(elastic, ElasticLink) and elastic.in_equilibrium
        for mode, _ in elastic.modes
    ]
    if not in_equilibrium:
        return plant
    for name in in_equilibrium:
        if spec.joints[name].initial_given[0]:
            at = ("joints", name, "initial", "position")
            reading.fail(at, "the link of the mode starts in its equilibrium; take this or its 'initial' out")
    if reading.errors:
        raise InputErrors(reading.errors)
    dofs = np.array([model.dof_index(name) for name in in_equilibrium], dtype=int)
    try:
        if model.constraint_rows:
            raise InputError("an equilibrium is found without closed loops and constraints alone; take this out")
        bent = equilibrium(model, plant.start_positions, dofs)
        for name, largest in model.full_deflection.items():
            if name in in_equilibrium and abs(bent[model.dof_index(name)]) > largest:
                raise InputError(
                    f"the load of mode '{name}' bends its link by more than its length; check its stiffness"
                )
    except InputError as error:
        entries = spec.source.data["mechanism"]["elastic"]
        number = next(i for i, entry in enumerate(entries) if entry.get("initial") == "equilibrium")
        reading.fail((*AT, number, "initial"), error.what)
        raise InputErrors(reading.errors) from None
    position = np.array(plant.position, dtype=float)
    position[[model.coordinate_names.index(name) for name in in_equilibrium]] = bent[dofs]
    return replace(plant, position=position)
