"""Fill shared memory by asynchronous copies, several iterations ahead, for targets with such copies
(`Capabilities.copies`).

An asynchronous copy runs while the program goes on. The pass takes a loop that fills shared memory with unchanged
elements of memory, meets a barrier, and then computes. The loop becomes:

    start the first stages - 1 fillings, each as a group of copies (in a loop of their own, if they are several)
    for each iteration: wait for the oldest group; barrier; start the filling of iteration + stages - 1; compute

There are `stages` copies of each array: two are double buffering, four hide more latency. Iteration i uses copy i %
stages. One barrier in an iteration is enough. After it every lane's part of the filling has arrived, and every lane is
done with the array that is filled next. No copy is in flight after the last iteration: copies for iterations past the
end have a closed gate, and their groups are empty. Two kinds of loops are left to pipeline.py: those that compute the
stored values, and those whose elements are too small for a copy.

A matrix unit that reads the arrays itself (SHARED_OPERAND) may continue the products of an iteration in the next one.
The copies therefore start one iteration later, into the array of the iteration before the last one. The loop waits for
the products of that iteration together with the oldest group.

With SHARED_OPERAND nodes, elements may be 0 where a gate is closed. Such elements are copied where the gate is open,
and a lane stores zeros elsewhere. Elements that are too small for a copy are carried by the lanes. They are loaded into
variables two iterations before their use. They are stored one iteration before it, after the products, which wait for
all loads. The last iteration stores once more, to an array without a reader.

Arrays that are filled from TENSOR_BOX nodes (bulk_copies.py) have a signal each. A filling is the next phase of its
signal. Iteration i waits for phase i // stages of signal i % stages instead of a group.

Input and output are the uops of a Program, in order; they compute the same. Cost: a few walks for each such loop.
"""
from __future__ import annotations
import functools

from tinyhw import trace
from tinyhw.codegen.lower.pipeline import MOST_BYTES, SIGNALS_BYTES, WORKGROUPS, Body, Copier, bodies_of, without_unused
from tinyhw.dtype import dtypes
from tinyhw.errors import CompileError
from tinyhw.machine.ir.target import Capabilities
from tinyhw.named_tuple import NamedTuple
from tinyhw.uop.enums import AxisType, Ops
from tinyhw.uop.ops import UOp

STAGES = (4, 2)  # numbers of arrays, best first: powers of two, so that an iteration's array is a mask of its number

class Fill(NamedTuple):
  """A STORE of a body to shared memory.

  `goal`: the index in shared memory. `place`: the index in memory, or the TENSOR_BOX, that is copied there.
  `gate`: the condition of the copy; None if all lanes copy. `load`: the load of elements that lanes carry in registers.
  `padded`: zeros are stored where the gate is closed.
  """
  store: UOp
  goal: UOp
  place: UOp
  gate: UOp | None
  load: UOp | None = None
  padded: bool = False

  @property
  def sources(self) -> list[UOp]:
    gates = [*([self.gate] if self.gate is not None else []), *self.store.src[2:]]
    return [self.goal.src[1], self.place, *gates, *([self.load] if self.load is not None else [])]

  @property
  def elements(self) -> int:
    """Return the number of elements that are copied."""
    return int(self.place.arg.count) if self.place.op is Ops.TENSOR_BOX else self.store.src[1].dtype.count

def prefetch(uops: list[UOp], written: frozenset[int], capabilities: Capabilities) -> list[UOp]:
  """Fill shared memory some iterations ahead, by asynchronous copies. written: slots of buffers.

  Raises CompileError for boxes that cannot be copied ahead.
  """
  if not capabilities.copies: return uops
  for body in reversed(bodies_of(uops)):   # from the last one on, so that positions stay valid
    fills = fills_of(uops, body, written, capabilities.copies)
    late = fills_shared_operands(uops, fills)
    stages = stages_of(uops[body.start], fills, capabilities.local_bytes, 1 if late else WORKGROUPS)
    if stages: uops = without_unused(ahead(uops, body, fills, stages, late))
  if any(u.op is Ops.STORE and u.src[1].op is Ops.TENSOR_BOX for u in uops):
    raise CompileError("boxes are copied in loops of two iterations and more, from buffers that the kernel does not "
                       "write; leave BULK_COPY out")
  return uops

