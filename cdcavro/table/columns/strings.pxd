from cdcavro.exact.jsontext cimport render
from cdcavro.exact.numbers cimport ExactNumber, plain_text
