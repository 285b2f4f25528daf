"""Commands that read what a gateway has decided: `moorage explain`, `dashboard` and `shadow`."""
