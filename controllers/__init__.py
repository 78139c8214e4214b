"""Controllers, one per file: `Params`, the keys of a rig's section, and `load(params, context)`, a block."""
