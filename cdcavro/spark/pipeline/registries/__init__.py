"""What a pipeline has a schema registry for: publishing the schemas of its tables, and reading framed payloads."""
