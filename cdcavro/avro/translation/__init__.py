"""Translation of payloads: what one schema wrote, as another would have written it."""
