"""Helpers that tests of several rooms share, one idea per module; nothing of `cosim` imports them."""
