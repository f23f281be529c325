"""Avro itself: schemas, binary data, container files, and whether one schema can read what another wrote.

Nothing here depends on messages or their formats.
"""

from cdcavro.avro.comparison import Difference, schema_diff
from cdcavro.avro.compatibility import Verdict, verdict
from cdcavro.avro.schema import Schema, parse_schema

__all__ = ["Difference", "Schema", "Verdict", "parse_schema", "schema_diff", "verdict"]
