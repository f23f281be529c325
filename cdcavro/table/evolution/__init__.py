"""How one version of a table's schema becomes the next."""
