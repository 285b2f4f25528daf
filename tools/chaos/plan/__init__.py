"""What is broken when, under which load."""
