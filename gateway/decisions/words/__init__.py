"""What decisions amount to, in sentences for people."""
