"""Run kernels and Programs on memory, one operation at a time: the part of the reference interpreter that has loops.

A kernel becomes nested scopes. Each STORE, REDUCE and STAGE is a scope with its ranges as loops. Every node is computed
in the innermost loop that it depends on. Later forms of a kernel, from the passes of codegen, run too:
AFTER(DEFINE_LOCAL, STORE, ...), vectors, and REDUCE of a GROUP, whose members fold in order.

A Program's brackets become nested blocks. A node's value has an index in a list. A vector is a tuple. Lanes of a
workgroup (LOCAL ranges) are generators that meet at each BARRIER. Shared arrays start undefined. To read an element
that was never written raises VerifyError.
"""
from __future__ import annotations
from typing import Any
from collections.abc import Callable, Iterator, Mapping, Sequence
from operator import itemgetter

from tinyhw.arithmetic import Function, Scalar, cast, dot2, dot4, elements, from_bytes, operation, round_to, to_bytes
from tinyhw.dtype import DType
from tinyhw.errors import VerifyError
from tinyhw.uop.enums import AxisType, GroupOp, Ops
from tinyhw.uop.evaluate.matrix import Shared, exchanged_lane, matrix_product
from tinyhw.uop.ops import UOp
from tinyhw.uop.ranges import has_position

def element_function(u: UOp) -> Function:
  """The elementwise operation of u on one lane. Raises DTypeError if its type has none."""
  scalar, source = u.dtype.scalar(), u.src[0].dtype.scalar()
  if u.op is Ops.CAST: return cast(source, scalar)
  if u.op is Ops.BITCAST: return lambda x: from_bytes(to_bytes(x, source), scalar)
  if u.op is Ops.DOT2: return dot2
  if u.op is Ops.DOT4: return dot4(source, u.src[1].dtype.scalar())
  return operation(u.op.name, scalar)

def identity(op: Ops, dtype: DType) -> Scalar:
  """The result of folding no values."""
  if op is Ops.ADD: return round_to(dtype)(0)
  if op is Ops.MUL: return round_to(dtype)(1)
  if op is Ops.MAX: return dtype.min
  raise VerifyError(f"{op.name} does not reduce; ADD, MUL and MAX do")

# ***** memory *****

class CheckedArray:
  """The elements of a buffer or shared array, with checked bounds."""
  __slots__ = ("name", "data", "size")

  def __init__(self, name: str, data: Any, size: int):
    self.name, self.data, self.size = name, data, size

  def check(self, i: int) -> int:
    if not 0 <= i < self.size: raise VerifyError(f"index {i} is outside of {self.name}, which has {self.size} elements")
    return i

  def read(self, i: int) -> Scalar:
    value = self.data[self.check(i)]
    if value is None: raise VerifyError(f"element {i} of {self.name} is read before it was written")
    return value

  def write(self, i: int, x: Scalar) -> None: self.data[self.check(i)] = x

def parameter(u: UOp, buffers: Mapping[Any, Any]) -> CheckedArray:
  """The memory of a PARAM. Raises VerifyError if it was not given or is too small."""
  slot, size = u.arg
  if slot not in buffers: raise VerifyError(f"no storage was given for slot {slot}; pass buffers={{{slot}: memory}}")
  data = elements(buffers[slot], u.dtype)
  if len(data) < size: raise VerifyError(f"storage of {len(data)} elements for slot {slot}, which has {size}")
  return CheckedArray(f"slot {slot}", data, size)

def _lanes(x: Any, n: int) -> tuple[Any, ...]: return x if type(x) is tuple else (x,) * n

