"""Converting messages to changes and back, and so any format into any other."""

from cdcavro.transcoding.mapping import SchemaHistory
from cdcavro.transcoding.transcoder import Loss, Transcoded, Transcoder

__all__ = ["Loss", "SchemaHistory", "Transcoded", "Transcoder"]
