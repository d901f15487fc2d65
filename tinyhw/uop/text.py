"""Text of graphs and programs: `render` for people, `show` and `parse` for files and tests, `digest` for caches.

`show` writes one node per line, sources first. The last line is the root. `parse(show(u)) is u`. A line is a Python
call:

  u3 = ADD(float32.vec(4), u1, u2)
  u4 = CONST(float32, arg=-0.0)

A `Program` lists its nodes in execution order and ends with `Program(name=..., ...)`. A line that is only a name
repeats that node. Arguments are numbers, strings, bytes, None, tuples, frozensets, types, nodes, enumerations,
dataclasses and named tuples. `parse` knows the classes that this process has shown before, and those passed to
`register`.
"""
from __future__ import annotations
from enum import Enum
import marshal
from typing import Any

from tinyhw.data_class import defaults_of
from tinyhw.dtype import ALIASES_BY_TYPE, DType, dtypes
from tinyhw.helpers import strip_parens
from tinyhw.uop.enums import AxisType, Ops
from tinyhw.uop.ops import KernelInfo, UOp

# ***** for people *****

SYMBOLS: dict[Ops, str] = {
  Ops.ADD: "+", Ops.SUB: "-", Ops.MUL: "*", Ops.FDIV: "/", Ops.IDIV: "//", Ops.MOD: "%", Ops.AND: "&", Ops.OR: "|",
  Ops.XOR: "^", Ops.SHL: "<<",
  Ops.SHR: ">>", Ops.CMPLT: "<", Ops.CMPNE: "!=", Ops.CMPEQ: "==",
}
def _leaf(u: UOp) -> str | None:
  if u.op is Ops.CONST: return str(u.arg)
  if u.op is Ops.DEFINE_VAR: return str(u.arg[0])
  if u.op is Ops.BIND: return f"{u.src[0].arg[0]}[={u.src[1].arg}]"
  if u.op is Ops.RANGE: return f"r{u.arg[0]}"
  if u.op is Ops.PARAM: return f"data{u.arg[0]}"
  if u.op in (Ops.DEFINE_LOCAL, Ops.STAGE): return f"local{u.arg[0]}"
  return None

def _expression(u: UOp, s: list[str]) -> str:
  if u.op in SYMBOLS:
    if u.op is Ops.XOR and u.src[1].op is Ops.CONST and u.src[1].arg is True: return f"({s[0]}!=True)"
    return f"({s[0]}{SYMBOLS[u.op]}{s[1]})"
  if u.op is Ops.NEG: return f"(-{s[0]})"
  if u.op is Ops.WHERE: return f"({s[1]} if {s[0]} else {s[2]})"
  if u.op is Ops.MAX: return f"max({s[0]}, {s[1]})"
  if u.op is Ops.MULACC: return f"(({s[0]}*{s[1]})+{s[2]})"
  if u.op in (Ops.CAST, Ops.BITCAST):
    return s[0] if u.dtype in dtypes.weaks else f"{u.op.name.lower()}({s[0]}, {type_name(u.dtype)})"
  if u.op is Ops.INDEX: return f"{s[0]}[{strip_parens(s[1])}]"
  if u.op is Ops.LOAD: return s[0] if len(s) == 1 else f"({s[0]} if {s[1]} else {s[2]})"
  if u.op is Ops.GEP: return f"{s[0]}[{u.arg}]" if u.dtype.count == 1 else f"{s[0]}[{u.arg}:{u.arg + u.dtype.count}]"
  name = u.op.name.lower()
  return f"{name}({', '.join([strip_parens(x) for x in s] + ([] if u.arg is None else [_argument(u.arg, {})]))})"

def render(u: UOp) -> str:
  """u as an expression with every operation in parentheses: `((a*2)+b)`.

  If all operations are arithmetic, Python evaluates the text to an equal expression.
  """
  text: dict[UOp, str] = {}
  for n in u.toposort(lambda n: _leaf(n) is None):
    leaf = _leaf(n)
    text[n] = leaf if leaf is not None else _expression(n, [text[s] for s in n.src])
  return text[u]

