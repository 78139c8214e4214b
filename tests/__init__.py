"""Tests of every room, and their kit."""

import os

# as in the program itself: matrices are small, and threads of several workers would only wait for each other
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
