"""Kernels that a user has written: checked, brought into the form that lowering makes, and run on storage.

`finished` takes what the user's function gave: a SINK of STOREs over the arguments, in which places stand for the
values there and ranges have any numbers. `launch` runs it now, like any in-place write (writes.py): values that want
the old contents are computed first, and afterwards the written memory has new nodes.
"""
from __future__ import annotations

from tinyhw.config import TRACEMETA
from tinyhw.engine.memory.buffers import buffer_of
from tinyhw.engine.memory.writes import overwrite
from tinyhw.engine.run.compile import parts
from tinyhw.engine.run.faults import boundary
from tinyhw.engine.run.realize import Source, step_of, execute, realize, this_thread
from tinyhw.engine.schedule.lower import loop_order
from tinyhw.errors import ArgumentError, VerifyError
from tinyhw.threads import alone
from tinyhw.trace import caller
from tinyhw.uop.enums import AxisType, Ops
from tinyhw.uop.ops import KernelInfo, UOp, to_indices

def placeholder(slot: int, like: UOp) -> UOp:
  """What stands for a tensor in a kernel: memory with its shape and type."""
  return UOp(Ops.RESHAPE, like.dtype, (UOp.param(slot, like.dtype, like.size), *to_indices(like.shape)))

def finished(sink: UOp) -> UOp:
  """The kernel in the form of docs/design/uop.md. Raises ArgumentError for one that breaks its rules."""
  if not isinstance(sink, UOp) or sink.op is not Ops.SINK:
    raise ArgumentError(f"a kernel is a SINK of stores, not {sink!r}; end with .sink() or UOp.sink(...)")
  stores = [s for top in sink.src for s in (top.src if top.op is Ops.GROUP else (top,))]
  if not stores or any(s.op is not Ops.STORE for s in stores):
    raise ArgumentError(f"a kernel stores something, and nothing else stands in its SINK: "
                        f"{[s.op.name for s in stores]}")
  new: dict[UOp, UOp] = {}
  root = UOp.sink(*stores)
  nodes = root.toposort()
  folded = {r for u in nodes if u.op is Ops.REDUCE for r in u.src[1:]}
  for u in nodes:
    if u.op is Ops.RANGE:
      new[u] = UOp(Ops.RANGE, u.dtype, (new[u.src[0]],), (u.arg[0], AxisType.REDUCE if u in folded else AxisType.LOOP))
    else:
      place = u.op in (Ops.STORE, Ops.LOAD)   # these want the place itself
      src = [new[s].load() if s.op is Ops.INDEX and not (place and k == 0) else new[s] for k, s in enumerate(u.src)]
      new[u] = UOp(u.op, u.dtype, tuple(src), u.arg, u.tag)
  made = new[root]
  if open_ranges := made.ranges:
    raise ArgumentError(f"the ranges {[r.arg[0] for r in open_ranges]} of a kernel are not ended; write "
                        f"store(...).end(range)")
  made = made.substitute({r: UOp(Ops.RANGE, r.dtype, r.src, (k, r.arg[1])) for k, r in enumerate(loop_order(made))})
  made = made.replace(arg=sink.arg if isinstance(sink.arg, KernelInfo) else KernelInfo())
  # never reads what is not there
  nothing = any(u.op is Ops.RANGE and u.src[0].op is Ops.CONST and not u.src[0].arg for u in made.toposort())
  from tinyhw.uop.verify.verify import verify  # only kernels that users write are always looked at
  try: verify(made, 1 if nothing else 2)
  except VerifyError as error: raise ArgumentError(f"this kernel breaks a rule: {error.message}") from error
  return made

def written_slots(sink: UOp) -> list[int]:
  """The arguments that a kernel stores to."""
  return sorted({store.src[0].src[0].arg[0] for store in sink.src})

@boundary
@alone
def launch(sink: UOp, device: str, nodes: list[UOp], seen: bool = True) -> None:
  """Run a kernel on BUFFERs, by slot. Afterwards what was written has new nodes, which Tensors that look at it know.

  seen: whether values that are not computed yet may need what the written buffers hold. They are computed first.
  """
  buffers = [buffer_of(node) for node in nodes]
  written = [buffers[k] for k in written_slots(sink)]
  fresh = [b for b in written if not b.is_allocated()]    # nobody has written there before
  if seen: realize([], written)
  for b in buffers: b.ensure_allocated()
  line = caller() if TRACEMETA.value else None
  source = Source(device, sink, tuple(buffers), {})
  steps = [step_of(part, source.buffers, {}, line, source) for part in parts(device, [sink])[0]]
  execute(steps)
  overwrite(written)
  capture = this_thread.capture
  if capture is None: return
  capture.steps.extend(steps)
  capture.made.extend(fresh)
