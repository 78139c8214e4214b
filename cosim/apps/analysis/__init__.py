"""Linear analysis: a tick of a rig linearised exactly, its poles, frequency responses and margins."""
