"""RNN, GRU and LSTM of ONNX, unrolled over the time steps. Source: ONNX operator schemas; Hochreiter and Schmidhuber
1997; Cho et al. 2014.

x: (T, N, I)  W: (directions, gates * H, I)  R: (directions, gates * H, H)  ->  (T, directions, N, H) and the last
states (directions, N, H).

layout 1 has the batch first. Gates are in ONNX's order: LSTM i o f c, GRU z r h.
"""
from __future__ import annotations
from collections.abc import Callable
from typing import Any

from tinyhw.errors import ArgumentError, ShapeError
from tinyhw.nn.onnx.operator import Floats, Outputs, Strings, operator
from tinyhw.nn.onnx.ops.shape import sizes
from tinyhw.tensor import Tensor

Function = Callable[[Tensor], Tensor]

# name in lower case: (the function of x, alpha and beta; the defaults of these)
_ACTIVATIONS: dict[str, tuple[Callable[[float, float], Function], float, float]] = {
  "relu": (lambda a, b: Tensor.relu, 0, 0), "tanh": (lambda a, b: Tensor.tanh, 0, 0),
  "sigmoid": (lambda a, b: Tensor.sigmoid, 0, 0),
  "affine": (lambda a, b: lambda x: x * a + b, 1.0, 0), "leakyrelu": (lambda a, b: lambda x: x.leaky_relu(a), 0.01, 0),
  "thresholdedrelu": (lambda a, b: lambda x: (x >= a).where(x, 0), 1.0, 0),
  "scaledtanh": (lambda a, b: lambda x: (x * b).tanh() * a, 1.0, 1.0),
  "hardsigmoid": (lambda a, b: lambda x: x.hardsigmoid(a, b), 0.2, 0.5),
  "elu": (lambda a, b: lambda x: x.elu(a), 1.0, 0),
  "softsign": (lambda a, b: Tensor.softsign, 0, 0), "softplus": (lambda a, b: Tensor.softplus, 0, 0),
}

def _activations(names: list[str] | None, alphas: list[float] | None, betas: list[float] | None, default: list[str],
                 directions: int) -> list[list[Function]]:
  """Return the functions of each direction."""
  names = default * directions if names is None else names
  if len(names) != len(default) * directions:
    raise ArgumentError(f"{len(names)} activations, and {len(default) * directions} are wanted")
  a, b, found = iter(alphas or ()), iter(betas or ()), []
  for name in names:
    if name.lower() not in _ACTIVATIONS:
      raise ArgumentError(f"the activation {name!r} is not known; known: {', '.join(_ACTIVATIONS)}")
    make, alpha, beta = _ACTIVATIONS[name.lower()]
    found.append(make(next(a, alpha) if alpha else 0.0, next(b, beta) if beta else 0.0))
  return [found[i * len(default):(i + 1) * len(default)] for i in range(directions)]

