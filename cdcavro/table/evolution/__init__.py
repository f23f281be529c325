"""How one version of a table becomes the next."""
