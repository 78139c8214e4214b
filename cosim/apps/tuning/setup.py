"""From the section `tuning` of a rig, and options, to what a session needs."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from cosim.apps.tuning.evaluation import TrialEvaluator
from cosim.apps.tuning.objective import read_objective
from cosim.apps.tuning.optimisers import default_optimiser, find_optimiser
from cosim.apps.tuning.plants import read_plants
from cosim.apps.tuning.space import read_space
from cosim.apps.tuning.target_log import absolute_log, read_target
from cosim.core.errors import InputError, InputErrors, SectionError, SourceLocation
from cosim.output.console import relocated
from cosim.rig.reading.schema import Reading, read
from cosim.rig.rig import Rig
from cosim.rig.rig_files import files_of
from cosim.rig.sections.tuning import TuningKeys

# keys whose options are added to the rig's; the others replace them
ADDED = ("parameters", "limits", "plants", "units", "columns", "gains")


def request_of(rig: Rig, given: Mapping[str, Any]) -> TuningKeys:
    """The section of the rig with the values of options, those that are None left out; the path of its log is
    absolute.

    Raises InputErrors for values that the file could not have.
    """
    section = rig.spec.tuning
    data = {key: _plain(value) for key, value in given.items() if value is not None}
    reading = Reading(lambda path: SourceLocation(".".join(map(str, path))), [])
    options = read(TuningKeys, data, (), reading)
    if reading.errors or options is None:
        raise InputErrors(SectionError(error.what, str(error.place).split(".", 1)) for error in reading.errors)
    if section.measured is not None:
        section = replace(section, measured=absolute_log(section.measured, rig.spec.path.parent))
    changes = {key: getattr(options, key) for key in data}
    if options.measured is not None:
        changes["measured"] = absolute_log(options.measured, Path())
    for key in ADDED:
        if key in changes and getattr(section, key):
            changes[key] = {**getattr(section, key), **changes[key]}
    request = replace(section, **changes)
    request = request if request.optimiser else replace(request, optimiser=default_optimiser())
    find_optimiser(request.optimiser or "")
    return request


def _plain(value: Any) -> Any:
    """As a file would have it: a tuple of names is a list, one name a list of one."""
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    return list(value) if isinstance(value, tuple | set) else value


def evaluator_of(rig: Rig, request: TuningKeys, log: str = "") -> TrialEvaluator:
    """log: SHA-256 of the one of a session that has begun. Raises InputErrors for names and values that do not fit the
    rig, for a rig whose ticks are not compiled, and for a log that does not fit or has changed."""
    space = read_space(rig, request.parameters or {})
    objective = read_objective(rig, request.minimise or {}, request.limits or {}, request.robust)
    tuned = {dimension.parameter for dimension in space.dimensions}
    plants = read_plants(rig, request.plants or {}, request.samples, request.seed, tuned)
    evaluator = TrialEvaluator(rig, space, objective, plants, request.duration)
    evaluator.log = read_target(rig, request, objective, evaluator.seconds)
    if log and evaluator.log is not None and log != evaluator.log.digest:
        what = "is another log than the session began with; undo the change, or begin another session"
        raise InputError(what, evaluator.log.path)
    return evaluator


@contextmanager
def placed(rig: Rig, given: Mapping[str, Any]) -> Iterator[None]:
    """Errors of the section `tuning` have the line of the file of the rig, except errors of `given`."""

    def located(error: SectionError) -> InputError:
        key, *rest = error.keys
        own, section = given.get(str(key)), rig.spec.source.data.get("tuning")
        is_own = own is not None and (key not in ADDED or not rest or rest[0] in own)
        if is_own or not isinstance(section, Mapping) or key not in section:
            return error
        return InputError(error.what, rig.spec.source.place(("tuning", *error.keys)))

    with relocated(located):
        yield


def request_json(request: TuningKeys) -> dict[str, Any]:
    return asdict(request)


def fingerprint_of(rig: Rig) -> str:
    """Equal for rigs that run alike: of all files of the rig as it runs, but for its section `tuning`."""
    files = files_of(rig)
    data = yaml.safe_load(files.contents[files.as_run])
    data.pop("tuning", None)
    own = {files.as_run, files.rig}
    parts = [json.dumps(data, sort_keys=True, default=str).encode()]
    parts += [content for name, content in sorted(files.contents.items()) if name not in own]
    parts.append(np.ascontiguousarray(rig.tick_model.parameters).tobytes())
    digest = hashlib.sha256()
    for part in parts:
        digest.update(hashlib.sha256(part).digest())
    return digest.hexdigest()
