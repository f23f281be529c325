"""Column values as the senders of messages spell them."""
