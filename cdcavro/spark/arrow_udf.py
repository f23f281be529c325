"""Arrow functions as functions of Columns, and what each function does first in Spark's workers.

Spark 4.1 hands Arrow arrays to functions as they are (`arrow_udf`). Older ones make pandas of them, which has no whole
number beside a null, no null struct, and no string that is not UTF-8. So there what is text or bytes is sent as bytes,
everything else as JSON, and a struct with a field that says whether it is one.
"""

from __future__ import annotations

import gc
import sys
from functools import cache, wraps
from typing import TYPE_CHECKING, Any, Final, ParamSpec, TypeVar
from zipimport import zipimporter

import orjson
import pyarrow as pa
import pyspark
from pyspark.errors import AnalysisException
from pyspark.sql import functions as sf
from pyspark.sql.pandas import functions

from cdcavro.errors import SetupError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyspark.sql import Column

    # What makes an array of the values of an argument, which is sent as JSON.
    FromJson = Callable[[list[Any]], pa.Array]

P = ParamSpec("P")
R = TypeVar("R")

ARROW: Final = "4.1"
_MAKERS: Final[Any] = functions
HAS_ARROW: Final = hasattr(_MAKERS, "arrow_udf")
_NO_JSON: Final[Mapping[int, FromJson]] = {}
_IS_THERE: Final = "is_there"


def column_function(
    function: Callable[..., pa.Array],
    returns: str,
    name: str,
    *,
    is_deterministic: bool = True,
    from_json: Mapping[int, FromJson] = _NO_JSON,
) -> Callable[..., Column]:
    """Return a function of Columns made from a function of Arrow arrays; `returns` is its result type as DDL.

    Result columns are named after `name`. `from_json` has the arguments that are neither text nor bytes, by their
    position, each with what makes its array of Python values where Spark has none of Arrow.
    """
    if HAS_ARROW:
        result: Callable[..., Column] = _set_determinism(
            _MAKERS.arrow_udf(_name_function(function, name), returns), is_deterministic
        )
        return result
    is_struct = _is_struct(returns)
    kind = f"{returns}, {_IS_THERE} boolean" if is_struct else returns
    udf = _set_determinism(_pandas_udf(function, kind, name, from_json), is_deterministic)

    def call(*args: Column | str) -> Column:
        columns = [sf.col(one) if isinstance(one, str) else one for one in args]
        result = udf(*[_json(one) if i in from_json else _bytes(one) for i, one in enumerate(columns)])
        return (_nullable(result) if is_struct else result).alias(f"{name}({', '.join(map(_shown, args))})")

    return call


def sql_function(function: Callable[..., pa.Array], returns: str, name: str, *, is_deterministic: bool = True) -> Any:
    """Return a function of Arrow arrays of text and bytes as Spark registers it for SQL."""
    if HAS_ARROW:
        registered = _MAKERS.arrow_udf(_name_function(function, name), returns)
    elif _is_struct(returns):
        # Structs that may be null are given row by row only.
        registered = sf.udf(_of_row(_name_function(function, name)), returns, useArrow=False)
    else:
        registered = _pandas_udf(function, returns, name, _NO_JSON)
    return _set_determinism(registered, is_deterministic)


def _name_function(function: Callable[P, R], name: str) -> Callable[P, R]:
    own = in_worker(function)
    own.__name__ = name
    return own


def _set_determinism(function: Any, is_deterministic: bool) -> Any:  # noqa: FBT001
    return function if is_deterministic else function.asNondeterministic()


def _is_struct(returns: str) -> bool:
    """Return whether a type as DDL is a list of fields, each with a name before its type."""
    return " " in returns.partition("<")[0]


def _bytes(value: Column) -> Column:
    """Return text or bytes as bytes, whether they are UTF-8 or not; Spark refuses a column of any other type."""
    # The branch that is never taken only takes bytes, where a cast takes whole numbers, too.
    return sf.when(sf.lit(True), value.cast("binary")).otherwise(sf.unbase64(sf.base64(value)))  # noqa: FBT003


def _shown(value: Column | str) -> str:
    """Return what a column is called, which stands last in what Python shows of it."""
    try:
        text = str(value)
    except AnalysisException:
        # Spark 3.5 shows no field of an item of an array before it knows the types.
        return "..."
    return text.removeprefix("Column<'").removesuffix("'>").rpartition(" AS ")[2].strip("`")


