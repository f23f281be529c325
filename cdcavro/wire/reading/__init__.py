"""Payload to record or text: a plan made of small readers."""
