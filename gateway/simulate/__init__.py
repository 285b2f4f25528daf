"""Answers what-if questions on the admin port; nothing that the gateway keeps changes by them."""
