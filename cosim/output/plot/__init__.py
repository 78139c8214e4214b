"""Plots of a run: `plot_run` (a row of axes per joint, and one of the whole mechanism), `timing_plot.plot_timing`.

style (formats, colours) → curves (points of a line) and text_layout → joint_columns, mechanism_panels and event_markers
→ run_figure (the layout) → run_plot (the file).
"""

from cosim.output.plot.curves import thin
from cosim.output.plot.glyphs import drawable
from cosim.output.plot.run_plot import plot_run
from cosim.output.plot.style import check_format, save

__all__ = ["check_format", "drawable", "plot_run", "save", "thin"]
