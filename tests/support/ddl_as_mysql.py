"""Random DDL steps, and MySQL statements that mean the same."""

from __future__ import annotations

from hypothesis import strategies as st

from cdcavro.exact.numbers import ExactNumber
from cdcavro.table.ddl.steps import (
    AddColumn,
    AddKey,
    AlterTable,
    ChangeColumn,
    ColumnDef,
    Constant,
    CreateTable,
    DropColumn,
    DropDefault,
    DropKey,
    DropTable,
    Expression,
    ModifyColumn,
    RenameColumn,
    RenameTable,
    RenameTo,
    SetDefault,
    TableName,
    Truncate,
)

_TEXT = st.text(st.characters(exclude_categories=["Cs"]) | st.sampled_from("`'\"\\;#-/*! \n"), max_size=8)
_NAMES = st.text(st.characters(exclude_categories=["Cs"]) | st.sampled_from("`'\"\\;. "), min_size=1, max_size=8)
_TABLES = st.builds(TableName, st.none() | _NAMES, st.none(), _NAMES)
_NUMBERS = st.from_regex(r"-?(0|[1-9][0-9]{0,40})(\.[0-9]{1,30})?([eE][+-]?[0-9]{1,3})?", fullmatch=True)
_DEFAULTS = st.one_of(
    st.builds(Constant, _TEXT | st.binary(max_size=4) | st.booleans() | st.none()),
    st.builds(lambda digits: Constant(ExactNumber(digits)), _NUMBERS),
    st.sampled_from([Expression("CURRENT_TIMESTAMP(6)"), Expression("(uuid())"), Expression("(`a b` + ',')")]),
)
_LABELS = st.lists(_TEXT, min_size=1, max_size=3).map(
    lambda labels: "enum(" + ",".join("'" + label.replace("'", "''") + "'" for label in labels) + ")"
)
_TYPES = _LABELS | st.sampled_from(
    ["int", "DECIMAL(65,30) unsigned zerofill", "double precision", "varchar(9)", "binary(1)"]
)
_COLUMNS = st.builds(
    ColumnDef, _NAMES, _TYPES, st.none() | st.booleans(), st.none() | _DEFAULTS, st.just(value=False), st.booleans()
)
_PLACES = st.sampled_from([{}, {"first": True}]) | st.builds(lambda name: {"after": name}, _NAMES)
_ACTIONS = st.one_of(
    st.builds(
        lambda column, place, asked: AddColumn(column, if_not_exists=asked, **place), _COLUMNS, _PLACES, st.booleans()
    ),
    st.builds(lambda column, place: ModifyColumn(column, whole=True, **place), _COLUMNS, _PLACES),
    st.builds(lambda old, column, place: ChangeColumn(old, column, **place), _NAMES, _COLUMNS, _PLACES),
    st.builds(DropColumn, _NAMES, st.booleans()),
    st.builds(RenameColumn, _NAMES, _NAMES),
    st.builds(SetDefault, _NAMES, _DEFAULTS),
    st.builds(DropDefault, _NAMES),
    st.builds(AddKey, st.lists(_NAMES, min_size=1, max_size=3).map(tuple)),
    st.just(DropKey()),
    st.builds(RenameTo, _TABLES),
)
_SEVERAL = st.lists(_TABLES, min_size=1, max_size=3).map(tuple)
STEPS = st.one_of(
    st.builds(
        lambda table, columns, keyed, asked: CreateTable(
            table, tuple(columns), tuple(column.name for column in columns[:keyed]), None, asked
        ),
        _TABLES,
        st.lists(_COLUMNS, min_size=1, max_size=3, unique_by=lambda column: column.name),
        st.integers(0, 2),
        st.booleans(),
    ),
    st.builds(lambda table, like: CreateTable(table, like=like), _TABLES, _TABLES),
    st.builds(DropTable, _SEVERAL, st.booleans()),
    st.builds(Truncate, _TABLES.map(lambda table: (table,))),
    st.builds(RenameTable, _TABLES, _TABLES),
    st.builds(AlterTable, _TABLES, st.lists(_ACTIONS, min_size=1, max_size=3).map(tuple)),
)


