"""Operators of ONNX that run graphs (If, Loop, Scan) or hold several tensors. Sequences are lists. A missing optional
value is None.

Conditions and counts are read when the graph is built, and loops are unrolled. Source: ONNX operator schemas (ai.onnx).
"""
from __future__ import annotations
from typing import Any

from tinyhw.dtype import dtypes
from tinyhw.errors import ArgumentError, IndexRangeError
from tinyhw.nn.onnx.operator import (
  Body, Int, Ints, Known, Outputs, Scalar, Type, Value, as_numbers, as_tensor, of_numbers, operator)
from tinyhw.nn.onnx.ops.shape import axis_of
from tinyhw.tensor import Tensor

MOST_TURNS = 4096   # iterations of a loop, which is unrolled; more are taken for an endless loop

# ***** graphs *****

@operator("If", folds=False)
def if_(condition: Scalar, *, then_branch: Body, else_branch: Body) -> Any:
  return tuple(then_branch() if condition else else_branch())

@operator("Loop", folds=False)
def loop(most: Value = None, condition: Value = None, *carried: Value, body: Body) -> Any:
  """Return the carried values after the last iteration, then the other results of all iterations, stacked. most:
  iterations. condition: continue while it is true."""
  turns = None if most is None else int(as_numbers(most)[0])
  going = True if condition is None else bool(as_numbers(condition)[0])
  if turns is None and condition is None: raise ArgumentError("a Loop without a count and a condition has no end")
  state, rows = list(carried), []
  turn = 0
  while going and (turns is None or turn < turns):
    if turn >= MOST_TURNS: raise ArgumentError(f"a Loop has more than {MOST_TURNS} turns")
    results = body(of_numbers([turn], dtypes.int64, ()), of_numbers([True], dtypes.bool, ()), *state)
    if len(results) < 1 + len(state):
      raise ArgumentError(f"the body of a Loop with {len(state)} carried values gives {len(results)} results")
    if turns is None or not isinstance(results[0], Known) or turn + 1 < turns: going = bool(as_numbers(results[0])[0])
    state = results[1:1 + len(state)]
    rows.append(results[1 + len(state):])
    turn += 1
  return (*state, *(_stack([as_tensor(x) for x in column]) for column in zip(*rows)))

def _stack(tensors: list[Tensor], axis: int = 0) -> Tensor: return tensors[0].stack(*tensors[1:], dim=axis)

@operator("Scan", 9, folds=False)
def scan(*values: Value, body: Body, num_scan_inputs: int, scan_input_axes: Ints | None = None,
         scan_input_directions: Ints | None = None,
         scan_output_axes: Ints | None = None, scan_output_directions: Ints | None = None) -> Any:
  """Scan the inputs along an axis. body(states, slices) returns new states and slices."""
  n = num_scan_inputs
  if not 1 <= n <= len(values): raise ArgumentError(f"num_scan_inputs={n} of {len(values)} inputs")
  state, inputs = list(values[:len(values) - n]), [as_tensor(v) for v in values[len(values) - n:]]
  axes = [axis_of(a, x.ndim) for a, x in zip(scan_input_axes or [0] * n, inputs)]
  backwards = scan_input_directions or [0] * n
  lengths = {int(x.shape[a]) for a, x in zip(axes, inputs)}
  if len(lengths) != 1 or len(axes) != n or len(backwards) != n:
    raise ArgumentError(f"the inputs of a Scan have the lengths {sorted(lengths)}")
  length = lengths.pop()
  if length > MOST_TURNS: raise ArgumentError(f"a Scan has more than {MOST_TURNS} turns")
  rows = []
  for t in range(length):
    parts = [x[(slice(None),) * a + (length - 1 - t if back else t,)] for x, a, back in zip(inputs, axes, backwards)]
    results = body(*state, *parts)
    state = results[:len(state)]
    rows.append([as_tensor(x) for x in results[len(state):]])
  columns = [list(c) for c in zip(*rows)]
  flips = scan_output_directions or [0] * len(columns)
  places = scan_output_axes or [0] * len(columns)
  return (*state,
          *(_stack(c[::-1] if flip else c, axis_of(a, c[0].ndim + 1)) for c, flip, a in zip(columns, flips, places)))

