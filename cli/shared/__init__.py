"""What several commands share: options, output, and the way to a gateway."""
