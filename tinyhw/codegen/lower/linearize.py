"""Order a kernel: open the loops, put each computation into its loop, and return the list of a Program.

Input: a graph of STOREs and REDUCEs (here: statements) over loops. Output: nodes in execution order, loops as brackets.

A statement has loops around it, which it depends on, and loops of its own, which it runs over. `build` fills one block:
the body of a loop, or the whole kernel. It collects the statements that can be done here. These are the given ones, and
below them all REDUCEs and fillings of shared arrays whose outer loops are open. It takes those that wait for no other.
Statements with the same next loop share it. So the maximum and the sum of a softmax get two loops, since the sum needs
the maximum, and the accumulators of a tile get one.

Stores in an ORDERED loop keep their order.

A statement without remaining loops is emitted at once. The nodes of its value are emitted sources first, just before
their first use, each in the innermost open loop that it depends on. A node that two loops of one range need is emitted
in both.

Sets of statements and of ranges are ints used as bitsets. Cost: O(nodes) plus O(statements) for each block.
"""
from __future__ import annotations
from collections.abc import Iterator

from tinyhw import trace
from tinyhw.codegen.kernel.access import gate_of
from tinyhw.codegen.kernel.grid import ranges_of, values_of
from tinyhw.codegen.transform.fold import BEFORE
from tinyhw.dtype import dtypes
from tinyhw.uop.enums import AxisType, Ops
from tinyhw.uop.ops import UOp

# how many of the sources must be emitted before a node, where that is not all of them
_BEFORE = {Ops.ACC: 0, Ops.AFTER: 1}
AHEAD_BYTES = 96  # of a lane's operands that are loaded before the products of earlier steps
_ARGUMENTS = (Ops.PARAM, Ops.DEFINE_VAR, Ops.DEFINE_LOCAL)

class EmittedBlock:
  """A part of the program being written: `bit` is its range's, `open` has those of all ranges around it.

  `emitted`: node -> its copy here.
  """
  __slots__ = ("parent", "bit", "open", "uops", "emitted", "is_loop")

  def __init__(self, parent: EmittedBlock | None, bit: int, is_loop: bool):
    self.parent, self.bit, self.is_loop = parent, bit, is_loop
    self.open: int = bit if parent is None else parent.open | bit
    self.uops: list[UOp] = []
    self.emitted: dict[UOp, UOp] = {}

class Statement:
  """A STORE or REDUCE: its number (a bit), the statements below it, its loops outermost first.

  `fills`: it writes a shared array.
  """
  __slots__ = ("node", "bit", "below", "ranges", "free", "fills", "after", "within")

  def __init__(self, node: UOp, bit: int, below: int, ranges: tuple[UOp, ...], free: int):
    self.node, self.bit, self.below, self.ranges, self.free = node, bit, below, ranges, free
    self.fills = node.op is Ops.STORE and _buffer_of(node).op is Ops.DEFINE_LOCAL
    self.after = self.within = 0      # statements that are done before this one in each iteration of the loops `within`

def _buffer_of(store: UOp) -> UOp:
  buffer = store.src[0].src[0]
  return buffer.src[0] if buffer.op is Ops.AFTER else buffer

def variable_of(reduction: UOp) -> tuple[int, int]:
  """Return the variable and part that a REDUCE accumulates."""
  return reduction.src[0].arg[:2]  # type: ignore[no-any-return]  # an argument is of any type

def bits_of(mask: int) -> Iterator[int]:
  """Yield the numbers of the bits that are set, in order."""
  while mask:
    low = mask & -mask
    yield low.bit_length() - 1
    mask ^= low

def updates_of(reduction: UOp) -> list[UOp]: return [u for u in reduction.src[1:] if u.op is not Ops.RANGE]

