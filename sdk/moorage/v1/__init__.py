"""Generated from protos/moorage/v1 by `make protos`; do not edit."""
