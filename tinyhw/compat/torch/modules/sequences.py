"""`torch.nn.utils.rnn`: sequences of several lengths, padded to one tensor, or packed step by step."""
from __future__ import annotations
from collections.abc import Sequence
from typing import Any

from tinyhw.compat.torch.dress import dress
from tinyhw.dtype import dtypes
from tinyhw.errors import ArgumentError, ShapeError
from tinyhw.methods.base import Handle
from tinyhw.named_tuple import NamedTuple
from tinyhw.tensor import Tensor

class PackedFields(NamedTuple):
  """The parts of a packed sequence."""
  data: Any
  batch_sizes: Any
  sorted_indices: Any = None
  unsorted_indices: Any = None

class PackedSequence(PackedFields):
  """Sequences packed step by step: the rows of step 0 of all, then those of step 1, and so on, the longest first.

  data: (sum of lengths, *). batch_sizes: how many sequences have each step. The indices sort sequences by length, and
  back.
  """
  __slots__ = ()

  def __new__(cls, data: Any, batch_sizes: Any = None, sorted_indices: Any = None, unsorted_indices: Any = None) -> Any:
    if batch_sizes is None: raise ArgumentError("a PackedSequence has batch_sizes; pack_padded_sequence makes them")
    if unsorted_indices is None: unsorted_indices = invert_permutation(sorted_indices)
    return tuple.__new__(cls, (data, batch_sizes, sorted_indices, unsorted_indices))

  def to(self, *args: Any, **keywords: Any) -> PackedSequence:
    """Cast or move the elements."""
    found: PackedSequence = PackedSequence(self.data.to(*args, **keywords), *self[1:])
    return found

  @property
  def lengths(self) -> list[int]:
    """The length of each sequence, the longest first."""
    sizes = [int(n) for n in self.batch_sizes.tolist()]
    return [sum([1 for n in sizes if n > k]) for k in range(sizes[0] if sizes else 0)]

def _numbers(values: Sequence[int]) -> Any: return dress(Tensor(list(values), dtype=dtypes.int64))

def invert_permutation(permutation: Any) -> Any:
  """Return the permutation that undoes another one."""
  if permutation is None: return None
  order = [int(i) for i in permutation.tolist()]
  return _numbers([order.index(i) for i in range(len(order))])

def pack_padded_sequence(input: Any, lengths: Any, batch_first: bool = False,
                         enforce_sorted: bool = True) -> PackedSequence:
  """Pack (T, N, *), or (N, T, *) with batch_first. lengths: N numbers, falling unless enforce_sorted is False."""
  counts = [int(n) for n in (lengths._self().tolist() if isinstance(lengths, Handle) else lengths)]
  x = input if batch_first else input.transpose(0, 1)
  if len(counts) != int(x.shape[0]): raise ShapeError(f"{len(counts)} lengths for {int(x.shape[0])} sequences")
  if not counts or min(counts) <= 0: raise ArgumentError(f"lengths are at least 1, and these are {counts}")
  if max(counts) > int(x.shape[1]): raise ShapeError(f"a length of {max(counts)} in {int(x.shape[1])} steps")
  order = sorted(range(len(counts)), key=lambda n: -counts[n])
  if enforce_sorted and any(a < b for a, b in zip(counts, counts[1:])):
    raise ArgumentError("lengths do not fall; sort the sequences, or give enforce_sorted=False")
  steps = int(x.shape[1])
  sizes = [sum([1 for n in counts if n > t]) for t in range(max(counts))]
  places = [order[k] * steps + t for t, size in enumerate(sizes) for k in range(size)]
  data = x.reshape(-1, *x.shape[2:])[_numbers(places)]
  ordered = None if enforce_sorted else _numbers(order)
  found: PackedSequence = PackedSequence(data, _numbers(sizes), ordered, invert_permutation(ordered))
  return found

def padded(sequence: PackedSequence, value: float = 0.0, total: int | None = None) -> Any:
  """Return a packed sequence as (T, N, *), in its own order."""
  sizes = [int(n) for n in sequence.batch_sizes.tolist()]
  steps, count, end = max(total or 0, len(sizes)), sizes[0], int(sequence.data.shape[0])
  places, begin = [], 0
  for t in range(steps):
    size = sizes[t] if t < len(sizes) else 0
    places += [*range(begin, begin + size), *[end] * (count - size)]
    begin += size
  rest = [int(d) for d in sequence.data.shape[1:]]
  last = dress(Tensor.full((1, *rest), value, sequence.data.dtype, device=sequence.data.device))
  rows = dress(Tensor.cat(sequence.data, last))
  return rows[_numbers(places)].reshape(steps, count, *rest)

def pad_packed_sequence(sequence: PackedSequence, batch_first: bool = False, padding_value: float = 0.0,
                        total_length: int | None = None) -> tuple[Any, Any]:
  """Return (padded sequences, lengths), in the order in which they were packed."""
  if total_length is not None and total_length < len(sequence.batch_sizes):
    raise ArgumentError(f"total_length is {total_length}; the longest sequence has {len(sequence.batch_sizes)} steps")
  x, counts = padded(sequence, padding_value, total_length), sequence.lengths
  if sequence.unsorted_indices is not None:
    x = x[:, sequence.unsorted_indices]
    counts = [counts[int(k)] for k in sequence.unsorted_indices.tolist()]
  return x.transpose(0, 1) if batch_first else x, _numbers(counts)

def pad_sequence(sequences: Any, batch_first: bool = False, padding_value: float = 0.0,
                 padding_side: str = "right") -> Any:
  """Return sequences (T_i, *) as one tensor (T, N, *), or (N, T, *) with batch_first."""
  if padding_side not in ("left", "right"): raise ArgumentError(f"padding_side is 'left' or 'right': {padding_side!r}")
  items = list(sequences)
  if not items: raise ArgumentError("pad_sequence wants a sequence at least")
  longest = max([int(x.shape[0]) for x in items])
  rows = []
  for x in items:
    missing = longest - int(x.shape[0])
    width = (missing, 0) if padding_side == "left" else (0, missing)
    rows.append(Tensor.pad(x, (width, *[(0, 0)] * (x.ndim - 1)), value=padding_value))
  found = dress(Tensor.stack(rows[0], *rows[1:]))
  return found if batch_first else found.transpose(0, 1)

def unpad_sequence(padded_sequences: Any, lengths: Any, batch_first: bool = False) -> list[Any]:
  """Return the sequences of a padded tensor, each with its length."""
  x = padded_sequences if batch_first else padded_sequences.transpose(0, 1)
  counts = lengths._self().tolist() if isinstance(lengths, Handle) else lengths
  return [x[k, :int(n)] for k, n in enumerate(counts)]

def pack_sequence(sequences: Any, enforce_sorted: bool = True) -> PackedSequence:
  """Pack sequences (T_i, *)."""
  counts = [int(x.shape[0]) for x in sequences]
  return pack_padded_sequence(pad_sequence(sequences), counts, enforce_sorted=enforce_sorted)

def unpack_sequence(packed_sequences: PackedSequence) -> list[Any]:
  """Return the sequences of a packed one."""
  return unpad_sequence(*pad_packed_sequence(packed_sequences))
