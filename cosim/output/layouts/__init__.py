"""Layouts of PlotJuggler and Foxglove for the signals of a rig."""
