"""Record or text to payload: a plan made of small writers."""
