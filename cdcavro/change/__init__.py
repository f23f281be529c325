"""Layer 2, change: what a change is, whatever format it came in."""
