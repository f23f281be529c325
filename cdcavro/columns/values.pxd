from cdcavro.scalars cimport plain_text
from cdcavro.text cimport ExactNumber, render
