"""Recurrent layers and attention, with PyTorch's keys: weight_ih_l0, bias_hh_l0_reverse, in_proj_weight and so on."""
from __future__ import annotations
from typing import Any

from tinyhw.compat.torch.dress import dress, kind_of
from tinyhw.compat.torch.modules.module import Module, Parameter
from tinyhw.compat.torch.modules.parametric import Linear, drawn, filled, functional
from tinyhw.compat.torch.modules.sequences import PackedSequence, pack_padded_sequence, padded
from tinyhw.compat.torch.table import find
from tinyhw.dtype import dtypes
from tinyhw.errors import ArgumentError, ShapeError
from tinyhw.tensor import Tensor

def _check_nonlinearity(name: str) -> None:
  if name not in ("tanh", "relu"): raise ArgumentError(f"nonlinearity is 'tanh' or 'relu', not {name!r}")

def _rnn(nonlinearity: str) -> Any:
  def step(gates: Any, hidden: Any, state: Any) -> tuple[Any, Any]:
    x = gates + hidden
    return (x.tanh() if nonlinearity == "tanh" else x.relu()), None
  return step

def _lstm(gates: Any, hidden: Any, state: Any) -> tuple[Any, Any]:
  i, f, g, o = (gates + hidden).chunk(4, 1)
  state = f.sigmoid() * state + i.sigmoid() * g.tanh()
  return o.sigmoid() * state.tanh(), state

def _gru(gates: Any, hidden: Any, state: Any) -> tuple[Any, Any]:
  a, b, c = gates.chunk(3, 1)
  d, e, f = hidden.chunk(3, 1)
  update = (b + e).sigmoid()
  fresh = (c + (a + d).sigmoid() * f).tanh()
  return fresh + update * (state - fresh), None

class RecurrentCell(Module):
  """The base of cells, which are one step of a layer."""
  gates = 1

  def __init__(self, input_size: int, hidden_size: int, bias: bool = True, nonlinearity: str = "tanh",
               device: Any = None, dtype: Any = None):
    super().__init__()
    _check_nonlinearity(nonlinearity)
    self.input_size, self.hidden_size, self.bias, self.nonlinearity = input_size, hidden_size, bias, nonlinearity
    _register(self, "", self.gates * hidden_size, input_size, hidden_size, hidden_size, bias, dtype, device)

  def _ready(self, input: Any, states: list[Any]) -> tuple[Any, list[Any], bool]:
    if input.ndim not in (1, 2) or input.shape[-1] != self.input_size:
      raise ShapeError(f"{type(self).__name__} wants (N, {self.input_size}) or ({self.input_size}), not {input.shape}")
    alone = input.ndim == 1
    x = input.unsqueeze(0) if alone else input
    for s in states: _check_state(self, s, (self.hidden_size,) if alone else (int(x.shape[0]), self.hidden_size))
    zeros = _zeros((int(x.shape[0]), self.hidden_size), x)
    return x, [zeros if s is None else s.unsqueeze(0) if alone else s for s in states], alone

  def _products(self, x: Any, h: Any) -> tuple[Any, Any]:
    linear = functional("linear")
    return linear(x, self.weight_ih, self.bias_ih), linear(h, self.weight_hh, self.bias_hh)

  def extra_repr(self) -> str:
    """Return the sizes."""
    return f"{self.input_size}, {self.hidden_size}" + ("" if self.bias else ", bias=False")

def _zeros(shape: tuple[int, ...], like: Any) -> Any:
  return dress(Tensor.zeros(*shape, dtype=like.dtype, device=like.device))

def _check_state(module: Module, state: Any, shape: tuple[int, ...]) -> None:
  if state is not None and tuple(state.shape) != shape:
    raise ShapeError(f"{type(module).__name__}: a state of shape {state.shape}; it is {shape} for this input")

def _pair(module: Module, hx: Any) -> list[Any]:
  """Return the hidden and cell states, None where there are none."""
  if hx is None: return [None, None]
  if not isinstance(hx, (tuple, list)) or len(hx) != 2:
    raise ArgumentError(f"{type(module).__name__}: hx is (hidden states, cell states), not {type(hx).__name__}")
  return list(hx)

