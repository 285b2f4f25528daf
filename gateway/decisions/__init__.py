"""What was decided about each pod, and why."""
