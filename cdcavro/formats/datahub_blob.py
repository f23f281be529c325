"""DataHub Blob topics, and what DataWorks writes to Kafka (`avsc/datahub_blob.avsc`).

Source: DataHub message formats, "Blob message format", English and Chinese.

* An update is two messages with one `sequenceId`: `UPDATE_BEFOR` (so spelled; `UPDATE_BEFORE` is read
  as the same) and `UPDATE_AFTER`; the Chinese document also has plain `UPDATE`.
* Members that are empty are null in some messages and left out in others.
* DATE is milliseconds since the epoch, BYTES base64; a DOUBLE may come as a string.
* `ddlMeta` is base64 of Java-serialized bytes: carried as it is, never deserialized.
"""

from cdcavro.format import Format

FORMAT = Format("datahub_blob")