def _register(module: Module, end: str, rows: int, inputs: int, hidden: int, size: int, bias: bool, dtype: Any,
              device: Any) -> None:
  bound = 1 / size ** 0.5 if size else 0.0
  module.register_parameter(f"weight_ih{end}", drawn((rows, inputs), bound, dtype, device))
  module.register_parameter(f"weight_hh{end}", drawn((rows, hidden), bound, dtype, device))
  for name in ("bias_ih", "bias_hh"):
    module.register_parameter(f"{name}{end}", drawn((rows,), bound, dtype, device) if bias else None)

class RNNCell(RecurrentCell):
  """A step of an RNN: tanh or relu of the sum of two products."""
  def forward(self, input: Any, hx: Any = None) -> Any:
    """Return the next hidden state."""
    x, (h,), alone = self._ready(input, [hx])
    found = _rnn(self.nonlinearity)(*self._products(x, h), h)[0]
    return found.squeeze(0) if alone else found

class GRUCell(RecurrentCell):
  """A step of a GRU. Source: Cho et al. 2014."""
  gates = 3

  def __init__(self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None, dtype: Any = None):
    super().__init__(input_size, hidden_size, bias, "tanh", device, dtype)

  def forward(self, input: Any, hx: Any = None) -> Any:
    """Return the next hidden state."""
    x, (h,), alone = self._ready(input, [hx])
    found = _gru(*self._products(x, h), h)[0]
    return found.squeeze(0) if alone else found

class LSTMCell(RecurrentCell):
  """A step of an LSTM. Source: Hochreiter and Schmidhuber 1997."""
  gates = 4

  def __init__(self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None, dtype: Any = None):
    super().__init__(input_size, hidden_size, bias, "tanh", device, dtype)

  def forward(self, input: Any, hx: Any = None) -> Any:
    """Return the next hidden and cell states."""
    x, (h, c), alone = self._ready(input, _pair(self, hx))
    found = _lstm(*self._products(x, h), c)
    return tuple([s.squeeze(0) for s in found]) if alone else found

