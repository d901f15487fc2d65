"""`NamedTuple`, a replacement of `typing.NamedTuple` whose classes are made in a tenth of the time.

    class Point(NamedTuple):
      x: int
      y: int = 0

A process that compiles its first kernel makes about eighty such classes. For each class `typing` compiles each
annotation and the text of a constructor: 75 us for a class of six fields, on a machine where this takes 8 us. Here
annotations stay texts. All classes with the same number of fields share a constructor's code, with other names for its
arguments. Type checkers see `typing.NamedTuple`.

Left out are calls (`NamedTuple("Point", ...)`), and `Generic` as a second base.
"""
from __future__ import annotations
import collections
import functools
import importlib
from collections.abc import Iterable
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any

GLOBALS = {"new": tuple.__new__}           # the globals of all constructors
# The class of field descriptors, in C if available; collections uses it, too.
_field = getattr(collections, "_tuplegetter")

class Named(tuple[Any, ...]):
  """The methods of all these classes."""
  __slots__ = ()
  _fields, _field_defaults = tuple[str, ...](), dict[str, Any]()

  @classmethod
  def _make(cls, values: Iterable[Any]) -> Any:
    """Return the tuple of these values, in the order of the fields."""
    made = tuple.__new__(cls, values)
    if len(made) != len(cls._fields):
      raise TypeError(f"{cls.__name__} has {len(cls._fields)} fields, got {len(made)} values")
    return made

  def _replace(self, /, **changes: Any) -> Any:
    """Return the same tuple with other values in some fields."""
    made = self._make(map(changes.pop, self._fields, self))
    if changes:
      raise ValueError(f"{type(self).__name__} has no field {', '.join(changes)}; it has {', '.join(self._fields)}")
    return made

  __replace__ = _replace   # for copy.replace

  def _asdict(self) -> dict[str, Any]: return dict(zip(self._fields, self))
  def __getnewargs__(self) -> tuple[Any, ...]: return tuple(self)

  def __repr__(self) -> str:
    return f"{type(self).__name__}({', '.join([f'{name}={value!r}' for name, value in zip(self._fields, self)])})"

@functools.lru_cache(None)
def constructor_of(count: int) -> CodeType:
  """Return the code of a constructor of a tuple of n elements."""
  names = "".join([f"f{k}, " for k in range(count)])
  made = eval(f"lambda _cls, {names}: new(_cls, ({names}))", GLOBALS)
  assert isinstance(made, FunctionType)
  return made.__code__

def annotations_of(body: dict[str, Any]) -> dict[str, Any]:
  """Return the annotations in a class's body.

  From Python 3.14 on (PEP 649), a body without `from __future__ import annotations` has a function that returns them.
  """
  annotate = body.get("__annotate_func__") or body.get("__annotate__")
  library = None if annotate is None else importlib.import_module("annotationlib")
  found: dict[str, Any] = (body.get("__annotations__", {}) if library is None
                           else library.call_annotate_function(annotate, library.Format.FORWARDREF))
  return found

def make(name: str, body: dict[str, Any]) -> type:
  """Return the class of a body.

  Raises TypeError for one that could not be constructed, AttributeError for names that are not free.
  """
  annotations = annotations_of(body)
  fields = tuple(annotations)
  defaults = {field: body.pop(field) for field in fields if field in body}
  late = next((field for field, after in zip(fields, fields[1:]) if field in defaults and after not in defaults), None)
  if late is not None: raise TypeError(f"{name}: a field without a default follows {late}, which has one")
  taken = [field for field in fields if field[0] == "_"] + [key for key in ("__new__", "_fields", "_make", "_replace",
                                                                            "_asdict") if key in body]
  if taken: raise AttributeError(f"{name} may not define {taken[0]}")
  code = constructor_of(len(fields)).replace(co_varnames=("_cls", *fields), co_name="__new__")
  new = FunctionType(code, GLOBALS, "__new__", tuple(defaults.values()) or None)
  new.__annotations__, new.__qualname__ = annotations, f"{body['__qualname__']}.__new__"
  getters = {field: _field(k, f"Field {k}.") for k, field in enumerate(fields)}
  return type(name, (Named,), {**body, **getters, "__slots__": (), "__new__": new, "__match_args__": fields,
                               "_fields": fields, "_field_defaults": defaults})

class _Maker(type):
  """Makes a tuple class of each class statement whose base is `NamedTuple`."""

  def __new__(meta, name: str, bases: tuple[type, ...], body: dict[str, Any]) -> Any:
    if not bases: return type.__new__(meta, name, bases, body)
    if len(bases) > 1: raise TypeError(f"{name}: NamedTuple is the only base")
    return make(name, body)

if TYPE_CHECKING: from typing import NamedTuple as NamedTuple
else:
  class NamedTuple(metaclass=_Maker):
    """See the head of this file."""
