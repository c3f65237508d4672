"""Records: immutable classes of named fields, with slots."""

from dataclasses import dataclass, field
from typing import TypeVar, dataclass_transform

Class = TypeVar("Class")


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(field,))
def record(cls: type[Class]) -> type[Class]:
    """Make a class a frozen dataclass whose fields are given by keywords."""
    return dataclass(frozen=True, slots=True, kw_only=True)(cls)


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def frozen(cls: type[Class]) -> type[Class]:
    """Make a class a frozen dataclass whose few fields may be given by position."""
    return dataclass(frozen=True, slots=True)(cls)


@dataclass_transform(frozen_default=True, eq_default=False, field_specifiers=(field,))
def distinct(cls: type[Class]) -> type[Class]:
    """Make a class a frozen dataclass, each of whose objects equals only itself: its fields, such
    as arrays, are not compared.
    """
    return dataclass(frozen=True, slots=True, eq=False)(cls)
