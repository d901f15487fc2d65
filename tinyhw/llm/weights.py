"""The parameters of a language model: from a file or random. They are kept as in the file and decoded where they are
used, or decoded once."""
from __future__ import annotations
from collections.abc import Mapping
from functools import cached_property
import math

from tinyhw.dtype import dtypes
from tinyhw.errors import FileFormatError
from tinyhw.llm.blocks import GgmlType, ggml_data_to_tensor, kind_of
from tinyhw.llm.gguf import Stored
from tinyhw.llm.packed import PackedMatrix, Rounded, is_packable
from tinyhw.tensor import Tensor

# Elements that are contiguous in the blocks of all types. The indices of a product over axes of pieces have no
# divisions, so it is vectorized.
PIECE = 32

class Blocks:
  """A tensor in quantized blocks. data: uint8, (rows, bytes of a row). shape: that of the elements. Their first axis is
  split into rows."""
  def __init__(self, data: Tensor, shape: tuple[int, ...], kind: GgmlType):
    self.shape, self.kind = shape, kind
    self.data = data.reshape(shape[0], -1).to(None).contiguous().realize()

  def tensor(self) -> Tensor:
    """Return all elements."""
    return self._decode(self.data, self.shape)

  def rows(self, index: Tensor) -> Tensor:
    """Return the elements of some rows: (*index.shape, *shape[1:]). Only their bytes are read."""
    return self._decode(self.data[index], (*map(int, index.shape), *self.shape[1:]))

  def _decode(self, data: Tensor, shape: tuple[int, ...]) -> Tensor:
    assert self.kind.split is not None
    return self.kind.decode(data.reshape(-1, self.kind.size)).reshape(shape)

Weight = Tensor | Blocks | PackedMatrix

class ProductInput:
  """x, (tokens, in_features), for several products, which share its rounded form."""
  def __init__(self, x: Tensor): self.x = x

  @cached_property
  def rounded(self) -> Rounded: return Rounded(self.x)

def product(x: Tensor | ProductInput, w: Weight) -> Tensor:
  """Return x @ w.T in float32. x: (tokens, in_features). w: (out_features, in_features).

  A packed w meets x in 8 bits. One token uses each element of w once, so its product decodes blocks itself. For more
  tokens, a decoded copy is made first.
  """
  if isinstance(w, PackedMatrix): return w @ (x if isinstance(x, ProductInput) else ProductInput(x)).rounded
  if isinstance(x, ProductInput): x = x.x
  if isinstance(w, Tensor): return x @ w.float().transpose()
  if x.shape[0] == 1: return dot(w.tensor(), x, pieces=True).reshape(1, -1)
  return x @ w.tensor().reshape(w.shape[0], -1, PIECE).contiguous().reshape(w.shape).transpose()

def dot(w: Tensor, x: Tensor, pieces: bool) -> Tensor:
  """Return (w * x).sum(-1), piece by piece or at once."""
  if not pieces: return (w * x).sum(-1)
  return (w.reshape(*w.shape[:-1], -1, PIECE) * x.reshape(*x.shape[:-1], -1, PIECE)).sum((-2, -1))

def elements(w: Weight) -> Tensor:
  """Return all of a weight, as float32."""
  return (w if isinstance(w, Tensor) else w.tensor()).float()

def rows(w: Weight, index: Tensor) -> Tensor:
  """Return some rows of a weight, as float32."""
  return (w[index] if isinstance(w, Tensor) else w.rows(index)).float()

class ModelWeights:
  """The weights of a model by name: random numbers, unless a subclass reads others."""
  def get(self, name: str, *shape: int) -> Weight:
    """Return the parameter of a name. Parameters of one axis (norms, biases) are ones and zeros."""
    if len(shape) == 1: return (Tensor.zeros if name.endswith("bias") else Tensor.ones)(*shape).contiguous().realize()
    return (Tensor.randn(*shape) / math.sqrt(shape[-1])).realize()

  def vector(self, name: str, size: int) -> Tensor:
    """Return a parameter of one axis, as float32."""
    return elements(self.get(name, size)).contiguous().realize()

  def has(self, name: str) -> bool:
    """Is there such a parameter, where it is optional for a model?"""
    return False

class FileWeights(ModelWeights):
  """The tensors of a GGUF file. realize: decode them to float32 once. exact: multiply decoded elements, instead of
  integers with a rounded x.

  Raises FileFormatError for a tensor that is missing, or has another shape.
  """
  def __init__(self, stored: Mapping[str, Stored], realize: bool, exact: bool = False):
    self.stored, self.realize, self.exact = stored, realize, exact
    self.unused = dict.fromkeys(stored)   # in the file's order

  def has(self, name: str) -> bool: return name in self.stored

  def get(self, name: str, *shape: int) -> Weight:
    found = self.stored.get(name)
    if found is None: raise FileFormatError(f"the file has no tensor {name!r}, which such a model needs")
    if found.shape != shape:
      raise FileFormatError(f"{name!r} has shape {found.shape}, and by the metadata it is {shape}")
    self.unused.pop(name, None)
    kind = kind_of(found.ggml_type)
    if kind.split is not None and not self.realize:
      packed = is_packable(shape, kind) and not self.exact
      return (PackedMatrix if packed else Blocks)(found.data, shape, kind)
    if kind.split is None:
      assert kind.dtype is not None
      if not dtypes.is_float(kind.dtype):
        raise FileFormatError(f"{name!r} has elements of type {kind.name}, which are no floats")
      t = found.tensor().to(None)
    else: t = ggml_data_to_tensor(found.data.to(None), math.prod(shape), found.ggml_type).reshape(shape)
    return (t.float() if self.realize else t).contiguous().realize()

class Projection:
  """x @ weight.T + bias, in float32. weight: (out_features, in_features)."""
  def __init__(self, source: ModelWeights, name: str, in_features: int, out_features: int, bias: bool = False):
    self.weight = source.get(f"{name}.weight", out_features, in_features)
    self.bias = source.vector(f"{name}.bias", out_features) if bias else None

  def __call__(self, x: Tensor | ProductInput) -> Tensor:
    y = product(x, self.weight)
    return y if self.bias is None else y + self.bias

class Experts:
  """One matrix for each expert. Every token uses some of them. weight: (experts, out_features, in_features)."""
  def __init__(self, source: ModelWeights, name: str, experts: int, in_features: int, out_features: int):
    self.weight = source.get(f"{name}.weight", experts, out_features, in_features)

  def __call__(self, x: Tensor, chosen: Tensor) -> Tensor:
    """Apply the chosen experts. x: (tokens, taken or 1, in_features); chosen: (tokens, taken), numbers of experts ->
    (tokens, taken, out_features)."""
    if isinstance(self.weight, PackedMatrix): return self.weight.product(Rounded(x), lambda t: t[chosen])
    return dot(rows(self.weight, chosen), x.unsqueeze(2), isinstance(self.weight, Blocks))

class RootMeanSquareNorm:
  """Normalize the last axis to a root mean square of 1, then multiply by weight. Source: Zhang and Sennrich 2019."""
  def __init__(self, source: ModelWeights, name: str, size: int, eps: float):
    self.weight, self.eps = source.vector(f"{name}.weight", size), eps

  def __call__(self, x: Tensor) -> Tensor:
    return x * (x.square().mean(-1, keepdim=True) + self.eps).rsqrt() * self.weight