def fills_of(uops: list[UOp], body: Body, written: frozenset[int], sizes: tuple[int, ...]) -> list[Fill]:
  """Return the fillings of a body's arrays, if all can be copied and nothing else writes these arrays."""
  counter, inside = uops[body.start], uops[body.start + 1:body.barrier]
  fills = [u for u in inside if u.op is Ops.STORE]
  arrays = {u.src[0].src[0] for u in fills}
  if any(u.op is Ops.STORE and u.src[0].src[0] in arrays for at, u in enumerate(uops)
         if not body.start < at < body.barrier):
    return []
  found: list[Fill] = []
  changing = {counter, *inside}
  for u in fills:
    load, gate = u.src[1], u.src[2] if len(u.src) > 2 else None
    if load.op is Ops.TENSOR_BOX:
      if load.src[0].arg[0] in written: return []
      found.append(Fill(u, u.src[0], load, None))
      continue
    if load.op is not Ops.LOAD or load.src[0].src[0].op is not Ops.PARAM: return []
    if load.src[0].src[0].arg[0] in written or u.src[0].src[0].op is not Ops.DEFINE_LOCAL: return []
    padded = len(load.src) > 1 and load.src[1:2] != u.src[2:]   # elements that are not loaded must not be stored
    whole = load.dtype.itemsize in sizes and (not padded or load.src[2].op is Ops.CONST and load.src[2].arg == 0)
    if not whole: found.append(Fill(u, u.src[0], load.src[0], gate, load))
    else: found.append(Fill(u, u.src[0], load.src[0], load.src[1] if padded else gate, None, padded))
  carried = [fill.load for fill in found if fill.load is not None]
  if (carried or any(fill.padded for fill in found)) and not fills_shared_operands(uops, found): return []
  if sum(load.dtype.itemsize for load in carried) > MOST_BYTES: return []
  needed = needed_by([fill for fill in found if fill.place.op is not Ops.TENSOR_BOX])
  if any(v in changing and v.op in (Ops.LOAD, Ops.ACC) and v not in carried for v in needed): return []
  return found if len({fill.place.op for fill in found}) < 2 else []

def needed_by(fills: list[Fill]) -> dict[UOp, None]:
  """Return all nodes that the addresses and gates of copies need."""
  return UOp(Ops.GROUP, dtypes.void, tuple([s for fill in fills for s in fill.sources])).toposort()

def fills_shared_operands(uops: list[UOp], fills: list[Fill]) -> bool:
  """Does the matrix unit read the arrays itself?"""
  arrays = {fill.goal.src[0] for fill in fills}
  return any(u.op is Ops.SHARED_OPERAND and u.src[0].src[0] in arrays for u in uops)

def stages_of(counter: UOp, fills: list[Fill], local_bytes: int, workgroups: int) -> int:
  """Return how many arrays of each kind fit, at most as many as there are iterations; 0 if none.

  workgroups: the number that should fit into shared memory together.
  """
  arrays = {fill.goal.src[0] for fill in fills}
  size = sum(u.arg[1] * u.dtype.itemsize for u in arrays)
  if any(fill.place.op is Ops.TENSOR_BOX for fill in fills): local_bytes -= SIGNALS_BYTES
  if not fills: return 0
  return next((n for n in STAGES if n <= counter.src[0].vmax and n * size * workgroups <= local_bytes), 0)

