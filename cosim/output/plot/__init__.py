"""Plots of a run: `RunPlot` (rows of joints or of chosen signals), `timing_plot.plot_timing`.

style (formats) → curves (points of a line) and text_layout → joint_columns, mechanism_panels and event_markers
→ run_figure and signal_figure (the layouts) → run_plot (what is shown).
"""

from cosim.output.plot.curves import thin
from cosim.output.plot.run_plot import RunPlot
from cosim.output.plot.style import check_format, drawable, save

__all__ = ["RunPlot", "check_format", "drawable", "save", "thin"]
