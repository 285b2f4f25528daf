"""The policy in force, and how another one comes into force."""