def _load(dtype: DType) -> Function:
  """LOAD of a scalar, of adjacent elements, or of elements at a vector of indices.

  Memory is not accessed where the gate is false.
  """
  n = dtype.count
  if n == 1:
    return lambda place, gate=True, alt=None: place[0].read(place[1]) if gate else alt
  def load(place: tuple[CheckedArray, Any], gate: Any = True, alt: Any = None) -> tuple[Scalar, ...]:
    memory, at = place
    places = at if type(at) is tuple else range(at, at + n)
    return tuple([memory.read(i) if g else a for i, g, a in zip(places, _lanes(gate, n), _lanes(alt, n))])
  return load

def _load_rows(places: Sequence[int]) -> Function:
  """LOAD of a matrix (uop/matrix.MatrixRows)."""
  return lambda place, later=None: tuple([place[0].read(place[1] + k) for k in places])

def _store(dtype: DType) -> Function:
  n = dtype.count
  def store(place: tuple[CheckedArray, Any], value: Any, gate: Any = True) -> None:
    memory, at = place
    if n == 1:
      if gate: memory.write(at, value)
      return
    places = at if type(at) is tuple else range(at, at + n)
    for i, x, g in zip(places, value, _lanes(gate, n)):
      if g: memory.write(i, x)
  return store

def _async_copy(n: int) -> Function:
  """ASYNC_COPY of n elements. It completes at once."""
  def async_copy(goal: tuple[CheckedArray, int], place: tuple[CheckedArray, int], gate: Any = True) -> None:
    if not gate: return
    for k in range(n): goal[0].write(goal[1] + k, place[0].read(place[1] + k))
  return async_copy

# ***** operations on values with lanes *****

def value_function(u: UOp) -> Function:
  """The function that computes u from its sources' values: elementwise operations, memory, and moves between lanes."""
  op, n = u.op, u.dtype.count
  if op in GroupOp.Elementwise:
    if op is Ops.BITCAST and n != u.src[0].dtype.count: return _bitcast_lanes(u.src[0].dtype, u.dtype)
    f = element_function(u)
    return f if n == 1 else lambda *sources: tuple(map(f, *sources))
  if op is Ops.CONST:
    value = round_to(u.dtype.scalar())(u.arg)
    return (lambda: value) if n == 1 else lambda: (value,) * n
  if op is Ops.INDEX: return lambda memory, at: (memory, at)
  if op is Ops.LOAD: return _load(u.dtype) if u.arg is None else _load_rows(u.arg.places(u.dtype.count))
  if op is Ops.STORE: return _store(u.src[1].dtype)
  if op is Ops.BROADCAST: return lambda x: (x,) * n
  if op is Ops.VECTORIZE: return lambda *sources: sources
  if op is Ops.GEP:
    lane = u.arg
    return (lambda x: x[lane]) if n == 1 else lambda x: x[lane:lane + n]
  if op is Ops.SHUFFLE: return _shuffle(u.arg)
  if op is Ops.MMA: return matrix_product(u)
  if op is Ops.ASYNC_COPY: return _async_copy(u.arg)
  if op is Ops.TENSOR_BOX: return lambda memory, *first: (memory, first)
  if op is Ops.SHARED_OPERAND: return lambda place: place
  if op in (Ops.SINK, Ops.GROUP, Ops.NOOP, Ops.SIGNALS, Ops.COMMIT, Ops.WAIT): return lambda *sources: None
  raise VerifyError(f"{op.name} cannot be executed: {u!r}")

def _shuffle(lanes: tuple[int, ...]) -> Function:
  pick = itemgetter(*lanes)
  return lambda *sources: pick(sources[0] + sources[1] if len(sources) > 1 else sources[0])

def _bitcast_lanes(source: DType, target: DType) -> Function:
  size = target.scalar().itemsize
  def bitcast(x: Any) -> Any:
    data = b"".join([to_bytes(y, source.scalar()) for y in _lanes(x, 1)])
    parts = tuple([from_bytes(data[i:i + size], target.scalar()) for i in range(0, len(data), size)])
    return parts[0] if target.count == 1 else parts
  return bitcast

# ***** kernels *****