def _json(value: Column) -> Column:
    return sf.to_json(sf.struct(value.alias("v"))).cast("binary")


def _nullable(struct: Column) -> Column:
    """Return a struct without its last field, or null, as that says. As an argument it is made once."""
    return sf.transform(sf.array(struct), lambda one: sf.when(one[_IS_THERE], one.dropFields(_IS_THERE)))[0]


def _pandas_udf(function: Callable[..., pa.Array], returns: str, name: str, from_json: Mapping[int, FromJson]) -> Any:
    """Return what Spark makes of a function of Arrow arrays where these come and go as columns of pandas."""
    import pandas as pd  # noqa: PLC0415  newer ones need none

    def run(*columns: Any) -> Any:
        arrays = [_array(column, from_json.get(i)) for i, column in enumerate(columns)]
        return _pandas(function(*arrays))

    # What Spark goes by.
    run.__annotations__ = {"columns": pd.Series, "return": pd.DataFrame if _is_struct(returns) else pd.Series}
    own = _name_function(run, name)
    return _MAKERS.pandas_udf(own, returns)


def _array(column: Any, from_json: FromJson | None) -> pa.Array:
    """Return a column of pandas as an array, of bytes, strings or what is made of values in JSON."""
    values = column.to_list()
    if from_json is not None:
        return from_json([orjson.loads(value).get("v") for value in values])
    first = next((value for value in values if value is not None), None)
    if isinstance(first, dict):
        # Whole numbers in it that stood beside nulls are rounded by now.
        raise SetupError(
            f"a map as an argument in SQL needs Spark {ARROW}, and this is {pyspark.__version__}: give its to_json"
        )
    return pa.array(values, pa.binary() if isinstance(first, bytes) else None, from_pandas=True)


def _pandas(array: pa.Array) -> Any:
    """Return an array as a column of pandas: of a struct a frame of its fields and of whether it is there."""
    import pandas as pd  # noqa: PLC0415  see _pandas_udf

    if pa.types.is_struct(array.type):
        fields = {
            field.name: _pandas(part) if not pa.types.is_struct(part.type) else _values(part)
            for field, part in zip(array.type, array.flatten(), strict=True)
        }
        return pd.DataFrame({**fields, _IS_THERE: _pandas(array.is_valid())})
    if pa.types.is_nested(array.type):
        return _values(array)
    return pd.Series(pd.arrays.ArrowExtensionArray(array))


def _values(array: pa.Array) -> Any:
    """Return an array of values with parts as a column of Python's."""
    import pandas as pd  # noqa: PLC0415  see _pandas_udf

    values = array.to_pylist()
    if pa.types.is_map(array.type):
        values = [None if value is None else dict(value) for value in values]
    return pd.Series(values, dtype=object)


def _of_row(function: Callable[..., pa.Array]) -> Callable[..., Any]:
    """Return a function of single values made from one of arrays."""

    @wraps(function)
    def run(*values: Any) -> Any:
        return function(*[pa.array([value]) for value in values]).to_pylist()[0]

    return run


def in_worker(function: Callable[P, R]) -> Callable[P, R]:
    """Return a function that Spark's workers run, so that their next tasks begin sooner.

    A worker makes Python forget what it found on its path before each task, and zip files, of which Spark's largest jar
    is one, are then read again as a whole: 0.12 s of a processor. What is not on the list of those found is not read.
    Behind each task it looks for garbage among all objects: 0.06 s. Those of modules stay, and are looked at no more.
    """

    @wraps(function)
    def run(*args: P.args, **named: P.kwargs) -> R:
        _keep_modules()
        for path, finder in list(sys.path_importer_cache.items()):
            if isinstance(finder, zipimporter):
                # It is found again if it is needed.
                sys.path_importer_cache.pop(path, None)
        return function(*args, **named)

    return run


@cache
def _keep_modules() -> None:
    # Once: what a task leaves behind must not stay.
    gc.freeze()


def raw_bytes(values: pa.Array) -> list[bytes | None]:
    """Return the values of a string or binary array as bytes, whether they are UTF-8 or not."""
    if pa.types.is_string(values.type) or pa.types.is_large_string(values.type):
        values = values.cast(pa.large_binary() if pa.types.is_large_string(values.type) else pa.binary())
    raw_values: list[bytes | None] = values.to_pylist()
    return raw_values