class _Layer:
  """Base of the three: weights by direction, the order of time, sequences of different lengths."""
  def __init__(self, x: Tensor, w: Tensor, r: Tensor, b: Tensor | None, lengths: Tensor | None, direction: str,
               gates: int, layout: int,
               hidden_size: int | None):
    if direction not in ("forward", "reverse", "bidirectional"): raise ArgumentError(f"direction={direction!r}")
    if x.ndim != 3 or w.ndim != 3 or r.ndim != 3:
      raise ShapeError(f"a recurrent layer wants three axes each, not {x.shape}, {w.shape}, {r.shape}")
    self.layout, self.x = layout, x.transpose(0, 1) if layout else x
    self.steps, self.batch, _ = sizes(self.x)
    self.hidden, self.directions, self.direction = int(r.shape[2]), int(w.shape[0]), direction
    if (hidden_size not in (None, self.hidden) or self.directions != (2 if direction == "bidirectional" else 1)
        or w.shape[1] != gates * self.hidden):
      raise ShapeError(f"weights of shape {w.shape} and {r.shape} do not fit {direction} with {gates} gates and "
                       f"hidden_size={hidden_size}")
    self.w, self.r = w, r
    self.b = Tensor.zeros(self.directions, 2 * gates * self.hidden, dtype=x.dtype, device=x.device) if b is None else b
    self.lengths = None if lengths is None else lengths.reshape(-1, 1)
    self.half = gates * self.hidden

  def initial(self, state: Tensor | None) -> list[Tensor]:
    """Return a state before the first step, for each direction."""
    if state is None:
      return [Tensor.zeros(self.batch, self.hidden, dtype=self.x.dtype, device=self.x.device)] * self.directions
    return [(state.transpose(0, 1) if self.layout else state)[i] for i in range(self.directions)]

  def run(self, cell: Callable[[int, Tensor, Tensor, list[Tensor]], list[Tensor]], states: list[list[Tensor]]) -> Any:
    """Return (all outputs, the last of each state). cell(direction, W's share of the input, R, states) returns new
    states, the output first."""
    outputs, last = [], []
    for d in range(self.directions):
      backwards = self.direction == "reverse" or d == 1
      state, rows = states[d], [None] * self.steps
      found: list[Any] = list(rows)
      shares = self.x.matmul(self.w[d].transpose())
      for t in reversed(range(self.steps)) if backwards else range(self.steps):
        new = cell(d, shares[t], self.r[d].transpose(), state)
        if self.lengths is not None:
          alive = self.lengths > t
          found[t] = alive.where(new[0], 0)
          state = [alive.where(a, b) for a, b in zip(new, state)]
        else: found[t], state = new[0], new
      outputs.append(found[0].stack(*found[1:]) if found else Tensor.zeros(0, self.batch, self.hidden,
                                                                           dtype=self.x.dtype, device=self.x.device))
      last.append(state)
    y = outputs[0].stack(*outputs[1:], dim=1)                                      # (T, directions, N, H)
    ends = [s[0].stack(*s[1:]) for s in zip(*last)]                                # (directions, N, H) each
    if self.layout: y, ends = y.permute(2, 0, 1, 3), [e.transpose(0, 1) for e in ends]
    return (y, *ends)

def _clipped(x: Tensor, limit: float) -> Tensor: return x.clamp(-limit, limit) if limit else x

@operator("RNN", 7)
def rnn(x: Tensor, w: Tensor, r: Tensor, b: Tensor | None = None, lengths: Tensor | None = None,
        initial_h: Tensor | None = None, *,
        activation_alpha: Floats | None = None, activation_beta: Floats | None = None,
        activations: Strings | None = None, clip: float = 0.0,
        direction: str = "forward", hidden_size: int | None = None, layout: int = 0, outputs: Outputs = 1) -> Any:
  layer = _Layer(x, w, r, b, lengths, direction, 1, layout, hidden_size)
  functions = _activations(activations, activation_alpha, activation_beta, ["Tanh"], layer.directions)
  def cell(d: int, share: Tensor, weights: Tensor, states: list[Tensor]) -> list[Tensor]:
    both = layer.b[d, :layer.half] + layer.b[d, layer.half:]
    return [functions[d][0](_clipped(share + states[0].matmul(weights) + both, clip))]
  return layer.run(cell, [[h] for h in layer.initial(initial_h)])

@operator("GRU", 7)
def gru(x: Tensor, w: Tensor, r: Tensor, b: Tensor | None = None, lengths: Tensor | None = None,
        initial_h: Tensor | None = None, *,
        activation_alpha: Floats | None = None, activation_beta: Floats | None = None,
        activations: Strings | None = None, clip: float = 0.0,
        direction: str = "forward", hidden_size: int | None = None, layout: int = 0, linear_before_reset: int = 0,
        outputs: Outputs = 1) -> Any:
  layer = _Layer(x, w, r, b, lengths, direction, 3, layout, hidden_size)
  functions = _activations(activations, activation_alpha, activation_beta, ["Sigmoid", "Tanh"], layer.directions)
  n = layer.hidden
  def cell(d: int, share: Tensor, weights: Tensor, states: list[Tensor]) -> list[Tensor]:
    f, g = functions[d]
    h = states[0]
    wb, rb = layer.b[d, :layer.half], layer.b[d, layer.half:]
    gates = share[:, :2 * n] + h.matmul(weights[:, :2 * n]) + wb[:2 * n] + rb[:2 * n]
    z, reset = f(_clipped(gates[:, :n], clip)), f(_clipped(gates[:, n:], clip))
    if linear_before_reset: inner = reset * (h.matmul(weights[:, 2 * n:]) + rb[2 * n:])
    else: inner = (reset * h).matmul(weights[:, 2 * n:]) + rb[2 * n:]
    new = g(_clipped(share[:, 2 * n:] + inner + wb[2 * n:], clip))
    return [(1 - z) * new + z * h]
  return layer.run(cell, [[h] for h in layer.initial(initial_h)])