def _string(text):
    return "'" + text.replace("\\", "\\\\").replace("'", "''") + "'"


def _name(name):
    return "`" + name.replace("`", "``") + "`"


def _table(table):
    return _name(table.table) if table.database is None else f"{_name(table.database)}.{_name(table.table)}"


def _default(default):
    match default:
        case Expression(text):
            return text
        case Constant(ExactNumber() as digits):
            return digits.text
        case Constant(bytes() as value):
            return f"x'{value.hex()}'"
        case Constant(str() as value):
            return _string(value)
        case Constant(value):
            return {True: "TRUE", False: "FALSE", None: "NULL"}[value]


def _column(column):
    words = [_name(column.name), column.type.replace("\\", "\\\\")]
    words += ["GENERATED ALWAYS AS (1)"] if column.generated else []
    words += [] if column.nullable is None else ["NULL" if column.nullable else "NOT NULL"]
    words += [] if column.default is None else ["DEFAULT", _default(column.default)]
    return [*words, "COMMENT 'x'"]


def _place(action):
    return ["FIRST"] if action.first else [] if action.after is None else ["AFTER", _name(action.after)]


def _action(action):
    match action:
        case AddColumn():
            asked = ["COLUMN", "IF", "NOT", "EXISTS"] if action.if_not_exists else []
            return ["ADD", *asked, *_column(action.column), *_place(action)]
        case ModifyColumn():
            return ["MODIFY", *_column(action.column), *_place(action)]
        case ChangeColumn():
            return ["CHANGE", "COLUMN", _name(action.old), *_column(action.column), *_place(action)]
        case DropColumn():
            return ["DROP", *(["COLUMN", "IF", "EXISTS"] if action.if_exists else []), _name(action.name)]
        case RenameColumn():
            return ["RENAME", "COLUMN", _name(action.old), "TO", _name(action.new)]
        case SetDefault():
            return ["ALTER", _name(action.name), "SET", "DEFAULT", _default(action.default)]
        case DropDefault():
            return ["ALTER", "COLUMN", _name(action.name), "DROP", "DEFAULT"]
    return _table_action(action)


def _table_action(action):
    match action:
        case AddKey():
            return ["ADD", "PRIMARY", "KEY", "(", *_joined(map(_name, action.names)), ")"]
        case DropKey():
            return ["DROP", "PRIMARY", "KEY"]
        case RenameTo():
            return ["RENAME", "TO", _table(action.new)]


def _joined(texts):
    return [piece for text in texts for piece in (",", text)][1:]


def pieces(step):
    """Return the words, names and symbols of a statement, between which there may be white space."""
    match step:
        case CreateTable(like=TableName() as like):
            return ["CREATE", "TABLE", _table(step.table), "LIKE", _table(like)]
        case CreateTable():
            asked = ["IF", "NOT", "EXISTS"] if step.if_not_exists else []
            columns = [piece for column in step.columns for piece in (*_column(column), ",")]
            index = ["INDEX", "(", _name(step.columns[0].name), ")"]
            key = [",", "PRIMARY", "KEY", "(", *_joined(map(_name, step.key)), ")"] if step.key else []
            return ["CREATE", "TABLE", *asked, _table(step.table), "(", *columns, *index, *key, ")", "ENGINE", "=", "x"]
        case DropTable():
            return ["DROP", "TABLE", *(["IF", "EXISTS"] if step.if_exists else []), *_joined(map(_table, step.tables))]
        case Truncate():
            return ["TRUNCATE", "TABLE", _table(step.tables[0])]
        case RenameTable():
            return ["RENAME", "TABLE", _table(step.old), "TO", _table(step.new)]
        case AlterTable():
            actions = [piece for action in step.actions for piece in (*_action(action), ",")]
            return ["ALTER", "TABLE", _table(step.table), *actions, "COMMENT", "=", "'x'"]
