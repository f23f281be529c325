"""The reference, made from the code, the schemas and the samples: functions that return Markdown, and a Sphinx extension."""
