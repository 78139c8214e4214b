"""The folder of a session: `session.json`, the files of its rig, and `trials.jsonl`, a line for each trial.

A line is written whole or, after a kill, is the torn last one, which is cut off when the session goes on.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from io import FileIO
from pathlib import Path
from typing import Any

import orjson

from cosim.apps.tuning.session_data import Trial, in_json, read_trial
from cosim.core.errors import InputError, SourceLocation
from cosim.core.paths import read_file
from cosim.output.output_files import write_error
from cosim.rig.reading.schema import Reading, read
from cosim.rig.rig import Rig, load_rig
from cosim.rig.rig_files import RigFiles
from cosim.rig.sections.tuning import TuningKeys

HEADER, TRIALS, RIG = "session.json", "trials.jsonl", "rig"
REPORT, OVERLAY = "report.html", "gains.yaml"
VERSION = 2
PARENT = "tuning"  # the folder of sessions, where the program is started
MOST_SESSIONS = 10_000  # sessions of one rig in a folder


@dataclass(frozen=True)
class SessionHeader:
    """The content of `session.json`: what a session was begun with.

    rig: its name; file: as the user gave it; as_run: its file below `rig/`; gains: all parameters of its controllers;
    request: the section `tuning`; fingerprint: see `setup.fingerprint_of`; begun: date and time; log: SHA-256 of
    the log that runs are compared with, "" without one.
    """

    rig: str
    file: str
    as_run: str
    gains: tuple[float, ...]
    request: TuningKeys
    fingerprint: str
    versions: dict[str, str]
    begun: str
    version: int = VERSION
    log: str = ""


class SessionFolder:
    """An open session, which no other process writes to. Close it."""

    def __init__(self, path: Path, header: SessionHeader, trials: list[Trial], file: FileIO) -> None:
        self.path, self.header, self.trials, self._file = path, header, trials, file

    @classmethod
    def create(cls, path: Path, header: SessionHeader, files: RigFiles) -> SessionFolder:
        """Raises InputError for a folder that has a session already, or cannot be written."""
        if (path / HEADER).exists():
            n = len(read_trials(path))
            fix = "go on with --resume, or choose another folder with --session"
            raise InputError(f"has a session of {n} trials already; {fix}", str(path))
        if path.exists() and not path.is_dir():
            raise InputError("is a file; choose a folder with --session", str(path))
        try:
            for name, content in files.contents.items():
                file = path / RIG / name
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(content)
            (path / TRIALS).touch()
            _write_header(path, header)
        except OSError as cause:
            raise write_error(path, "session", cause, "choose a folder that you may write to with --session") from cause
        return cls.open(path)

    @classmethod
    def open(cls, path: Path) -> SessionFolder:
        """To go on. Raises InputError for a folder without a session, or of a session that is running."""
        header = read_header(path)
        try:
            file = (path / TRIALS).open("r+b", buffering=0)
        except FileNotFoundError:
            raise InputError("has lost its trials; begin another session", str(path / TRIALS)) from None
        except OSError as cause:
            raise write_error(path / TRIALS, "trials", cause) from cause
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            file.close()
            raise InputError("another process works on this session; wait for it, or stop it", str(path)) from None
        try:
            trials = read_trials(path)
        except InputError:
            file.close()
            raise
        file.truncate(file.read().rfind(b"\n") + 1)
        file.seek(0, os.SEEK_END)
        return cls(path, header, trials, file)

    def update(self, request: TuningKeys) -> None:
        """Go on with other settings. Raises InputError where they cannot be written."""
        self.header = replace(self.header, request=request)
        try:
            _write_header(self.path, self.header)
        except OSError as cause:
            raise write_error(self.path, "session", cause) from cause

    def append(self, trials: Sequence[Trial]) -> None:
        """On the disk when it returns. Raises RunError for a full disk."""
        try:
            data = b"".join(trial.line() for trial in trials)
            while data:
                data = data[self._file.write(data) :]
            os.fsync(self._file.fileno())
        except OSError as cause:
            raise write_error(self.path / TRIALS, "trials", cause) from cause
        self.trials += trials

    def written(self) -> list[Trial]:
        """All trials on the disk, also where `append` was interrupted."""
        return read_trials(self.path)

    def close(self) -> None:
        self._file.close()


def _write_header(path: Path, header: SessionHeader) -> None:
    """Whole or not at all."""
    temporary = path / f".{HEADER}"
    data = asdict(header) | {"gains": list(map(in_json, header.gains))}
    temporary.write_bytes(orjson.dumps(data, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))
    temporary.replace(path / HEADER)


def read_header(path: Path) -> SessionHeader:
    """Raises InputError for a folder without a session, and for one of another version."""
    place = str(path / HEADER)
    try:
        data = orjson.loads(read_file(path / HEADER))
        if (version := data["version"]) != VERSION:
            what = f"is of version {version} of the format, this program reads {VERSION}"
            raise InputError(f"{what}; begin another session", place)
        gains = tuple(map(float, data["gains"]))
        return SessionHeader(**{**data, "gains": gains, "request": _request(data["request"])})
    except (FileNotFoundError, NotADirectoryError):
        raise InputError(f"has no session; it needs a file {HEADER}", str(path)) from None
    except (OSError, ValueError) as error:
        raise InputError(f"is damaged: {error}; begin another session", place) from None
    except (TypeError, KeyError, AttributeError):
        raise InputError("is damaged: it is no description of a session; begin another session", place) from None


def _request(data: dict[str, Any]) -> TuningKeys:
    """Raises ValueError for keys and values that no section `tuning` has."""
    reading = Reading(lambda keys: SourceLocation(".".join(map(str, keys))), [])
    given = {key: value for key, value in data.items() if value is not None}
    request = read(TuningKeys, given, ("request",), reading)
    if reading.errors or request is None:
        raise ValueError(reading.errors[0])
    return request


def read_trials(path: Path) -> list[Trial]:
    """The whole lines up to the first that is torn. Raises InputError for a damaged line in between."""
    try:
        lines = read_file(path / TRIALS).split(b"\n")
    except FileNotFoundError:
        return []
    trials = list[Trial]()
    for number, line in enumerate(lines[:-1]):  # the last one is empty, or torn
        try:
            trial = read_trial(line)
            if trial.number != number:
                raise ValueError(f"it is trial {trial.number}")
        except ValueError as error:
            place = f"{path / TRIALS}:{number + 1}"
            raise InputError(f"is damaged ({error}); cut it off before this line", place) from None
        trials.append(trial)
    return trials


def rig_of_session(path: Path) -> Rig:
    """The rig as the session ran it, from the files in its folder. Raises InputErrors where they were changed."""
    header = read_header(path)
    rig = load_rig(path / RIG / header.as_run, interpret=False)
    if len(header.gains) != len(rig.tick_model.parameters):
        raise InputError(f"does not fit the rig in {path / RIG}; begin another session", str(path / HEADER))
    rig.tick_model.parameters[:] = header.gains
    return rig


def sessions_in(folder: Path) -> list[tuple[Path, SessionHeader | None]]:
    """The sessions in a folder, the oldest first, before them those that cannot be read, which have None."""
    found = list[tuple[Path, SessionHeader | None]]()
    for file in folder.glob(f"*/{HEADER}"):
        try:
            found.append((file.parent, read_header(file.parent)))
        except InputError:
            found.append((file.parent, None))
    return sorted(found, key=lambda pair: (pair[1].begun if pair[1] else "", pair[0].name))


def new_path(folder: Path, rig: str) -> Path:
    """Of a new session of this rig."""
    stem = "".join(c if c.isalnum() or c in "._-" else "_" for c in rig)
    return next(path for k in range(1, MOST_SESSIONS) if not (path := folder / f"{stem}_{k}").exists())


def latest_path(folder: Path, fingerprint: str, rig: str) -> Path:
    """Of the newest session of this rig. Raises InputError without one."""
    found = [(path, header) for path, header in sessions_in(folder) if header is not None and header.rig == rig]
    own = [path for path, header in found if header.fingerprint == fingerprint]
    if own:
        return own[-1]
    if found:
        what = f"the sessions of '{rig}' are of a rig that has changed since"
        raise InputError(f"{what}; begin another session without --resume", str(folder))
    raise InputError(f"there is no session of '{rig}'; begin one without --resume", str(folder))


def now() -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime())
