"""A link that loses, holds and cuts."""