class Recurrent(Module):
  """The base of recurrent layers."""
  gates, has_cell = 1, False

  def __init__(self, input_size: int, hidden_size: int, num_layers: int = 1, bias: bool = True,
               batch_first: bool = False, dropout: float = 0.0, bidirectional: bool = False, proj_size: int = 0,
               device: Any = None, dtype: Any = None):
    super().__init__()
    if not 0 <= dropout <= 1: raise ArgumentError(f"dropout is {dropout}; it is from 0 to 1")
    if hidden_size < 1 or num_layers < 1: raise ArgumentError("hidden_size and num_layers are at least 1")
    if not 0 <= proj_size < hidden_size:
      raise ArgumentError(f"proj_size {proj_size} is outside of 0..{hidden_size - 1}")
    self.input_size, self.hidden_size, self.num_layers, self.bias = input_size, hidden_size, num_layers, bias
    self.batch_first, self.dropout, self.bidirectional, self.proj_size = batch_first, dropout, bidirectional, proj_size
    self.nonlinearity, out = "tanh", proj_size or hidden_size
    for k in range(num_layers):
      inputs = input_size if k == 0 else out * (1 + bidirectional)
      for end in self._ends(k):
        _register(self, end, self.gates * hidden_size, inputs, out, hidden_size, bias, dtype, device)
        if proj_size:
          self.register_parameter(f"weight_hr{end}",
                                  drawn((proj_size, hidden_size), hidden_size ** -0.5, dtype, device))

  def _ends(self, layer: int) -> list[str]:
    return [f"_l{layer}", f"_l{layer}_reverse"][:1 + self.bidirectional]

  def _step(self) -> Any: return {1: _rnn(self.nonlinearity), 3: _gru, 4: _lstm}[self.gates]

  def flatten_parameters(self) -> None:
    """Do nothing: memory needs no order here."""

  def forward(self, input: Any, hx: Any = None) -> Any:
    """Return (results of all steps, last states). input: (T, N, input), batch_first: (N, T, input), or (T, input).

    A PackedSequence gives a PackedSequence. States are then in the order of the sequences that were packed.
    """
    if isinstance(input, PackedSequence): return self._packed(input, hx)
    return self._padded(input, hx, None)

  def _packed(self, input: PackedSequence, hx: Any) -> Any:
    counts, order, back = input.lengths, input.sorted_indices, input.unsorted_indices
    if order is not None and hx is not None:
      hx = tuple([s[:, order] for s in hx]) if self.has_cell else hx[:, order]
    x = padded(input)
    found, ends = self._padded(x.transpose(0, 1) if self.batch_first else x, hx, counts)
    packed = pack_padded_sequence(found, counts, self.batch_first)
    if back is not None: ends = tuple([s[:, back] for s in ends]) if self.has_cell else ends[:, back]
    return PackedSequence(packed.data, input.batch_sizes, order, back), ends

  def _padded(self, input: Any, hx: Any, counts: list[int] | None) -> Any:
    """Return results and last states. counts: the length of each sequence; a state stays where one has ended."""
    if input.ndim not in (2, 3) or input.shape[-1] != self.input_size:
      raise ShapeError(f"{type(self).__name__} wants (T, N, {self.input_size}), not {input.shape}")
    alone = input.ndim == 2
    if not input.shape[1 if self.batch_first and not alone else 0]:
      raise ShapeError(f"{type(self).__name__} wants one step at least, not {input.shape}")
    x = input.unsqueeze(1) if alone else input.transpose(0, 1) if self.batch_first else input
    rows = self.num_layers * (1 + self.bidirectional)
    given = _pair(self, hx) if self.has_cell else [hx]
    widths = (self.proj_size or self.hidden_size, self.hidden_size)[:len(given)]
    for s, w in zip(given, widths): _check_state(self, s, (rows, w) if alone else (rows, int(x.shape[1]), w))
    states = [_zeros((rows, int(x.shape[1]), w), x) if s is None else s.unsqueeze(1) if alone else s
              for s, w in zip(given, widths)]
    last: list[tuple[Any, Any]] = []
    for k in range(self.num_layers):
      outs = []
      for way, end in enumerate(self._ends(k)):
        row = k * (1 + self.bidirectional) + way
        out, h, c = self._along(x, end, states[0][row], states[-1][row], way == 1, counts)
        outs.append(out)
        last.append((h, c))
      x = outs[0] if len(outs) == 1 else _joined(outs)
      if self.dropout and self.training and k < self.num_layers - 1: x = functional("dropout")(x, self.dropout, True)
    ends = [_stacked([pair[i] for pair in last]) for i in range(1 + self.has_cell)]
    if alone: x, ends = x.squeeze(1), [e.squeeze(1) for e in ends]
    elif self.batch_first: x = x.transpose(0, 1)
    return x, (tuple(ends) if self.has_cell else ends[0])

  def _along(self, x: Any, end: str, h: Any, c: Any, reverse: bool, counts: list[int] | None) -> tuple[Any, Any, Any]:
    linear, own = functional("linear"), self._parameters
    step, count = self._step(), int(x.shape[0])
    gates = linear(x, own[f"weight_ih{end}"], own[f"bias_ih{end}"])
    outs: list[Any] = [None] * count
    for t in reversed(range(count)) if reverse else range(count):
      before = h, c
      h, c = step(gates[t], linear(h, own[f"weight_hh{end}"], own[f"bias_hh{end}"]), c if self.has_cell else h)
      if self.proj_size: h = linear(h, own[f"weight_hr{end}"])
      if counts is not None and min(counts) <= t:
        going = dress(Tensor([[n > t] for n in counts]))
        h, c = (new if new is None else find("", "where")(going, new, old) for new, old in zip((h, c), before))
      outs[t] = h
    return _stacked(outs), h, c

  def extra_repr(self) -> str:
    """Return sizes, and the options that differ from their defaults."""
    text = f"{self.input_size}, {self.hidden_size}"
    for name, usual in (("proj_size", 0), ("num_layers", 1), ("bias", True), ("batch_first", False), ("dropout", 0.0),
                        ("bidirectional", False)):
      if getattr(self, name) != usual: text += f", {name}={getattr(self, name)}"
    return text

def _stacked(xs: list[Any]) -> Any: return dress(Tensor.stack(xs[0], *xs[1:]))
def _joined(xs: list[Any]) -> Any: return dress(Tensor.cat(xs[0], *xs[1:], dim=-1))

