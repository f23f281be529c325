"""Column values as their senders spell them."""
