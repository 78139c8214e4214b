"""The equations of motion of a mechanism, component by component, as text, LaTeX, C, Python and MATLAB."""
