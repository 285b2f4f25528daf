"""Builds the image without a container engine; `make image`."""
