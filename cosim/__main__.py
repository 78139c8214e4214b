"""`python -m cosim` is the command `cosim`."""

from cosim.cli.main import main

main()
