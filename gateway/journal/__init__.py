"""The journal: what cycles decided and the state that they saw, on disk, for `moorage replay`."""
