"""The `moorage` command."""
