"""Decisions on the admin port: lists of them, one of them, its nodes, and a stream of new ones."""
