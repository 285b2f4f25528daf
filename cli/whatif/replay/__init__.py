"""The commands about journals: `moorage replay` and `moorage journal`."""