@operator("LSTM", 7)
def lstm(x: Tensor, w: Tensor, r: Tensor, b: Tensor | None = None, lengths: Tensor | None = None,
         initial_h: Tensor | None = None,
         initial_c: Tensor | None = None, p: Tensor | None = None, *, activation_alpha: Floats | None = None,
         activation_beta: Floats | None = None,
         activations: Strings | None = None, clip: float = 0.0, direction: str = "forward",
         hidden_size: int | None = None, input_forget: int = 0,
         layout: int = 0, outputs: Outputs = 1) -> Any:
  """Run an LSTM. p: peepholes (directions, 3 H) for i, o, f. input_forget: the forget gate is 1 - the input gate."""
  layer = _Layer(x, w, r, b, lengths, direction, 4, layout, hidden_size)
  functions = _activations(activations, activation_alpha, activation_beta, ["Sigmoid", "Tanh", "Tanh"],
                           layer.directions)
  n = layer.hidden
  def cell(d: int, share: Tensor, weights: Tensor, states: list[Tensor]) -> list[Tensor]:
    f, g, out = functions[d]
    h, c = states
    gates = share + h.matmul(weights) + layer.b[d, :layer.half] + layer.b[d, layer.half:]
    i, o, forget, new = (gates[:, k * n:(k + 1) * n] for k in range(4))
    if p is not None: i, forget = i + p[d, :n] * c, forget + p[d, 2 * n:] * c
    i = f(_clipped(i, clip))
    kept = 1 - i if input_forget else f(_clipped(forget, clip))
    cell_state = kept * c + i * g(_clipped(new, clip))
    if p is not None: o = o + p[d, n:2 * n] * cell_state
    return [f(_clipped(o, clip)) * out(cell_state), cell_state]
  return layer.run(cell, [list(pair) for pair in zip(layer.initial(initial_h), layer.initial(initial_c))])

# ***** until version 6: output_sequence says whether the node wants the first result *****

@operator("RNN")
def rnn_of_old(x: Tensor, w: Tensor, r: Tensor, b: Tensor | None = None, lengths: Tensor | None = None,
               initial_h: Tensor | None = None, *, activation_alpha: Floats | None = None,
               activation_beta: Floats | None = None, activations: Strings | None = None, clip: float = 0.0,
               direction: str = "forward", hidden_size: int | None = None, output_sequence: int = 0) -> Any:
  return rnn(x, w, r, b, lengths, initial_h, activation_alpha=activation_alpha, activation_beta=activation_beta,
             activations=activations, clip=clip, direction=direction, hidden_size=hidden_size)

@operator("GRU")
def gru_of_old(x: Tensor, w: Tensor, r: Tensor, b: Tensor | None = None, lengths: Tensor | None = None,
               initial_h: Tensor | None = None, *, activation_alpha: Floats | None = None,
               activation_beta: Floats | None = None, activations: Strings | None = None, clip: float = 0.0,
               direction: str = "forward", hidden_size: int | None = None, linear_before_reset: int = 0,
               output_sequence: int = 0) -> Any:
  return gru(x, w, r, b, lengths, initial_h, activation_alpha=activation_alpha, activation_beta=activation_beta,
             activations=activations, clip=clip, direction=direction, hidden_size=hidden_size,
             linear_before_reset=linear_before_reset)

@operator("LSTM")
def lstm_of_old(x: Tensor, w: Tensor, r: Tensor, b: Tensor | None = None, lengths: Tensor | None = None,
                initial_h: Tensor | None = None, initial_c: Tensor | None = None, p: Tensor | None = None, *,
                activation_alpha: Floats | None = None, activation_beta: Floats | None = None,
                activations: Strings | None = None, clip: float = 0.0, direction: str = "forward",
                hidden_size: int | None = None, input_forget: int = 0, output_sequence: int = 0) -> Any:
  return lstm(x, w, r, b, lengths, initial_h, initial_c, p, activation_alpha=activation_alpha,
              activation_beta=activation_beta, activations=activations, clip=clip, direction=direction,
              hidden_size=hidden_size, input_forget=input_forget)