# a function, what picks its sources' values from all values, and the index of its result
Step = tuple[Callable[..., Any], Callable[[list[Any]], Sequence[Any]], int]

def picker(indices: Sequence[int]) -> Callable[[list[Any]], Sequence[Any]]:
  """A function that picks values by their indices."""
  if len(indices) > 1: return itemgetter(*indices)
  return itemgetter(slice(indices[0], indices[0] + 1)) if indices else itemgetter(slice(0))

class _Scope:
  """Loops around a STORE, REDUCE or STAGE, and the steps in each: steps[k] is in the body of the first k loops.
  counters: for each loop the indices of its counter's value and of its size."""
  def __init__(self, loops: tuple[UOp, ...], parent: _Scope | None):
    self.loops, self.parent = loops, parent
    self.steps: list[list[Step]] = [[] for _ in range(len(loops) + 1)]
    self.counters: list[tuple[int, int]] = []
    self.known: set[UOp] = set()

  def home(self, u: UOp) -> tuple[_Scope, int]:
    """The scope and the number of loops where u is computed: the innermost that it depends on."""
    level = max((k + 1 for k, r in enumerate(self.loops) if r in u.ranges), default=0)
    return (self, level) if level or self.parent is None else self.parent.home(u)

class _Kernel:
  """The scopes of one kernel, and the values of its nodes.

  A node has a value in each scope that computes it, because two REDUCEs may share a RANGE.
  """
  def __init__(self, buffers: Mapping[Any, Any], variables: Mapping[str, int]):
    self.buffers, self.variables = buffers, variables
    self.values: list[Any] = []
    self.places: dict[tuple[_Scope, UOp], int] = {}
    self.together: dict[UOp, list[UOp]] = {}  # a result's STORE -> all STOREs over the same ranges

  def index(self, scope: _Scope, u: UOp) -> int:
    """The index of u's value for code in a scope."""
    key = (scope.home(u)[0], u)
    if key not in self.places:
      self.places[key] = len(self.values)
      self.values.append(None)
    return self.places[key]

  def build(self, roots: tuple[UOp, ...], scope: _Scope) -> None:
    """Add the steps that compute the roots.

    A node with loops gets a scope of its own. Its other nodes go to the scopes where they belong.
    """
    for root in roots:
      for u in root.toposort(lambda u: u.op not in _NESTED and u.op is not Ops.BIND):
        home, level = scope.home(u)
        if u in home.known: continue
        home.known.add(u)
        rule = _NESTED.get(u.op)
        if rule is not None: home.steps[level].append((rule(self, u, home), picker(()), self.index(home, u)))
        elif u.op is not Ops.RANGE: home.steps[level].append(self._step(u, home))

  def _step(self, u: UOp, scope: _Scope) -> Step:
    at = self.index(scope, u)
    sources = picker([self.index(scope, s) for s in u.src])
    if u.op is Ops.AFTER: return lambda memory, *stores: memory, sources, at
    if u.op not in (Ops.PARAM, Ops.DEFINE_LOCAL, Ops.DEFINE_VAR, Ops.BIND): return value_function(u), sources, at
    value: Any
    if u.op is Ops.PARAM: value = parameter(u, self.buffers)
    elif u.op is Ops.DEFINE_LOCAL: value = CheckedArray(f"shared array {u.arg[0]}", [None] * u.arg[1], u.arg[1])
    else: value = variable(u, self.variables)
    return lambda: value, picker(()), at

  def inner(self, values: tuple[UOp, ...], ranges: tuple[UOp, ...], parent: _Scope) -> tuple[_Scope, list[int]]:
    """Create a scope with ranges as loops around values. Return it and the indices of the values."""
    scope = _Scope(ranges, parent)
    self.build((*[r.src[0] for r in ranges], *values), scope)
    scope.counters = [(self.index(scope, r), self.index(scope, r.src[0])) for r in ranges]
    return scope, [self.index(scope, v) for v in values]

  def store(self, u: UOp, parent: _Scope) -> Function:
    """Run the stores over these ranges. At each point all values are computed, then all are stored."""
    together, ranges = self.together.get(u, [u]), ranges_of_store(u)
    if together[0] is not u: return lambda: None   # done with the first
    operands = [s.src[:len(s.src) - len(ranges)] for s in together]
    scope, places = self.inner(tuple([v for values in operands for v in values]), ranges, parent)
    writes: list[tuple[Function, list[int]]] = []
    for s, values in zip(together, operands):
      writes.append((_store(s.src[1].dtype), places[:len(values)]))
      places = places[len(values):]
    def write() -> None:
      for f, sources in writes: f(*[self.values[i] for i in sources])
    return lambda: self.run(scope, 0, write)

  def stage(self, u: UOp, parent: _Scope) -> Function:
    values = 1 + has_position(u)
    scope, places = self.inner(u.src[:values], u.src[values:], parent)
    def fill() -> CheckedArray:
      out: list[Any] = []
      if len(places) == 1: self.run(scope, 0, lambda: out.append(self.values[places[0]]))
      else:   # with the position of each element
        out = [None] * (int(u.src[1].vmax) + 1)
        self.run(scope, 0, lambda: out.__setitem__(self.values[places[1]], self.values[places[0]]))
      return CheckedArray(f"shared array {u.arg[0]}", out, len(out))
    return fill

  def reduce(self, u: UOp, parent: _Scope) -> Function:
    terms = u.src[0].src if u.src[0].op is Ops.GROUP else u.src[:1]
    scope, places = self.inner(terms, u.src[1:], parent)
    one, start = operation(u.arg.name, u.dtype.scalar()), identity(u.arg, u.dtype.scalar())
    fold = one if u.dtype.count == 1 else lambda a, b: tuple(map(one, a, b))
    def reduce() -> Any:
      total = start if u.dtype.count == 1 else (start,) * u.dtype.count
      def add() -> None:
        nonlocal total
        for at in places: total = fold(total, self.values[at])
      self.run(scope, 0, add)
      return total
    return reduce

  def exchange(self, u: UOp, parent: _Scope) -> Function:
    """The value of another lane, which is the value at another iteration of the LOCAL range."""
    lanes = [r for r in u.ranges if r.arg[1] is AxisType.LOCAL]
    if len(lanes) != 1:
      raise VerifyError(f"an EXCHANGE under {len(lanes)} LOCAL ranges; lanes that exchange values are those of one: "
                        f"{u!r}")
    scope, (at,) = self.inner(u.src, (lanes[0],), parent)
    own, other, count = self.index(parent, lanes[0]), self.index(scope, lanes[0]), self.index(parent, lanes[0].src[0])
    def exchange() -> Any:
      self.values[other] = exchanged_lane(u, self.values[own], self.values[count])
      self.run(scope, 1, lambda: None)
      return self.values[at]
    return exchange

  def run(self, scope: _Scope, level: int, body: Callable[[], None]) -> None:
    """Run the steps of scope inside of its first `level` loops, then the remaining loops around body."""
    values = self.values
    for f, sources, at in scope.steps[level]: values[at] = f(*sources(values))
    if level == len(scope.loops): return body()
    counter, size = scope.counters[level]
    if level + 1 < len(scope.loops):
      for values[counter] in range(values[size]): self.run(scope, level + 1, body)
      return
    steps = scope.steps[level + 1]
    for values[counter] in range(values[size]):    # the innermost loop
      for f, sources, at in steps: values[at] = f(*sources(values))
      body()