# ***** for files *****

_REGISTERED: dict[str, type] = {}

def register(cls: type) -> type:
  """Decorator: let `parse` read an enumeration, dataclass or named tuple before anything was shown."""
  _REGISTERED[cls.__name__] = cls
  return cls

_REGISTERED.update({c.__name__: c for c in (Ops, AxisType, KernelInfo)})

def type_name(dtype: DType) -> str:
  """`float32`, `float32.vec(4)`."""
  name = ALIASES_BY_TYPE[dtype.scalar()]
  return name if dtype.count == 1 else f"{name}.vec({dtype.count})"

def _argument(x: Any, names: dict[UOp, str]) -> str:
  """An argument as text. names: the names of nodes."""
  if x is None or isinstance(x, (str, bytes, bool)): return repr(x)
  if isinstance(x, Enum): return f"{_class_name(x)}.{x.name}"
  if isinstance(x, (int, float)): return repr(x)
  if isinstance(x, tuple) and not hasattr(x, "_fields"):
    return f"({', '.join([_argument(y, names) for y in x])}{',' if len(x) == 1 else ''})"
  if isinstance(x, frozenset): return f"frozenset({_argument(tuple(sorted(x, key=repr)), names)})"
  if isinstance(x, DType): return f"dtypes.{type_name(x)}"
  if isinstance(x, UOp): return names[x] if x in names else repr(x)
  if isinstance(x, tuple) or defaults_of(type(x)) is not None:
    return f"{_class_name(x)}({', '.join(f'{k}={_argument(v, names)}' for k, v in _changed_fields(x))})"
  return repr(x)

def argument(x: Any) -> str:
  """A node's argument as text. Nodes in it are written as repr shows them."""
  return _argument(x, {})

def _class_name(x: Any) -> str:
  """The name of x's class. `parse` knows it from now on."""
  return _REGISTERED.setdefault(type(x).__name__, type(x)).__name__

def _changed_fields(x: Any) -> list[tuple[str, Any]]:
  """Fields of a dataclass or named tuple that differ from their defaults."""
  if isinstance(x, tuple): return list(zip(getattr(x, "_fields"), x))
  defaults = defaults_of(type(x)) or {}
  return [(name, getattr(x, name)) for name, default in defaults.items() if getattr(x, name) is not default]

def _nodes_in(x: Any) -> list[UOp]:
  """The nodes inside an argument."""
  if isinstance(x, UOp): return [x]
  if isinstance(x, (tuple, frozenset)): return [u for y in x for u in _nodes_in(y)]
  return [u for name in defaults_of(type(x)) or () for u in _nodes_in(getattr(x, name))]

def _everything(u: UOp, seen: dict[UOp, None]) -> None:
  """Add to seen all nodes below u and all nodes in their arguments, each before the nodes that need it."""
  for n in u.toposort():
    if n in seen: continue
    if n.arg.__class__ not in _PLAIN:
      for mentioned in _nodes_in(n.arg): _everything(mentioned, seen)
    seen[n] = None

_PLAIN = frozenset({type(None), int, float, str, bool, Ops, AxisType})

def _line(u: UOp, names: dict[UOp, str]) -> str:
  parts = [type_name(u.dtype)] + [names[s] for s in u.src]
  if u.arg is not None: parts.append(f"arg={_argument(u.arg, names)}")
  if u.tag is not None: parts.append(f"tag={_argument(u.tag, names)}")
  return f"{names[u]} = {u.op.name}({', '.join(parts)})"

def show(u: Any) -> str:
  """Write a graph or a Program as text that `parse` reads."""
  if not isinstance(u, UOp): return _show_program(u)
  nodes: dict[UOp, None] = {}
  _everything(u, nodes)
  names = {n: f"u{i}" for i, n in enumerate(nodes)}
  return "\n".join([_line(n, names) for n in nodes])

