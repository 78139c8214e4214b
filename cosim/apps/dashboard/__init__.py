"""The page of a run in a browser: live, or from a recording."""
