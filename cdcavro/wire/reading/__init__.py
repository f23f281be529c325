"""Reading of payloads as records or text, by a plan of small readers."""