def line_number(root: Any, u: UOp) -> int:
  """The line of show(root) that defines u, counted from 0."""
  if not isinstance(root, UOp): return list(root.uops).index(u)
  nodes: dict[UOp, None] = {}
  _everything(root, nodes)
  return list(nodes).index(u)

def _show_program(program: Any) -> str:
  names: dict[UOp, str] = {}
  # sources that are not defined before their use: not a valid Program, but it can be shown
  undefined: dict[UOp, str] = {}
  lines = []
  for u in program.uops:
    again = u in names
    for s in u.src:
      if s not in names: undefined[s] = f"undefined_{s.op.name}"
    names.setdefault(u, f"u{len(names)}")
    lines.append(names[u] if again else _line(u, {**undefined, **names} if undefined else names))
  rest = [(k, v) for k, v in _changed_fields(program) if k != "uops"]
  others: dict[UOp, None] = {}
  for _, v in rest:
    for mentioned in _nodes_in(v): _everything(mentioned, others)
  extra = [n for n in others if n not in names]
  names.update({n: f"x{i}" for i, n in enumerate(extra)})
  lines += [_line(n, names) for n in extra]
  return "\n".join(lines + [f"{type(program).__name__}({', '.join(f'{k}={_argument(v, names)}' for k, v in rest)})"])

def parse(text: str) -> Any:
  """Read the graph (its last node) or Program that `show` wrote. Raises ParseError with the line."""
  from tinyhw.uop.parse import parse_text  # needs the module ast, 4 ms: only tools and tests read text
  return parse_text(text, _REGISTERED)

# ***** for caches *****

def digest(u: Any) -> bytes:
  """32 bytes that identify a graph or Program, the same in every process. KernelInfo.origin does not count.

  One pass numbers the nodes and makes a tuple of each. Then marshal converts all of them to bytes at once. It takes 1.1
  µs a node (Python 3.11, Zen 3). To hash or format each node alone costs twice that.
  """
  from hashlib import sha256  # 2 ms to import, and only caches need it
  if not isinstance(u, UOp): return sha256(show(u).encode()).digest()
  numbers: dict[UOp, int] = {}
  rows: list[tuple[Any, ...]] = []
  _number(u, numbers, rows)
  # version 2 has no back references, which would depend on the history of the objects
  return sha256(marshal.dumps(rows, 2)).digest()

_MARSHALLED = frozenset({type(None), int, float, str, bool})
_ENUMS = frozenset({Ops, AxisType})

def _number(u: UOp, numbers: dict[UOp, int], rows: list[tuple[Any, ...]]) -> None:
  """Number all nodes below u, and append a row for each."""
  number_of = numbers.__getitem__
  for n in u.toposort():
    if n in numbers: continue
    arg = n.arg
    if arg.__class__ not in _MARSHALLED: arg = _plain(arg, numbers, rows)
    if n.tag is not None: arg = (arg, _plain(n.tag, numbers, rows))
    numbers[n] = len(numbers)
    rows.append((n.op._value_, n.dtype.name, arg, *map(number_of, n.src)))

def _plain(arg: Any, numbers: dict[UOp, int], rows: list[tuple[Any, ...]]) -> tuple[Any, ...]:
  """Convert an argument to a form that marshal accepts and that equals no plain argument."""
  if isinstance(arg, KernelInfo): arg = (arg.name, arg.opts)
  if arg.__class__ is tuple and _MARSHALLED.issuperset(map(type, arg)): return arg
  if arg.__class__ in _ENUMS: return ("", arg._name_)
  if arg.__class__ is tuple and len(arg) == 2 and arg[0].__class__ is int and arg[1].__class__ in _ENUMS:
    return (arg[0], "", arg[1]._name_)
  mentioned = _nodes_in(arg)
  for m in mentioned: _number(m, numbers, rows)
  return ("", _argument(arg, {m: f"u{numbers[m]}" for m in mentioned}))
