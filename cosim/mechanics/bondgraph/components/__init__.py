"""Components of bond graphs, one file each: `Params`, and `build(params) -> BondGraph` with its ports."""