def tile_order(reductions: list[UOp]) -> list[UOp]:
  """Return the accumulators of a tile in the order in which fewest operands are live.

  The accumulators of a tile multiply each of m operands with each of n. The products of one operand of the larger group
  are adjacent, so the smaller group stays in registers. Other reductions keep their order.
  """
  products = [u for r in reductions for u in updates_of(r)[:1]]
  if len(products) < len(reductions) or any(u.op is not Ops.MULACC for u in products): return reductions
  first, second = ({u.src[k]: None for u in products} for k in (0, 1))
  if min(len(first), len(second)) < 2 or len(first) * len(second) != len(products): return reductions
  more = 0 if len(first) > len(second) else 1
  rank = {u: n for n, u in enumerate((first, second)[more])}
  return [r for _, r in sorted(zip(products, reductions), key=lambda pair: rank[pair[0].src[more]])]

def factors_of(updates: list[list[UOp]]) -> list[list[UOp]]:
  """Return for each step the operands of its matrix products.

  They are loaded first, and some steps ahead, so that no product waits for memory.
  """
  steps = range(max(map(len, updates), default=0))
  return [list(dict.fromkeys(f for terms in updates if k < len(terms) and terms[k].op is Ops.MMA
                             for f in terms[k].src[:2])) for k in steps]

