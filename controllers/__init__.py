"""Controllers, one file per type: `Params`, the keys of its section, and `load(params, context) -> Controller`."""
