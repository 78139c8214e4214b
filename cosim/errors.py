"""The errors that a program catches: `InputError` where its input is wrong, `RunError` where a run failed; and the
category of the warnings of runs, `RunWarning`."""

from cosim.core.errors import CosimError, InputError, InputErrors, RunError, RunWarning, SourceLocation

__all__ = ["CosimError", "InputError", "InputErrors", "RunError", "RunWarning", "SourceLocation"]
