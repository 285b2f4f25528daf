"""`moorage shadow`: how far the shadows of profiles agree with them, and where they do not."""
