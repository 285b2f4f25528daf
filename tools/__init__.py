"""What builds, generates, measures and breaks Moorage, and is no test."""
