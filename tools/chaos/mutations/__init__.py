"""Takes safeguards out of a copy of the tree."""
