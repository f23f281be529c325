from cdcavro.exact.numbers cimport ExactNumber, minimal_bytes, number_text, unscaled