def ahead(uops: list[UOp], body: Body, fills: list[Fill], stages: int, late: bool) -> list[UOp]:
  """Return the uops with one body changed. late: the previous iteration's products may go on, if there are enough
  arrays."""
  going = int(late and stages > 2)
  distance = stages - 1 - going   # iterations by which copies start ahead
  counter, inside = uops[body.start], uops[body.start + 1:body.barrier]
  arrays = {u: UOp(Ops.DEFINE_LOCAL, u.dtype, (), (u.arg[0], u.arg[1] * stages))
            for u in (fill.goal.src[0] for fill in fills)}
  signals = signals_of(uops, stages) if fills[0].place.op is Ops.TENSOR_BOX else None
  filling, carrying = (Filling(part, [u for u in inside if u in needed], counter, arrays, signals) for part in (
    [fill for fill in fills if fill.load is None], [fill for fill in fills if fill.load is not None])
                       for needed in (needed_by(part),))
  copier = Copier(uops, body)
  if signals is not None: copier.visible.add(signals)
  before: list[UOp] = [UOp(Ops.BARRIER)] if in_loop(uops[:body.start]) else []
  if signals is not None: before += [UOp(Ops.SIGNALS, dtypes.void, (signals,)), UOp(Ops.BARRIER)]
  before += first_fillings(copier, filling, distance, stages)
  variables = first_carried(copier, carrying, 1 + max((u.arg for u in uops if u.op is Ops.ACC), default=-1))
  before, copier.made = [*before, *copier.made], []
  copier.visible.update((counter, *inside))
  phase = phase_of(copier, signals, counter, stages) if signals is not None else ()
  start = [*copier.made, UOp(Ops.WAIT, dtypes.void, phase,
                             awaited(distance - 1 if signals is None else 0, late, going)), UOp(Ops.BARRIER)]
  copier.made = []
  later = copier.put(UOp(Ops.ADD, counter.dtype, (counter, copier.put(UOp.const(counter.dtype, distance)))))
  more = copier.put(UOp(Ops.CMPLT, dtypes.bool, (later, counter.src[0])))
  inner = filled(copier, filling, later, slot_of(copier, later, stages), more)
  slot = slot_of(copier, counter, stages)
  offsets = {u: times(copier, slot, u.arg[1]) for u in arrays}
  inner += copier.made
  copier.made = []
  end = next(at for at, u in enumerate(uops) if u.op is Ops.END and u.src[0] is counter)
  rest = moved_reads(copier, uops[body.barrier + 1:end], arrays, offsets)
  if variables: rest += carry(copier, carrying, variables, stages)
  rest += uops[end:]
  if signals is not None and in_loop(uops[:body.start]): rest = ended(rest, counter, signals)
  gone = {fill.store for fill in fills}
  kept = [u for u in inside if u not in gone and u.op is not Ops.BARRIER]
  return [*with_signals([arrays.get(u, u) for u in uops[:body.start]], signals), *before, counter, *start, *kept,
          *inner, *rest]

def first_fillings(copier: Copier, filling: Filling, number: int, stages: int) -> list[UOp]:
  """Return the fillings before the loop; several are in a loop of their own, since code that runs once is to be short.
  """
  counter = filling.counter
  def gate(at: UOp) -> UOp | None:
    """Return a condition for an iteration, where the loop may have fewer."""
    if counter.src[0].vmin >= number: return None
    return copier.put(UOp(Ops.CMPLT, dtypes.bool, (at, counter.src[0])))
  if number == 1:
    zero = copier.put(UOp.const(counter.dtype, 0))
    return filled(copier, filling, zero, UOp.const(dtypes.int32, 0), gate(zero))
  end = copier.put(UOp.const(counter.dtype, number))
  before, copier.made, outside = copier.made, [], set(copier.visible)
  first = UOp(Ops.RANGE, counter.dtype, (end,), (1 + max(u.arg[0] for u in copier.known if u.op is Ops.RANGE),
                                                 AxisType.LOOP))
  copier.visible.add(first)
  inside = filled(copier, filling, first, slot_of(copier, first, stages), gate(first))
  copier.visible = outside
  return [*before, first, *inside, UOp(Ops.END, dtypes.void, (first,))]

def first_carried(copier: Copier, carrying: Filling, number: int) -> list[UOp]:
  """Prepare the elements that lanes carry: store those of the first iteration, and load the second's into variables.

  The variables are numbered from `number`.
  """
  if not carrying.fills: return []
  first, second = (loaded(copier, carrying, UOp.const(carrying.counter.dtype, k)) for k in (0, 1))
  stored(copier, carrying, first, UOp.const(carrying.counter.dtype, 0), UOp.const(dtypes.int32, 0))
  variables = [UOp(Ops.ACC, value.dtype, (value,), number + k) for k, value in enumerate(second)]
  copier.made += variables
  copier.visible.update(variables)
  return variables

def carry(copier: Copier, carrying: Filling, variables: list[UOp], stages: int) -> list[UOp]:
  """Store the variables for the next iteration, after the products, and load those for the iteration after it.

  In the last iterations the loads repeat the current ones, since their values are not used.
  """
  counter = carrying.counter
  following, second = (copier.put(UOp(Ops.ADD, counter.dtype, (counter, copier.put(UOp.const(counter.dtype, k)))))
                       for k in (1, 2))
  stored(copier, carrying, variables, following, slot_of(copier, following, stages))
  more = copier.put(UOp(Ops.CMPLT, dtypes.bool, (second, counter.src[0])))
  values = loaded(copier, carrying, copier.put(UOp(Ops.WHERE, counter.dtype, (more, second, counter))))
  return [*copier.made, *[UOp(Ops.ASSIGN_ACC, v.dtype, (v, value)) for v, value in zip(variables, values)]]

