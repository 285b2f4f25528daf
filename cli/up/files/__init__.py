"""Files that `moorage up` writes, and removes in the end."""
