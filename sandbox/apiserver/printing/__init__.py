"""The forms in which objects are answered: whole, with metadata only, or as kubectl's Table."""
