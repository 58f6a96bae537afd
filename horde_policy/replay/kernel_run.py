"""The compiled functions' view of a run: a pointer to a table that says where each array lies, and holds each scalar.

The table is an int64 array: two words an array (address, length), one a scalar. Its fields are those of the groups in
``kernel_types`` under the group's prefix, then the registers. A compiled function gets the table as ``s`` and writes
``s.created[i]``. Numba's own structures and arrays would do the same, but count references with atomic instructions at
every call and look out for negative indices at every access, which took half of the time.

Indices are not checked, and the arrays must outlive the table: the engine keeps both together.
"""

import operator
from typing import Any, get_type_hints

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba.core import cgutils, types
from numba.core.typing.templates import AbstractTemplate, AttributeTemplate, infer_global, signature
from numba.extending import (
    infer_getattr,
    intrinsic,
    lower_builtin,
    lower_getattr_generic,
    lower_setattr_generic,
    models,
    register_model,
)

from horde_policy.replay import kernel_types
from horde_policy.replay.kernel_types import (
    REGISTERS,
    Bases,
    Classes,
    Fleet,
    Ints,
    Queue,
    Requests,
    Rules,
    Running,
    Seats,
    State,
)

__all__ = ["Run", "run_of", "table_of"]

Run = Any
"""What a compiled function gets as ``s``."""

GROUPS: dict[str, type[Any]] = {
    "rule_": Rules,
    "": Requests,
    "fleet_": Fleet,
    "base_": Bases,
    "class_": Classes,
    "seat_": Seats,
    "queue_": Queue,
    "job_": Running,
}
PLACES = ("rules", "requests", "fleet", "bases", "classes", "seats", "queue", "running")


class ViewType(types.Type):
    """Numba's type of an array in the table."""

    def __init__(self, dtype: Any) -> None:
        self.dtype = dtype
        super().__init__(name=f"View({dtype})")


class RunType(types.Type):
    """Numba's type of the table."""

    def __init__(self) -> None:
        super().__init__(name="Run")


@register_model(ViewType)
class ViewModel(models.StructModel):  # type: ignore[misc]
    """A view is a pointer and a length."""

    def __init__(self, manager: Any, view: Any) -> None:
        super().__init__(
            manager,
            view,
            [
                ("data", types.CPointer(view.dtype)),  # type: ignore[attr-defined]
                ("length", types.int64),
            ],
        )


@register_model(RunType)
class RunModel(models.PrimitiveModel):  # type: ignore[misc]
    """The table is a pointer to int64 words."""

    def __init__(self, manager: Any, run: Any) -> None:
        super().__init__(manager, run, ir.IntType(64).as_pointer())


RUN = RunType()
FIELD_TYPES = {
    kernel_types.Ints: ViewType(types.int64),
    kernel_types.Int32s: ViewType(types.int32),
    kernel_types.Int16s: ViewType(types.int16),
    kernel_types.Floats: ViewType(types.float64),
    kernel_types.Bools: ViewType(types.uint8),
    int: types.int64,
    float: types.float64,
}


def _fields() -> dict[str, tuple[int, Any]]:
    """Return each field's first word in the table and its type."""
    fields: dict[str, tuple[int, Any]] = {}
    word = 0
    hints = [(prefix + name, hint) for prefix, group in GROUPS.items() for name, hint in get_type_hints(group).items()]
    for name, hint in hints + [(name, int) for name in REGISTERS]:
        kind = FIELD_TYPES[hint]
        fields[name] = (word, kind)
        word += 2 if isinstance(kind, ViewType) else 1
    return fields


FIELDS = _fields()
WORDS = sum(2 if isinstance(kind, ViewType) else 1 for _, kind in FIELDS.values())


def table_of(state: State) -> tuple[Ints, State]:
    """Return the table of a state, and the state with its registers in the table's tail, where the kernel changes them."""
    table = np.zeros(WORDS, np.int64)
    reals = table.view(np.float64)
    for (prefix, group), place in zip(GROUPS.items(), PLACES, strict=True):
        values = getattr(state, place)
        for name in group._fields:
            word, kind = FIELDS[prefix + name]
            value = getattr(values, name)
            if isinstance(kind, ViewType):
                table[word] = value.__array_interface__["data"][0]
                table[word + 1] = len(value)
            else:
                (reals if kind == types.float64 else table)[word] = value
    registers = table[-len(REGISTERS) :]
    registers[:] = state.registers
    return table, state._replace(registers=registers)


