"""The tests; imported before anything that loads a BLAS."""

import os

# as the command sets it: workers beside each other have no processors left for threads over small matrices
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
