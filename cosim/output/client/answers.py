"""What a run answers at its control socket, as the reference page has it: shapes for `cosim.core.trust.plain_data`."""

from __future__ import annotations

from typing import TypedDict

from cosim.output.stream.reading import Number, ParameterFields


class Answer(TypedDict, total=False):
    """Which fields there are depends on the command and on whether it is granted."""

    id: int | str | None
    ok: bool
    error: str
    input: bool  # it is the request that is wrong, for any run of the rig
    tick: int
    timeout: float
    rig: str
    files: dict[str, str]
    values: dict[str, Number | list[Number]]
    parameters: dict[str, ParameterFields]
    motion: list[str]
    confirm_turns: list[str]
    state: str
    t: Number
    pid: int
    holder: str | None
