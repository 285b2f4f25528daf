"""The inspector: a page on the admin port, and what it asks for beside decisions."""
