"""The objects that `moorage up` creates: read from files, or generated."""
