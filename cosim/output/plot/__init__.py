"""The picture of a run: one row per joint, below them the whole mechanism.

style (formats, colours) → curves (points of a line) and words (texts that fit) → columns (what is shown of a joint),
whole (of the mechanism) and marks (events) → figure (where all of it stands) → run (the file).
"""

from cosim.output.plot.curves import thin
from cosim.output.plot.run_plot import plot_run
from cosim.output.plot.style import check_format, save

__all__ = ["check_format", "plot_run", "save", "thin"]
