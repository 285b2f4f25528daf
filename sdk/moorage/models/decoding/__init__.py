"""How JSON becomes models and back, with equal parts shared to save memory."""
