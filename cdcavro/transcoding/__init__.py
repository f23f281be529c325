"""Converting messages to changes and back, and so any format into any other."""

from cdcavro.transcoding.losses import Loss
from cdcavro.transcoding.schema_history import SchemaHistory
from cdcavro.transcoding.transcoder import Transcoded, Transcoder

__all__ = ["Loss", "SchemaHistory", "Transcoded", "Transcoder"]