def loaded(copier: Copier, carrying: Filling, number: UOp) -> list[UOp]:
  """Return the loads of iteration `number`."""
  return copier.copy(carrying.nodes, carrying.counter, number,
                     [fill.load for fill in carrying.fills if fill.load is not None])

def stored(copier: Copier, carrying: Filling, values: list[UOp], number: UOp, slot: UOp) -> None:
  """Store values to the arrays of a slot, as in iteration `number`."""
  positions = [s for fill in carrying.fills for s in (fill.goal.src[1], *fill.store.src[2:])]
  nodes = UOp(Ops.GROUP, dtypes.void, tuple(positions)).toposort()
  made = iter(copier.copy([u for u in carrying.nodes if u in nodes], carrying.counter, number, positions))
  for fill, value in zip(carrying.fills, values):
    at = shifted(copier, next(made), times(copier, slot, fill.goal.src[0].arg[1]))
    goal = copier.put(UOp(Ops.INDEX, fill.goal.dtype, (carrying.arrays[fill.goal.src[0]], at)))
    store = UOp(Ops.STORE, dtypes.void, (goal, value, *[next(made) for _ in fill.store.src[2:]]))
    trace.inherit(store, fill.store)
    copier.made.append(store)

def awaited(left: int, late: bool, going: int) -> int | tuple[int, int]:
  """Return the argument of a WAIT: groups of copies that may be in flight, and of products, where those may go on."""
  return (left, going) if late else left

# ***** signals *****

def signals_of(uops: list[UOp], stages: int) -> UOp:
  """Return the signals of a loop, in shared memory of their own."""
  return UOp(Ops.DEFINE_LOCAL, dtypes.uint64, (), (1 + max(u.arg[0] for u in uops if u.op is Ops.DEFINE_LOCAL), stages))

def with_signals(uops: list[UOp], signals: UOp | None) -> list[UOp]:
  """Return the uops with one more shared array, after the others, whose addresses then do not change."""
  if signals is None: return uops
  last = 1 + max(at for at, u in enumerate(uops) if u.op is Ops.DEFINE_LOCAL)
  return [*uops[:last], signals, *uops[last:]]

def ended(uops: list[UOp], counter: UOp, signals: UOp) -> list[UOp]:
  """Return the uops with an end of the signals after their loop, when no lane waits any more.

  An outer loop initializes them again.
  """
  after = 1 + next(at for at, u in enumerate(uops) if u.op is Ops.END and u.src[0] is counter)
  return [*uops[:after], UOp(Ops.BARRIER), UOp(Ops.SIGNALS, dtypes.void, (signals,), "end"), *uops[after:]]

def phase_of(copier: Copier, signals: UOp, counter: UOp, stages: int) -> tuple[UOp, UOp]:
  """Return the signal of an iteration, and its phase."""
  number = counter if counter.dtype is dtypes.int32 else copier.put(UOp(Ops.CAST, dtypes.int32, (counter,)))
  shift = copier.put(UOp.const(dtypes.int32, stages.bit_length() - 1))
  signal = copier.put(UOp(Ops.INDEX, signals.dtype, (signals, slot_of(copier, counter, stages))))
  return signal, copier.put(UOp(Ops.SHR, dtypes.int32, (number, shift)))

# ***** parts of a body *****

def in_loop(uops: list[UOp]) -> bool:
  """Is a loop open after these uops, other than the loops of the grid and the lanes?"""
  closed = {u.src[0] for u in uops if u.op is Ops.END}
  return any(u.op is Ops.RANGE and u not in closed and u.arg[1] not in (AxisType.GLOBAL, AxisType.LOCAL) for u in uops)

def slot_of(copier: Copier, number: UOp, stages: int) -> UOp:
  """Return the array of an iteration, as int32."""
  if number.dtype is not dtypes.int32: number = copier.put(UOp(Ops.CAST, dtypes.int32, (number,)))
  return copier.put(UOp(Ops.AND, dtypes.int32, (number, copier.put(UOp.const(dtypes.int32, stages - 1)))))

def times(copier: Copier, slot: UOp, size: int) -> UOp:
  """Return the first element of the array of a slot."""
  if slot.op is Ops.CONST: return copier.put(UOp.const(dtypes.int32, slot.arg * size))
  return copier.put(UOp(Ops.MUL, dtypes.int32, (slot, copier.put(UOp.const(dtypes.int32, size)))))

