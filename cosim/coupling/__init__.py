"""Parts with integrators of their own: how they are joined and stepped together, and the energy of their couplings."""
