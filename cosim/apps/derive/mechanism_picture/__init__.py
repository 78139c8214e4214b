"""`cosim derive --picture`: a mechanism as a figure, planar ones flat in their plane, spatial ones seen from above."""
