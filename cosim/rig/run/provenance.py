"""What a recording states about the run: the rig as it ran, versions of programs, the commit of the rig's folder."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import time
from importlib.metadata import version
from pathlib import Path

from cosim.rig.foreign_rig import remember_own
from cosim.rig.rig_files import files_of, plugin_digests
from cosim.rig.run.run_file import run_metadata_json
from cosim.rig.run.run_metadata import RunMetadata
from cosim.rig.wiring.wired_rig import WiredRig

PACKAGES = ("cosim", "numpy", "casadi", "llvmlite")
GIT_TIME = 2.0  # s for an answer


def attachments_of(rig: WiredRig) -> tuple[tuple[str, bytes], ...]:
    """(name, content): everything that the rig was read from, and the rig as it ran, after overrides. From then on they
    are known as this user's own."""
    files = files_of(rig)
    remember_own(files)
    return tuple(files.contents.items())


def recording_metadata(rig: WiredRig, metadata: RunMetadata, start_ns: int) -> dict[str, str]:
    """Text by name, for the record `run` of a recording."""
    started = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(start_ns // 10**9)) + f".{start_ns % 10**9:09d}Z"
    versions = {name: version(name) for name in PACKAGES}
    files = files_of(rig)
    about = {"rig": rig.spec.name, "outline": run_metadata_json(metadata), "started": started}
    about |= {"rig_file": files.rig, "as_run": files.as_run, "plugins": json.dumps(plugin_digests(rig))}
    about |= {"changed_files": ", ".join(files.changed)} if files.changed else {}
    return about | versions | {"python": platform.python_version(), "system": platform.platform()} | _git(rig.spec.path)


def _git(file: Path) -> dict[str, str]:
    """Commit of the folder of the rig, and whether it was changed since; empty where there is none."""
    folder = file.absolute().parent
    commit = _answer(folder, "rev-parse", "HEAD")
    changed = _answer(folder, "status", "--porcelain", "--untracked-files=no", "--", ".") if commit else None
    return {} if commit is None or changed is None else {"git": commit, "git_changed": "yes" if changed else "no"}


def _answer(folder: Path, *words: str) -> str | None:
    environment = {**os.environ, "GIT_OPTIONAL_LOCKS": "0"}
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *words], capture_output=True, text=True, timeout=GIT_TIME, env=environment
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None
