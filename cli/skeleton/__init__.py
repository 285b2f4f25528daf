"""`moorage new-plugin`: writes the skeleton of a plugin and of its test."""
