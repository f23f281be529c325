"""Messages to changes and back, and so any format into any other."""