class Linearizer:
  """The state. `depends[u]`: ranges that u is inside of; `needs[u]`: statements directly below u."""
  def __init__(self, sink: UOp, lanes: bool):
    self.order = list(sink.toposort())
    self.lanes = lanes
    self.depends: dict[UOp, int] = {}
    self.needs: dict[UOp, int] = {}
    self.statements: list[Statement] = []
    self.variables: dict[tuple[int, int], UOp] = {}  # (variable, part) of an ACC -> the ACC that accumulates it
    # (variable, part) -> nodes that read its value before an iteration, for other variables
    self.readers: dict[tuple[int, int], list[UOp]] = {}
    self.made: set[UOp] = set()            # all emitted nodes; equal nodes at two positions are told apart by a tag
    self.numbers = [0, 0]                  # of the next RANGE, of the next ACC
    self.inherit = trace.inherit if trace.follows() else None
    self._bits: dict[UOp, int] = {}
    self._analyse()

  def _analyse(self) -> None:
    ranges = sorted((u for u in self.order if u.op is Ops.RANGE), key=lambda r: r.arg)
    self._bits = bits = {r: 1 << k for k, r in enumerate(ranges)}
    self.lane_bits = sum(bits[r] for r in ranges if r.arg[1] is AxisType.LOCAL) if self.lanes else 0
    depends, needs = self.depends, self.needs
    inside = {variable_of(u): sum(bits[r] for r in ranges_of(u) if r.op is Ops.RANGE) for u in self.order
              if u.op is Ops.REDUCE}
    stored, loaded = set(), set()
    self.ordered = ordered = self._ordered(bits)
    before: set[UOp] = set()
    own_depends: dict[UOp, int] = {}    # the same, where a load from a written buffer is in the outermost ORDERED loop
    for u in self.order:
      mask = need = least = 0
      for s in u.src:
        mask |= depends[s]
        need |= needs[s]
        least |= own_depends[s]
      op = u.op
      if op is Ops.RANGE:
        mask |= bits[u]
        least |= bits[u]
      elif op is Ops.ACC:
        mask = least = inside[u.arg[:2]]
        if u.arg[2] == BEFORE: before.add(u)
      elif op is Ops.REDUCE or op is Ops.STORE:
        own = tuple(sorted((r for r in ranges_of(u) if r.op is Ops.RANGE), key=lambda r: r.arg))
        closed = sum(bits[r] for r in own)
        mask = least = least & ~closed | self.lane_bits  # each lane has its own variables
        below = need
        for k in bits_of(need): below |= self.statements[k].below
        need = 1 << len(self.statements)
        self.statements.append(Statement(u, need, below, own, least))
        if op is Ops.STORE: stored.add(_buffer_of(u))
      elif op is Ops.LOAD:
        loaded.add(u.src[0].src[0])
        loops = ordered.get(u.src[0].src[0], 0)
        mask |= loops
        least |= loops & -loops
      elif op is Ops.EXCHANGE: mask, least = mask | self.lane_bits, least | self.lane_bits
      depends[u], needs[u], own_depends[u] = mask, need, least
    for u in self.order if before else ():
      for s in u.src:
        if s in before: self.readers.setdefault(s.arg[:2], []).append(u)
    if ordered: self._keep_order()
    self.in_place = bool(stored & loaded)  # then values of a block are computed before any is stored

  def _keep_order(self) -> None:
    """Do the stores of an iteration of ORDERED loops in the order of their tags. Equal ones are done at once."""
    stores = [s for s in self.statements if s.node.op is Ops.STORE]
    for s in stores:
      at = max([k for k, r in enumerate(s.ranges) if r.arg[1] is AxisType.ORDERED], default=-1)
      s.within = sum(self._bits[r] for r in s.ranges[:at + 1])
      s.after = sum(other.bit for other in stores if (other.node.tag or 0) < (s.node.tag or 0))
    for s in sorted(stores, key=lambda s: s.node.tag or 0, reverse=True):     # and reductions before their first use
      for reduction in [self.statements[k] for k in bits_of(s.below)]:
        if reduction.node.op is Ops.REDUCE: reduction.after, reduction.within = s.after, s.within

  def _ordered(self, bits: dict[UOp, int]) -> dict[UOp, int]:
    """Map buffers to the ORDERED loops of the stores to them. A load from one of these is done in each iteration."""
    found: dict[UOp, int] = {}
    for u in self.order:
      if u.op is not Ops.STORE or u.src[0].src[0].op is not Ops.PARAM: continue
      for r in ranges_of(u):
        if r.op is Ops.RANGE and r.arg[1] is AxisType.ORDERED:
          found[u.src[0].src[0]] = found.get(u.src[0].src[0], 0) | bits[r]
    return found

  # ***** blocks *****

  def run(self) -> list[UOp]:
    """Return the whole kernel."""
    root = EmittedBlock(None, 0, False)
    outputs = [s for s in self.statements if s.node.op is Ops.STORE and not s.fills]
    self.build(root, [(s, s.ranges) for s in outputs])
    return root.uops

  def build(self, block: EmittedBlock, given: list[tuple[Statement, tuple[UOp, ...]]]) -> None:
    """Emit statements, with the loops that they still have to open, into a block. Emit the nodes that they need first.
    """
    work = {s.bit: (s, ranges) for s, ranges in given}
    found = self._found(block, given)
    for s in found: work[s.bit] = s, tuple([r for r in s.ranges if not self._bits[r] & self.lane_bits & block.open])
    waiting = sum(work)
    while waiting:
      entries = [work[1 << k] for k in bits_of(waiting)]
      group = self._choose([entry for entry in entries if not entry[0].below & waiting and
                            (entry[0].within & ~block.open or not entry[0].after & waiting)], entries)
      for s, _ in group:
        if s in found: self._start(block, s)
      if group[0][1]: self._loop(block, group[0][1][0], [(s, ranges[1:]) for s, ranges in group])
      else: self._finish(block, [s for s, _ in group])
      for s, _ in group:
        waiting ^= s.bit
        if s in found:
          block.emitted[s.node] = self.variables[variable_of(s.node)] if s.node.op is Ops.REDUCE else s.node
      if self.lanes and any(s.fills and s in found for s, _ in group): block.uops.append(UOp(Ops.BARRIER))

  def _found(self, block: EmittedBlock, given: list[tuple[Statement, tuple[UOp, ...]]]) -> list[Statement]:
    """Return the statements below the given ones that belong into this block.

    Their outer loops are open, and no enclosing block has done them.
    """
    if self.lane_bits & ~block.open: return []
    below = 0
    for s, _ in given: below |= s.below
    below &= ~sum(s.bit for s, _ in given)
    statements = [self.statements[k] for k in bits_of(below)]
    return [s for s in statements if not s.free & ~block.open and not self._done(block, s)]

  def _done(self, block: EmittedBlock, statement: Statement) -> bool:
    """Does an enclosing block hold the statement's result?"""
    at: EmittedBlock | None = block
    while at is not None:
      if statement.node in at.emitted: return True
      at = at.parent
    return False

  def _start(self, block: EmittedBlock, statement: Statement) -> None:
    """Set the variable of a REDUCE, or emit a barrier, before a statement's loops."""
    node = statement.node
    if node.op is Ops.REDUCE:
      variable = node.src[0]
      start = self.emit(block, variable.src[0])
      self.variables[variable_of(node)] = new = UOp(Ops.ACC, variable.dtype, (start,), self.numbers[1])
      self.numbers[1] += 1
      block.uops.append(new)
    elif self.lanes and self._inside_loop(block) and not (block.uops and block.uops[-1].op is Ops.BARRIER):
      block.uops.append(UOp(Ops.BARRIER))  # readers of the previous iteration are done

  def _inside_loop(self, block: EmittedBlock) -> bool:
    at: EmittedBlock | None = block
    while at is not None:
      if at.is_loop: return True
      at = at.parent
    return False

  def _choose(self, ready: list[tuple[Statement, tuple[UOp, ...]]],
              waiting: list[tuple[Statement, tuple[UOp, ...]]]) -> list[tuple[Statement, tuple[UOp, ...]]]:
    """Return the statements to do next: those without loops, else those with the same next loop.

    A loop is best if no statement outside of it will still need it.
    """
    leaves = [entry for entry in ready if not entry[1]]
    if leaves: return leaves
    heads = list(dict.fromkeys(ranges[0] for _, ranges in ready))
    chosen = heads[0]
    for head in heads:
      bits = sum(s.bit for s, ranges in ready if ranges[0] is head)
      if all(s.bit & bits or s.below & bits for s, ranges in waiting if ranges and ranges[0] is head):
        chosen = head
        break
    return [entry for entry in ready if entry[1][0] is chosen]

  def _loop(self, block: EmittedBlock, head: UOp, inner: list[tuple[Statement, tuple[UOp, ...]]]) -> None:
    """Emit one loop around statements."""
    end = self.emit(block, head.src[0])
    counter = UOp(Ops.RANGE, head.dtype, (end,), (self.numbers[0], head.arg[1]))
    self.numbers[0] += 1
    body = EmittedBlock(block, self._bits[head], head.arg[1] not in (AxisType.GLOBAL, AxisType.LOCAL))
    body.emitted[head] = counter
    self.build(body, inner)
    block.uops += (counter, *body.uops, UOp(Ops.END, dtypes.void, (counter,)))

  # ***** nodes *****

  def _finish(self, block: EmittedBlock, statements: list[Statement]) -> None:
    """Emit statements in their innermost loop: assign variables term by term, and store values."""
    reductions = tile_order([s.node for s in statements if s.node.op is Ops.REDUCE])
    updates = [updates_of(r) for r in reductions]
    for r in reductions:
      for u in self.readers.get(variable_of(r), ()): self.emit(block, u)    # before the variable changes
    factors = factors_of(updates) if self.lanes else []
    ahead, loaded = AHEAD_BYTES // sum(f.dtype.itemsize for f in factors[0]) if factors and factors[0] else 0, 0
    for k in range(max(map(len, updates), default=0)):
      for step in factors[loaded:k + 1 + ahead]:
        for factor in step: self.emit(block, factor)
      loaded = k + 1 + ahead
      for r, terms in zip(reductions, updates):
        if k >= len(terms): continue
        variable = self.variables[variable_of(r)]
        value = self.emit(block, terms[k])
        block.uops.append(UOp(Ops.ASSIGN_ACC, variable.dtype, (variable, value)))
    stores = [s.node for s in statements if s.node.op is Ops.STORE]
    if self.lanes: self._load_first(block, [s.node for s in statements if s.fills])
    if self.in_place:
      for s in stores:
        for value in values_of(s): self.emit(block, value)
    for s in stores:
      new = UOp(Ops.STORE, s.dtype, tuple([self.emit(block, x) for x in values_of(s)]))
      if self.inherit is not None: self.inherit(new, s)
      block.uops.append(new)
    if self.ordered: self._forget(block, {_buffer_of(s) for s in stores})

  def _forget(self, block: EmittedBlock, buffers: set[UOp]) -> None:
    """Let later statements load from buffers again. They see these stores."""
    at: EmittedBlock | None = block
    while at is not None:
      for u in [u for u in at.emitted if u.op is Ops.LOAD and u.src[0].src[0] in buffers]: del at.emitted[u]
      at = at.parent

  def _load_first(self, block: EmittedBlock, fills: list[UOp]) -> None:
    """Emit the loads for the stores that fill shared memory, so that all are in flight before the first wait.

    Loads with the same gate are adjacent, so that few gates are live at a time.
    """
    stack, seen = [fill.src[1] for fill in reversed(fills)], {fill.src[1] for fill in fills}
    loads: dict[UOp | None, list[UOp]] = {}
    while stack:
      u = stack.pop()
      if u.op is Ops.LOAD: loads.setdefault(gate_of(u), []).append(u)
      elif u.op is not Ops.REDUCE:
        stack += [s for s in reversed(u.src) if s not in seen]
        seen.update(u.src)
    for together in loads.values():
      for u in together: self.emit(block, u)

  def home(self, block: EmittedBlock, node: UOp) -> EmittedBlock:
    """Return the innermost open loop that node depends on."""
    mask = self.depends[node]
    while block.parent is not None and not block.bit & mask: block = block.parent
    return block

  def emit(self, block: EmittedBlock, node: UOp) -> UOp:
    """Return the copy of node for code in block.

    Append it and its sources to the blocks where they belong, unless they are there.
    """
    depends = self.depends
    at = self.home(block, node)
    found = at.emitted.get(node)
    if found is not None: return found
    stack = [(node, at)]
    while stack:
      node, at = stack[-1]
      if node not in at.emitted:
        src: list[UOp] = []
        found = node
        for s in node.src[:_BEFORE.get(node.op)]:
          place, mask = at, depends[s]
          while place.parent is not None and not place.bit & mask: place = place.parent
          found = place.emitted.get(s)
          if found is None:
            stack.append((s, place))
            break
          src.append(found)
        if found is None: continue
        at.emitted[node] = self._made(node, tuple(src), at)
      stack.pop()
    return at.emitted[node]

  def _made(self, node: UOp, src: tuple[UOp, ...], at: EmittedBlock) -> UOp:
    """Append a node over its emitted sources. A variable is itself; a shared array that was filled is the array."""
    op = node.op
    if op is Ops.ACC: return self.variables[node.arg[:2]]
    if op is Ops.AFTER: return src[0]
    assert op is not Ops.REDUCE and op is not Ops.RANGE, f"{node} is used before it is computed"
    new = node if src == node.src else UOp(op, node.dtype, src, node.arg, node.tag)
    if new in self.made:  # the same operation on a variable's earlier value, or on an array's earlier contents
      new = UOp(op, new.dtype, src, new.arg, len(self.made))
    self.made.add(new)
    if self.inherit is not None and new is not node: self.inherit(new, node)
    at.uops.append(new)
    return new

def linearize(sink: UOp, lanes: bool) -> list[UOp]:
  """Return the kernel's nodes in execution order: arguments, shared arrays, then loops as brackets."""
  uops = Linearizer(sink, lanes).run()
  first = [u for u in uops if u.op in _ARGUMENTS]
  return first + [u for u in uops if u.op not in _ARGUMENTS]
