"""Writers of tick loops in machine code, their clocks, pacing and ring."""
