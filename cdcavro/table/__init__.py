"""Layer 3, table: typed tables whose schemas follow their columns and statements."""
