"""Native lake tables: what a pipeline writes to them through libraries that need no Java."""
