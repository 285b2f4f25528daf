"""The attempts that are kept: the newest ones, within a count and within an amount of memory."""
