"""What several commands share: options, output, drawings, and the way to a gateway."""
