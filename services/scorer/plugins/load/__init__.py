"""Score plugins that rank nodes by measurements of their load."""
