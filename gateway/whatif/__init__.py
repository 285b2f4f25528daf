"""What would have been decided otherwise: shadows beside live profiles, questions, and replays."""
