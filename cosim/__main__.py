"""`python -m cosim` is the command `cosim`."""

from cosim.cli import main

main()