class RNN(Recurrent):
  """Layers of RNN steps."""
  def __init__(self, input_size: int, hidden_size: int, num_layers: int = 1, nonlinearity: str = "tanh",
               bias: bool = True, batch_first: bool = False, dropout: float = 0.0, bidirectional: bool = False,
               device: Any = None, dtype: Any = None):
    _check_nonlinearity(nonlinearity)
    super().__init__(input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, 0, device, dtype)
    self.nonlinearity = nonlinearity

class GRU(Recurrent):
  """Layers of GRU steps."""
  gates = 3

  def __init__(self, input_size: int, hidden_size: int, num_layers: int = 1, bias: bool = True,
               batch_first: bool = False, dropout: float = 0.0, bidirectional: bool = False, device: Any = None,
               dtype: Any = None):
    super().__init__(input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, 0, device, dtype)

class LSTM(Recurrent):
  """Layers of LSTM steps. proj_size: hidden states are projected to this size."""
  gates, has_cell = 4, True

class MultiheadAttention(Module):
  """Attention of several heads between projections."""
  def __init__(self, embed_dim: int, num_heads: int, dropout: float = 0.0, bias: bool = True, add_bias_kv: bool = False,
               add_zero_attn: bool = False, kdim: int | None = None, vdim: int | None = None, batch_first: bool = False,
               device: Any = None, dtype: Any = None):
    super().__init__()
    if embed_dim < 1 or num_heads < 1 or embed_dim % num_heads:
      raise ArgumentError(f"{embed_dim} features do not divide into {num_heads} heads")
    self.embed_dim, self.num_heads, self.dropout, self.batch_first = embed_dim, num_heads, dropout, batch_first
    self.add_zero_attn, self.kdim, self.vdim = add_zero_attn, kdim or embed_dim, vdim or embed_dim
    self._one_projection = self.kdim == self.vdim == embed_dim
    bound = (6 / (4 * embed_dim)) ** 0.5
    for name, width in (("q_proj_weight", embed_dim), ("k_proj_weight", self.kdim), ("v_proj_weight", self.vdim)):
      self.register_parameter(name, None if self._one_projection
                              else drawn((embed_dim, width), (6 / (embed_dim + width)) ** 0.5, dtype, device))
    self.register_parameter("in_proj_weight", drawn((3 * embed_dim, embed_dim), bound, dtype, device)
                            if self._one_projection else None)
    self.register_parameter("in_proj_bias", filled((3 * embed_dim,), 0.0, dtype, device) if bias else None)
    self.out_proj = Linear(embed_dim, embed_dim, bias, device, dtype)
    if bias: self.out_proj.bias = filled((embed_dim,), 0.0, dtype, device)
    kind = kind_of(dtype) or dtypes.default_float
    for name in ("bias_k", "bias_v"):
      self.register_parameter(name, Parameter(Tensor.randn(1, 1, embed_dim, dtype=kind)) if add_bias_kv else None)

  def forward(self, query: Any, key: Any, value: Any, key_padding_mask: Any = None, need_weights: bool = True,
              attn_mask: Any = None, average_attn_weights: bool = True, is_causal: bool = False) -> Any:
    """Return (results, weights). query: (T, N, E), batch_first: (N, T, E), or (T, E)."""
    swapped = self.batch_first and query.ndim == 3
    if swapped: query, key, value = (x.transpose(0, 1) for x in (query, key, value))
    found, weights = functional("multi_head_attention_forward")(
      query, key, value, self.embed_dim, self.num_heads, self.in_proj_weight, self.in_proj_bias, self.bias_k,
      self.bias_v, self.add_zero_attn, self.dropout, self.out_proj.weight, self.out_proj.bias, training=self.training,
      key_padding_mask=key_padding_mask, need_weights=need_weights, attn_mask=attn_mask,
      use_separate_proj_weight=not self._one_projection, q_proj_weight=self.q_proj_weight,
      k_proj_weight=self.k_proj_weight, v_proj_weight=self.v_proj_weight, average_attn_weights=average_attn_weights,
      is_causal=is_causal)
    return (found.transpose(0, 1) if swapped else found), weights