_NESTED: dict[Ops, Callable[[_Kernel, UOp, _Scope], Function]] = {Ops.STORE: _Kernel.store, Ops.STAGE: _Kernel.stage,
                                                                  Ops.REDUCE: _Kernel.reduce,
                                                                  Ops.EXCHANGE: _Kernel.exchange}

def ranges_of_store(store: UOp) -> tuple[UOp, ...]: return tuple([s for s in store.src[2:] if s.op is Ops.RANGE])

def variable(u: UOp, variables: Mapping[str, int]) -> int:
  """The value of a DEFINE_VAR or BIND.

  Raises VerifyError if there is none, or if it is outside of the variable's bounds.
  """
  if u.op is Ops.BIND: return int(u.src[1].arg)
  name, low, high, *factor = u.arg
  if name not in variables: raise VerifyError(f"variable {name} has no value; pass variables={{{name!r}: ...}}")
  if not low <= variables[name] <= high:
    raise VerifyError(f"variable {name} is {variables[name]}, outside of {low}..{high}")
  if factor and variables[name] % factor[0]:
    raise VerifyError(f"variable {name} is {variables[name]}, no multiple of {factor[0]}")
  return variables[name]

def run_kernel(u: UOp, buffers: Mapping[Any, Any], variables: Mapping[str, int]) -> None:
  """Run a kernel's stores, each over all points of its ranges in row-major order. They run one after the other, but
  stores over the same ranges run together."""
  if u.ranges: raise VerifyError(f"ranges {[r.arg for r in u.ranges]} of the kernel are closed by nothing")
  kernel, scope = _Kernel(buffers, variables), _Scope((), None)
  groups: dict[tuple[UOp, ...], list[UOp]] = {}
  for s in u.src if u.op is Ops.SINK else ():
    for store in s.src if s.op is Ops.GROUP else (s,):
      if store.op is not Ops.STORE: continue
      kernel.together[store] = groups.setdefault(ranges_of_store(store), [])
      kernel.together[store].append(store)
  kernel.build((u,), scope)
  kernel.run(scope, 0, lambda: None)

