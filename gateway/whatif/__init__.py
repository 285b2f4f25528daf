"""What would have been decided otherwise: shadows beside live profiles, and questions."""
