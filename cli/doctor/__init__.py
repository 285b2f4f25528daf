"""`moorage doctor`: checks a live installation, and names what to change."""
