"""The objects of one cluster with their versions and changes, and the verbs on them."""
