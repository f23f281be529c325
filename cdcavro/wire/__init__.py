"""Layer 1, wire: a message becomes a payload and comes back, by its wire schema."""