# ---- typing


@infer_getattr
class RunAttributes(AttributeTemplate):  # type: ignore[misc]
    """Types of the table's fields."""

    key = RunType

    def generic_resolve(self, _run: Any, name: str) -> Any:
        """Return the field's type; null if there is no such field."""
        return FIELDS[name][1] if name in FIELDS else None


@infer_global(operator.getitem)
class ViewGetItem(AbstractTemplate):  # type: ignore[misc]
    """``view[i]``."""

    def generic(self, args: Any, _keywords: Any) -> Any:
        """Return the signature for a view and a whole number."""
        if isinstance(args[0], ViewType) and isinstance(args[1], types.Integer):
            return signature(args[0].dtype, args[0], args[1])
        return None


@infer_global(operator.setitem)
class ViewSetItem(AbstractTemplate):  # type: ignore[misc]
    """``view[i] = value``."""

    def generic(self, args: Any, _keywords: Any) -> Any:
        """Return the signature for a view, a whole number and a number."""
        if isinstance(args[0], ViewType) and isinstance(args[1], types.Integer):
            return signature(types.none, args[0], args[1], args[0].dtype)
        return None


@infer_global(len)
class ViewLength(AbstractTemplate):  # type: ignore[misc]
    """``len(view)``."""

    def generic(self, args: Any, _keywords: Any) -> Any:
        """Return the signature for a view."""
        return signature(types.int64, args[0]) if isinstance(args[0], ViewType) else None


# ---- code


def _word(builder: Any, run: Any, word: int) -> Any:
    return builder.gep(run, [ir.Constant(ir.IntType(64), word)])


def _fixed(builder: Any, pointer: Any) -> Any:
    """Load what does not change while a kernel runs."""
    loaded = builder.load(pointer)
    loaded.set_metadata("invariant.load", builder.module.add_metadata([]))
    return loaded


@lower_getattr_generic(RunType)
def get_field(context: Any, builder: Any, _run: Any, value: Any, name: str) -> Any:
    """Load a field of the table."""
    word, kind = FIELDS[name]
    if not isinstance(kind, ViewType):
        pointer = builder.bitcast(_word(builder, value, word), context.get_value_type(kind).as_pointer())
        return builder.load(pointer)
    view = cgutils.create_struct_proxy(kind)(context, builder)
    data = _fixed(builder, _word(builder, value, word))
    view.data = builder.inttoptr(data, context.get_data_type(kind.dtype).as_pointer())
    view.length = _fixed(builder, _word(builder, value, word + 1))
    return view._getvalue()


@lower_setattr_generic(RunType)
def set_field(context: Any, builder: Any, sig: Any, args: Any, name: str) -> None:
    """Store a scalar field of the table."""
    word, kind = FIELDS[name]
    pointer = builder.bitcast(_word(builder, args[0], word), context.get_value_type(kind).as_pointer())
    builder.store(context.cast(builder, args[1], sig.args[1], kind), pointer)


def _entry(context: Any, builder: Any, kind: Any, view: Any, index: Any, index_kind: Any) -> Any:
    data = cgutils.create_struct_proxy(kind)(context, builder, value=view).data
    return builder.gep(data, [context.cast(builder, index, index_kind, types.int64)])


@lower_builtin(operator.getitem, ViewType, types.Integer)
def get_entry(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    """Load an entry of a view."""
    return builder.load(_entry(context, builder, sig.args[0], args[0], args[1], sig.args[1]))


@lower_builtin(operator.setitem, ViewType, types.Integer, types.Any)
def set_entry(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    """Store an entry of a view."""
    value = context.cast(builder, args[2], sig.args[2], sig.args[0].dtype)
    builder.store(value, _entry(context, builder, sig.args[0], args[0], args[1], sig.args[1]))
    return context.get_dummy_value()


@lower_builtin(len, ViewType)
def view_length(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    """Load a view's length."""
    return cgutils.create_struct_proxy(sig.args[0])(context, builder, value=args[0]).length


@intrinsic
def run_of(_context: Any, table: Any) -> Any:
    """Return the table, an int64 array, as what compiled functions take."""

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return cgutils.create_struct_proxy(sig.args[0])(context, builder, value=args[0]).data

    return RUN(table), generate
