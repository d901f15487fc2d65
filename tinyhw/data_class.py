"""`dataclass`, `field` and `replace`, replacements of those of `dataclasses` that take a sixth of the time.

    @dataclass(frozen=True)
    class Point:
      x: int
      parts: list[int] = field(default_factory=list)

A process that compiles its first kernel makes about twenty such classes. For each class `dataclasses` compiles up to
six methods: 1.2 ms for a frozen class of eight fields, on a machine where this takes 0.2 ms. It also loads `inspect`,
which takes 30 ms there. Here only the constructor is compiled. The other methods are shared, or read the fields with an
`attrgetter`. Type checkers see those of `dataclasses`.

`dataclasses.replace`, `fields`, `asdict` and `is_dataclass` accept these classes, too. Left out are all other
parameters of `dataclass` and `field`, fields of base classes, ClassVar, InitVar, and the repr of an object that
contains itself.
"""
from __future__ import annotations
from collections.abc import Callable
from operator import attrgetter
from types import FunctionType
from typing import TYPE_CHECKING, Any

from tinyhw.named_tuple import NamedTuple

class Missing:
  """The type of MISSING: no default, no argument."""
  def __repr__(self) -> str: return "<missing>"

MISSING = Missing()

class Field(NamedTuple):
  """How a field gets its value: from a default, from a function at each call, or, without init, not from the
  constructor."""
  default: Any = MISSING
  default_factory: Any = MISSING
  init: bool = True

class FieldsOnDemand:
  """The attribute by which `dataclasses` recognizes its classes. It is computed when it is read."""
  def __get__(self, value: object, kind: type) -> dict[str, Any]:
    import dataclasses  # with `inspect` 30 ms to load, for those who ask for fields in the way of `dataclasses`
    made = dataclasses.make_dataclass(kind.__name__, [
      (name, kind.__annotations__[name],
       dataclasses.field(**{key: part for key, part in f._asdict().items() if part is not MISSING}))
      for name, f in fields_of(kind).items()])
    found: dict[str, Any] = getattr(made, "__dataclass_fields__")
    return found

def fields_of(kind: type) -> dict[str, Field]:
  """Return the fields of a class that `dataclass` of this file made, by name; nothing for other classes."""
  found: dict[str, Field] = getattr(kind, "_fields_by_name", {})
  return found

def defaults_of(kind: type) -> dict[str, Any] | None:
  """Return the defaults of a data class's fields, by name, also for one of `dataclasses`; None for other classes.

  A field without a default has a value of its own there.
  """
  if found := fields_of(kind): return {name: f.default for name, f in found.items()}
  theirs = getattr(kind, "__dataclass_fields__", None)
  return None if theirs is None else {name: f.default for name, f in theirs.items()}

def constructor(cls: type, fields: dict[str, Field], frozen: bool) -> FunctionType:
  """Compile `__init__`. Raises TypeError where a field without a default follows one that has a default."""
  taken = {name: f for name, f in fields.items() if f.init}
  defaults = [f.default for f in taken.values() if f.default is not MISSING or f.default_factory is not MISSING]
  late = [name for name, f in [*taken.items()][len(taken) - len(defaults):]
          if f.default is MISSING and f.default_factory is MISSING]
  if late: raise TypeError(f"{cls.__name__}: field {late[0]} needs a default, since it follows one that has a default")
  lines = [f"def __init__({', '.join(['self', *taken])}):", "  pass"]
  for name, f in taken.items():
    value = name if f.default_factory is MISSING else f"_new_{name}() if {name} is _missing else {name}"
    lines.append(f"  _set(self, {name!r}, {value})" if frozen else f"  self.{name} = {value}")
  if hasattr(cls, "__post_init__"): lines.append("  self.__post_init__()")
  names = {"__name__": cls.__module__, "_set": object.__setattr__, "_missing": MISSING,
           **{f"_new_{name}": f.default_factory for name, f in taken.items()}}
  exec("\n".join(lines), names)
  made = names["__init__"]
  assert isinstance(made, FunctionType)
  made.__defaults__, made.__qualname__ = tuple(defaults), f"{cls.__qualname__}.__init__"
  made.__annotations__ = {name: cls.__annotations__[name] for name in taken}
  return made

def comparison(names: tuple[str, ...]) -> tuple[Callable[[Any, Any], Any], Callable[[Any], int]]:
  """Return `__eq__` and `__hash__` of the fields of these names."""
  values = attrgetter(*names)
  def __eq__(self: Any, other: Any) -> Any:
    return values(self) == values(other) if other.__class__ is self.__class__ else NotImplemented
  def __hash__(self: Any) -> int: return hash(values(self))
  return __eq__, __hash__

def show(self: Any) -> str:
  """The `__repr__` of all these classes."""
  values = [f"{name}={getattr(self, name)!r}" for name in fields_of(type(self))]
  return f"{type(self).__qualname__}({', '.join(values)})"

def refuse_to_set(self: Any, name: str, value: object) -> None:
  """The `__setattr__` of frozen classes."""
  from dataclasses import FrozenInstanceError  # for this error
  raise FrozenInstanceError(f"cannot assign to field {name!r}")

def refuse_to_delete(self: Any, name: str) -> None:
  """The `__delattr__` of frozen classes."""
  from dataclasses import FrozenInstanceError  # for this error
  raise FrozenInstanceError(f"cannot delete field {name!r}")

def replaced(self: Any, /, **changes: Any) -> Any:
  """Return the same object with other values in some fields. Raises TypeError for names that the constructor does not
  take."""
  kept = {name: getattr(self, name) for name, f in fields_of(type(self)).items() if f.init and name not in changes}
  return type(self)(**kept, **changes)

def make(cls: Any, frozen: bool, eq: bool) -> Any:
  """Give a class the methods of its fields, except those that it has.

  Raises TypeError for fields that could not be constructed, ValueError for a default that all objects would share.
  """
  fields: dict[str, Field] = {}
  for name in cls.__annotations__:
    value = cls.__dict__.get(name, MISSING)
    fields[name] = value if isinstance(value, Field) else Field(value)
    if isinstance(value, Field):
      if value.default is MISSING: delattr(cls, name)
      else: setattr(cls, name, value.default)
    if fields[name].default.__class__.__hash__ is None:
      raise ValueError(f"{cls.__name__}: objects would share the default of {name}; use default_factory")
  methods: dict[str, Any] = {"__repr__": show, "__replace__": replaced, "__init__": constructor(cls, fields, frozen),
                             "__match_args__": tuple([name for name, f in fields.items() if f.init])}
  if eq: methods["__eq__"], methods["__hash__"] = comparison(tuple(fields))
  if eq and not frozen: methods["__hash__"] = None
  if frozen: methods.update(__setattr__=refuse_to_set, __delattr__=refuse_to_delete)
  for name, method in methods.items():
    if name not in cls.__dict__: setattr(cls, name, method)
  cls._fields_by_name, cls.__dataclass_fields__ = fields, FieldsOnDemand()
  return cls

if TYPE_CHECKING: from dataclasses import dataclass as dataclass, field as field, replace as replace
else:
  def dataclass(cls=None, /, *, frozen=False, eq=True):
    """Decorate a class: see the head of this file."""
    return make(cls, frozen, eq) if cls is not None else lambda cls: make(cls, frozen, eq)

  field = Field
  replace = replaced
