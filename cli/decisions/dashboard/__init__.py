"""`moorage dashboard`: the inspector in a browser."""
