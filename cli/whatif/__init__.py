"""Commands that decide again, in a copy: `moorage replay`, `journal` and `simulate`."""
