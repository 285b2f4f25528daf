"""The plugin API: what authors subclass, and the values that plugins exchange with Moorage."""
