"""The kinds of generated records, each described by its differences from the others."""

from __future__ import annotations

from dataclasses import dataclass
from dataclasses import field as dataclass_field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True)
class Dialect:
    """How a library declares a record.

    Attributes: `decorator`, the line above a class; `bases`, the text in the parentheses behind its name; `field`,
    the function that describes a field; `renamed`, that function's arguments for a field whose Avro name (the
    literal in place of `NAME`) is different; `types`, names of types that are not Python's own; `imports`, names by
    module; `prelude`, blocks before all others, by the name whose use requires them; `reserved`, names that a field
    cannot have.
    """

    decorator: str
    bases: str
    field: str
    renamed: tuple[str, ...]
    imports: Mapping[str, tuple[str, ...]]
    types: Mapping[str, str] = dataclass_field(default_factory=dict)
    prelude: Mapping[str, str] = dataclass_field(default_factory=dict)
    reserved: frozenset[str] = frozenset()


NAME: Final = "NAME"
_DATACLASS: Final = Dialect(
    decorator="@dataclass(kw_only=True, slots=True)\n",
    bases="AvroRecord",
    field="field",
    renamed=('metadata={"avro": NAME}',),
    imports={"dataclasses": ("dataclass", "field")},
)
_MSGSPEC: Final = Dialect(
    decorator="",
    bases="AvroRecord, Struct, kw_only=True",
    field="field",
    renamed=("name=NAME",),
    imports={"msgspec": ("Struct", "field")},
)
_OF_MODELS: Final = (
    "construct copy dict from_orm json model_computed_fields model_config model_construct model_copy model_dump"
    " model_dump_json model_extra model_fields model_fields_set model_json_schema model_parametrized_name"
    " model_post_init model_rebuild model_validate model_validate_json model_validate_strings parse_file parse_obj"
    " parse_raw schema schema_json update_forward_refs validate"
    # Those of its metaclass, too: pydantic warns of a field of such a name.
    " mro register"
)
_PYDANTIC: Final = Dialect(
    decorator="",
    bases="Model",
    field="Field",
    renamed=("serialization_alias=NAME", "validation_alias=NAME"),
    imports={
        "pydantic": ("AwareDatetime", "BaseModel", "ConfigDict", "Field", "InstanceOf", "NaiveDatetime"),
        "typing": ("Annotated",),
    },
    types={
        "int": "Int32",
        "long": "Int64",
        # Even in strict mode, pydantic converts integers and Decimals to floats, and rounds them.
        "float": "Float32",
        "double": "Float64",
        "aware": "AwareDatetime",
        "naive": "NaiveDatetime",
    },
    prelude={
        "Int32": "Int32 = Annotated[int, Field(ge=-(2**31), lt=2**31)]",
        "Int64": "Int64 = Annotated[int, Field(ge=-(2**63), lt=2**63)]",
        "Float32": "Float32 = InstanceOf[float]",
        "Float64": "Float64 = InstanceOf[float]",
        "Model": '''class Model(AvroRecord, BaseModel):
    """What all models share: values are what their types say, and nothing is converted."""

    model_config = ConfigDict(
        arbitrary_types_allowed=True,
        extra="forbid",
        populate_by_name=True,
        protected_namespaces=(),
        ser_json_bytes="base64",
        strict=True,
        val_json_bytes="base64",
    )''',
    },
    reserved=frozenset(_OF_MODELS.split()),
)
DIALECTS: Final[Mapping[str, Dialect]] = {"dataclass": _DATACLASS, "msgspec": _MSGSPEC, "pydantic": _PYDANTIC}