@operator("Scan", 8, folds=False)
def scan_of_batches(lengths: Value = None, *values: Value, body: Body, num_scan_inputs: int,
                    directions: Ints | None = None) -> Any:
  """Version 8: every value has a batch as its first axis, and the sequences are scanned along axis 1."""
  if lengths is not None: raise ArgumentError("Scan of version 8 with sequence_lens is not supported")
  tensors = [as_tensor(v) for v in values]
  results = [scan(*(x[b] for x in tensors), body=body, num_scan_inputs=num_scan_inputs,
                  scan_input_directions=directions)
             for b in range(int(tensors[0].shape[0]))]
  return tuple(_stack([as_tensor(x) for x in column]) for column in zip(*results))

# ***** sequences *****

def _sequence(x: Value) -> list[Value]:
  if not isinstance(x, list): raise ArgumentError("a sequence is wanted, and a tensor was given")
  return x

def _position(sequence: list[Value], position: int | None, extra: int = 0) -> int:
  """Return an index into a sequence. None is its end."""
  n = len(sequence)
  if position is None: return n - 1 + extra
  if not -n <= position < n + extra: raise IndexRangeError(f"position {position} is outside of a sequence of {n}")
  return position + n if position < 0 else position

@operator("SequenceConstruct", 11, folds=False)
def sequence_construct(*items: Value) -> Any: return list(items)
@operator("SequenceEmpty", 11, folds=False)
def sequence_empty(*, dtype: int = 1) -> Any: return []
@operator("SequenceLength", 11)
def sequence_length(sequence: Value) -> Known: return of_numbers([len(_sequence(sequence))], dtypes.int64, ())
@operator("SequenceAt", 11)
def sequence_at(sequence: Value, position: Int) -> Value:
  return _sequence(sequence)[_position(_sequence(sequence), position)]

@operator("SequenceInsert", 11)
def sequence_insert(sequence: Value, item: Value, position: Int | None = None) -> Any:
  items = _sequence(sequence)
  at = _position(items, position, 1)
  return [*items[:at], item, *items[at:]]

@operator("SequenceErase", 11)
def sequence_erase(sequence: Value, position: Int | None = None) -> Any:
  items = _sequence(sequence)
  at = _position(items, position)
  return [*items[:at], *items[at + 1:]]

@operator("ConcatFromSequence", 11)
def concat_from_sequence(sequence: Value, *, axis: int, new_axis: int = 0) -> Tensor:
  tensors = [as_tensor(x) for x in _sequence(sequence)]
  if not tensors: raise ArgumentError("an empty sequence makes no tensor")
  return _stack(tensors, axis) if new_axis else tensors[0].cat(*tensors[1:], dim=axis)

@operator("SplitToSequence", 11, folds=False)
def split_to_sequence(x: Tensor, split: Value = None, *, axis: int = 0, keepdims: int = 1) -> Any:
  axis = axis_of(axis, x.ndim)
  size = int(x.shape[axis])
  numbers = [1] if split is None else as_numbers(split)
  if split is None or not isinstance(split, list) and as_tensor(split).ndim == 0:
    each = int(numbers[0])
    if each < 1: raise ArgumentError(f"cannot split into parts of {each}")
    parts = [min(each, size - i) for i in range(0, size, each)]
  else: parts = [int(n) for n in numbers]
  if sum(parts) != size or any(p < 0 for p in parts):
    raise ArgumentError(f"the parts {parts} do not make the {size} of axis {axis}")
  found = x.split(parts, axis)
  if split is None and not keepdims: return [part.squeeze(axis) for part in found]
  return list(found)

@operator("SequenceMap", 17, folds=False)
def sequence_map(sequence: Value, *others: Value, body: Body, outputs: Outputs = 1) -> Any:
  """Apply body to each item. Other sequences are mapped in parallel, and tensors stay."""
  rows = [body(item, *(o[i] if isinstance(o, list) else o for o in others))
          for i, item in enumerate(_sequence(sequence))]
  return tuple([row[k] for row in rows] for k in range(outputs))

# ***** optional values *****

@operator("Optional", 15, folds=False)
def optional(x: Value = None, *, type: Type | None = None) -> Any: return (x,)
@operator("OptionalHasElement", 15)
def optional_has_element(x: Value = None) -> Known: return of_numbers([x is not None], dtypes.bool, ())

@operator("OptionalGetElement", 15, folds=False)
def optional_get_element(x: Value) -> Any:
  if x is None: raise ArgumentError("the optional value is missing")
  return (x,)
