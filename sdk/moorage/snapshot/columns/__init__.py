"""The columns of a snapshot: numpy arrays and indexes over nodes and pods."""
