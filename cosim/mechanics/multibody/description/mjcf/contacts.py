"""Contacts of a compiled model, which become none of the mechanism: whether the motion of the file needs them."""

from __future__ import annotations

import numpy as np

from cosim.mechanics.multibody.description.diagnostics import NO_CONTACTS
from cosim.mechanics.multibody.description.mjcf.compiled import CompiledModel


def contacts_of(compiled: CompiledModel) -> None:
    """A warning where bodies touch at the start, or where a geom that stands, such as a floor, could be hit by a body
    that moves freely; a note where other bodies could touch; nothing where none can."""
    model = compiled.model
    if compiled.disables("CONTACT") or compiled.disables("CONSTRAINT"):
        return
    data = compiled.posed()
    if data.ncon:
        first = data.contact[0]
        names = " and ".join(f"'{compiled.name('BODY', model.geom_bodyid[geom])}'" for geom in first.geom)
        return compiled.warn(f"{NO_CONTACTS}: bodies {names} touch at the start, and move through one another here")
    touching = _pairs(compiled)
    if not touching:
        return None
    free = [int(model.jnt_bodyid[k]) for k in range(model.njnt) if compiled.kind(k) == "free"]
    roots = {int(model.body_rootid[body]) for body in free}
    standing = [b for a, b in touching if not model.body_weldid[a] and model.body_rootid[b] in roots]
    if standing:
        name = compiled.name("BODY", standing[0])
        return compiled.warn(
            f"{NO_CONTACTS}: body '{name}' falls through what stands; hold its base or add mechanism.contacts"
        )
    compiled.diagnostics.note(f"{NO_CONTACTS}: bodies move through one another", compiled.place("geom", "*"))
    return None


def _pairs(compiled: CompiledModel) -> list[tuple[int, int]]:
    """Pairs of bodies whose geoms MuJoCo lets touch, one that stands first."""
    model = compiled.model
    types, affinities, bodies = (
        np.array(each) for each in (model.geom_contype, model.geom_conaffinity, model.geom_bodyid)
    )
    weld = np.array(model.body_weldid)
    masks: dict[int, tuple[int, int]] = {}
    for body, kind, affinity in zip(weld[bodies].tolist(), types.tolist(), affinities.tolist(), strict=True):
        before = masks.get(body, (0, 0))
        masks[body] = before[0] | kind, before[1] | affinity
    parents = {body: int(weld[model.body_parentid[body]]) for body in masks}
    filtered = not compiled.disables("FILTERPARENT")
    found = [
        (int(weld[bodies[a]]), int(weld[bodies[b]])) for a, b in zip(model.pair_geom1, model.pair_geom2, strict=True)
    ]
    excluded = {tuple(sorted(divmod(int(signature), 1 << 16))) for signature in model.exclude_signature}
    ordered = sorted(masks)
    for k, a in enumerate(ordered):
        for b in ordered[k + 1 :]:
            related = filtered and a and (parents[b] == a or parents[a] == b)
            may = masks[a][0] & masks[b][1] or masks[b][0] & masks[a][1]
            if may and not related and (a, b) not in excluded:
                found.append((a, b))
    return [(min(pair), max(pair)) for pair in found if pair[0] != pair[1]]
