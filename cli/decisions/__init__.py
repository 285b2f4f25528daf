"""Commands that read what a gateway has decided: `moorage explain`, `top` and `shadow`."""