# ***** Programs *****

class _Block:
  """Steps in order. A step's function is None for a nested block (a loop or a condition): see `bracket`.
  functions: the same steps, if each is a function of one lane."""
  def __init__(self, bracket: UOp | None = None):
    self.bracket = bracket
    self.steps: list[tuple[Callable[..., Any] | Shared | None, Any, int]] = []
    self.functions: list[Step] | None = []

  def add(self, f: Callable[..., Any] | Shared | None, sources: Any, at: int) -> None:
    self.steps.append((f, sources, at))
    if f is None or f is _barrier or isinstance(f, Shared): self.functions = None
    elif self.functions is not None: self.functions.append((f, sources, at))

class _Program:
  """A Program as nested blocks."""
  def __init__(self, program: Any, buffers: Mapping[Any, Any], variables: Mapping[str, int], first: int,
               last: int | None):
    self.buffers, self.variables, self.first, self.last = buffers, variables, first, last
    self.places: dict[UOp, int] = {}
    self.root = _Block()
    stack = [self.root]
    for u in program.uops:
      if u.op in (Ops.RANGE, Ops.IF):
        block = _Block(u)
        stack[-1].add(None, block, self.index(u))
        stack.append(block)
      elif u.op in (Ops.END, Ops.ENDIF):
        if stack[-1].bracket is not u.src[0]:
          raise VerifyError(f"{program.name}: {u!r} closes what is not open innermost")
        stack.pop()
      else: stack[-1].add(*self._step(u))
    if len(stack) != 1: raise VerifyError(f"{program.name}: {stack[-1].bracket!r} is never closed")

  def index(self, u: UOp) -> int: return self.places.setdefault(u, len(self.places))

  def _step(self, u: UOp) -> tuple[Callable[..., Any] | Shared, Any, int]:
    op = u.op
    nothing = picker(())
    if op is Ops.BARRIER: return _barrier, nothing, self.index(u)
    missing = [s for s in u.src if s not in self.places]
    if missing: raise VerifyError(f"{u!r} stands before its source {missing[0]!r}")
    if op is Ops.PARAM:
      memory = parameter(u, self.buffers)
      return lambda: memory, nothing, self.index(u)
    if op is Ops.DEFINE_VAR:
      value = variable(u, self.variables)
      return lambda: value, nothing, self.index(u)
    if op is Ops.DEFINE_LOCAL:
      name, size = f"shared array {u.arg[0]}", u.arg[1]
      return lambda: CheckedArray(name, [None] * size, size), nothing, self.index(u)
    if op is Ops.ACC: return lambda x: x, picker([self.index(u.src[0])]), self.index(u)
    if op is Ops.ASSIGN_ACC:  # the result of this goes to the index of the ACC
      self.places[u] = self.index(u.src[0])
      return lambda x: x, picker([self.index(u.src[1])]), self.index(u.src[0])
    together = (op is Ops.MMA and u.arg.lanes > 1 or op in (Ops.FRAGMENT, Ops.EXCHANGE) or op is Ops.ASYNC_COPY
                and u.src[1].op is Ops.TENSOR_BOX)
    if together: return Shared(u), tuple([self.index(s) for s in u.src]), self.index(u)
    return value_function(u), picker([self.index(s) for s in u.src]), self.index(u)

  def run(self, block: _Block, values: list[Any]) -> Iterator[Shared | None]:
    """Execute a block. Yield None at every BARRIER, and a Shared at each operation that needs other lanes."""
    for f, sources, at in block.steps:
      if f is None: yield from self._bracket(sources, values, at)
      elif f is _barrier: yield None
      elif isinstance(f, Shared): yield Shared(f.u, values, sources, at)
      else: values[at] = f(*sources(values))

  def _bracket(self, block: _Block, values: list[Any], at: int) -> Iterator[Shared | None]:
    u = block.bracket
    assert u is not None
    given = values[self.places[u.src[0]]]
    if u.op is Ops.IF:
      if given: yield from self.run(block, values)
      return
    kind = u.arg[1]
    points = range(self.first, given if self.last is None else self.last) if kind is AxisType.GLOBAL else range(given)
    if kind is AxisType.LOCAL:
      yield from self._workgroup(block, values, at, points)
      return
    if block.functions is not None:
      for values[at] in points:
        for f, sources, result in block.functions: values[result] = f(*sources(values))
      return
    for values[at] in points: yield from self.run(block, values)

  def _workgroup(self, block: _Block, values: list[Any], at: int, points: range) -> Iterator[Shared | None]:
    """Run each lane on its own copy of the values. All lanes run to the next BARRIER in turn.

    Nested LOCAL ranges are lanes of one workgroup.
    """
    lanes = []
    for i in points:
      own = list(values)
      own[at] = i
      lanes.append(self.run(block, own))
    while lanes:
      reached = [next(lane, _DONE) for lane in lanes]
      waiting = [lane for lane, place in zip(lanes, reached) if place is not _DONE]
      if waiting and len(waiting) != len(lanes):
        raise VerifyError("some lanes of a workgroup reach a BARRIER that others do not")
      shared = [place for place in reached if isinstance(place, Shared)]
      if shared and len({place.u for place in reached if isinstance(place, Shared)}
                        | {None for p in reached if p is None}) > 1:
        raise VerifyError("lanes of a workgroup reach different operations that lanes do together")
      together = (shared[0].lanes or len(shared)) if shared else 1
      for k in range(0, len(shared), together): shared[0].execute(shared[k:k + together])
      if waiting and not shared: yield None
      lanes = waiting

_DONE: Any = object()
def _barrier() -> None: pass

def run_program(program: Any, buffers: Mapping[Any, Any], variables: Mapping[str, int], first: int,
                last: int | None) -> None:
  """Run work items first to last-1 of a Program's grid. The default is all of it."""
  runner = _Program(program, buffers, variables, first, last)
  for _ in runner.run(runner.root, [None] * len(runner.places)): pass