class Filling(NamedTuple):
  """The fillings of a body, its address nodes in order, its counter, the new arrays, and the signals that count boxes.
  """
  fills: list[Fill]
  nodes: list[UOp]
  counter: UOp
  arrays: dict[UOp, UOp]
  signals: UOp | None

def filled(copier: Copier, filling: Filling, number: UOp, slot: UOp, condition: UOp | None) -> list[UOp]:
  """Return the copies of iteration `number` to the arrays of a slot, as a group that runs where a condition holds.

  The copier makes the nodes that they need.
  """
  wanted = [s for fill in filling.fills for s in fill.sources]
  made = iter(copier.copy(filling.nodes, filling.counter, number, wanted))
  found: list[UOp] = []
  for fill in filling.fills:
    position, place, gate = next(made), next(made), next(made) if fill.gate is not None else None
    where = [next(made) for _ in fill.store.src[2:]]   # the gates of the store
    local = filling.arrays[fill.goal.src[0]]
    at = shifted(copier, position, times(copier, slot, fill.goal.src[0].arg[1]))
    goal = copier.put(UOp(Ops.INDEX, fill.goal.dtype, (local, at)))
    started = UOp(Ops.ASYNC_COPY, dtypes.void,
                  (goal, place, *all_of(copier, [g for g in (gate, condition) if g is not None])), fill.elements)
    trace.inherit(started, fill.store)
    copier.made.append(started)
    if not fill.padded or gate is None: continue
    zeros = copier.put(UOp(Ops.CONST, fill.store.src[1].dtype, (), fill.store.src[1].dtype.scalar().const(0)))
    closed = copier.put(UOp(Ops.XOR, dtypes.bool, (gate, copier.put(UOp.const(dtypes.bool, True)))))
    copier.made.append(UOp(Ops.STORE, dtypes.void,
                           (goal, zeros,
                            *all_of(copier, [closed, *where, *([] if condition is None else [condition])]))))
    trace.inherit(copier.made[-1], fill.store)
  counted: tuple[UOp, ...] = ()
  if filling.signals is not None:
    signal = copier.put(UOp(Ops.INDEX, filling.signals.dtype,
                            (filling.signals, copier.put(slot) if slot.op is Ops.CONST else slot)))
    counted = (signal,) if condition is None else (signal, condition)
  copier.made.append(UOp(Ops.COMMIT, dtypes.void, counted))
  found, copier.made = copier.made, []
  return found

def all_of(copier: Copier, gates: list[UOp]) -> list[UOp]:
  """Return one gate that is open where all of them are; none if there are none."""
  return [functools.reduce(lambda a, b: copier.put(UOp(Ops.AND, dtypes.bool, (a, b))), gates)] if gates else []

def shifted(copier: Copier, position: UOp, offset: UOp) -> UOp:
  """Return an index with an offset added; its constant stays last."""
  if offset.op is Ops.CONST and offset.arg == 0: return position
  if position.op is Ops.CONST and position.arg == 0 and position.dtype is offset.dtype: return offset
  if position.dtype is not offset.dtype: offset = copier.put(UOp(Ops.CAST, position.dtype, (offset,)))
  if position.op is Ops.ADD and position.src[1].op is Ops.CONST:
    return copier.put(UOp(Ops.ADD, position.dtype, (copier.put(UOp(Ops.ADD, position.dtype, (position.src[0], offset))),
                                                    position.src[1])))
  return copier.put(UOp(Ops.ADD, position.dtype, (position, offset)))

def moved_reads(copier: Copier, uops: list[UOp], arrays: dict[UOp, UOp], offsets: dict[UOp, UOp]) -> list[UOp]:
  """Return the uops after the filling, which now read the arrays of their iteration."""
  new: dict[UOp, UOp] = {}      # the nodes that change
  found: list[UOp] = []
  scopes: list[set[UOp]] = []   # the visible nodes around each open loop
  for u in uops:
    if u.op in (Ops.RANGE, Ops.IF): scopes.append(set(copier.visible))
    elif u.op in (Ops.END, Ops.ENDIF) and scopes: copier.visible = scopes.pop()
    src = u.src if new.keys().isdisjoint(u.src) else tuple([new.get(s, s) for s in u.src])
    if u.op is Ops.INDEX and u.src[0] in arrays:
      src = arrays[u.src[0]], shifted(copier, src[1], offsets[u.src[0]])
      found += copier.made
      copier.made = []
    if src != u.src:
      new[u] = UOp(u.op, u.dtype, src, u.arg, u.tag)
      trace.inherit(new[u], u)
    found.append(new.get(u, u))
  return found
