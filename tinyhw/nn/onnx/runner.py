"""`OnnxRunner`: a callable model, with checks of its inputs. Its graph is in graph.py."""
from __future__ import annotations
import os
from typing import Any

from tinyhw.device import Device
from tinyhw.errors import ArgumentError, DTypeError, ShapeError
from tinyhw.nn.onnx.graph import Graph, GraphMaker, constant_value, graphs_in
from tinyhw.nn.onnx.operator import Value, as_tensor
from tinyhw.nn.onnx.parser import OnnxPBParser, OnnxValue, imported_sets
from tinyhw.nn.onnx.texts import TextTensor, texts_of
from tinyhw.tensor import Tensor

class OnnxRunner:
  """A callable model of an ONNX file: `OnnxRunner("model.onnx")({"x": Tensor(...)})` returns {output's name: Tensor}.

  model_path: a path, bytes, or a tensor of bytes. graph_inputs: the description of each input, by name. graph_outputs:
  names. graph_values: the constants. Raises FileFormatError for a damaged model. Raises ArgumentError for a model with
  unknown operators, and names all of them.
  """
  def __init__(self, model_path: Tensor | str | os.PathLike[str] | bytes):
    parser = OnnxPBParser(model_path)
    model = parser.parse()
    self._device: str | None = None
    imports = imported_sets(model["opset_import"])
    maker = GraphMaker(model["functions"], None, parser.budget)
    self._graph = Graph(model["graph"], maker)
    if maker.unknown:
      listed = ", ".join(f"{name} ({domain}, opset {version})" for name, domain, version in sorted(maker.unknown))
      raise ArgumentError(f"the model has operators that tinyhw does not know: {listed}; onnx_ops lists those that it "
                          f"does, and tinyhw.nn.onnx.operator.define adds one")
    self.opset = imports.get("", 1)
    self.graph_name = self._graph.name
    self.graph_inputs: dict[str, OnnxValue] = {name: spec for name, spec in self._graph.inputs.items()
                                               if name not in self._graph.constants}
    self.graph_outputs: tuple[str, ...] = self._graph.outputs
    self.graph_nodes = tuple(step.node for step in self._graph.steps)

  @property
  def graph_values(self) -> dict[str, Any]:
    """The constants of the model, by name."""
    return {name: _plain(value) for name, value in self._graph.constants.items()}

  def to(self, device: str | None) -> OnnxRunner:
    """Move the constants of the model to a device. Return the runner."""
    self._device = Device.canonicalize(device)
    for graph in graphs_in(self._graph):
      graph.constants = {name: constant_value(_plain(value), self._device)
                         for name, value in graph.constants.items()}
      for step in graph.steps:
        step.opts = {name: value.to(self._device) if isinstance(value, Tensor) else value
                     for name, value in step.opts.items()}
        if "memo" in step.opts: step.opts["memo"] = {}
        step.key = None
    return self

  def get_empty_input_data(self, device: str | None = None, sizes: dict[str, int] | None = None) -> dict[str, Tensor]:
    """Return zeros for each input. sizes: those of axes that have a name instead of a number; 1 if not given."""
    found = {}
    for name, spec in self.graph_inputs.items():
      if spec.dtype is None or spec.shape is None or spec.is_sequence:
        what = "is text: give TextTensor" if spec.is_text else "is not described by the model: give a value"
        raise ArgumentError(f"the input {name!r} {what}")
      shape = tuple(d if isinstance(d, int) else (sizes or {}).get(d, 1) for d in spec.shape)
      found[name] = Tensor.zeros(*shape, dtype=spec.dtype, device=device or self._device)
    return found

  def __call__(self, inputs: dict[str, Any], debug: int = 0) -> dict[str, Any]:
    """Return the outputs by name, not yet computed. inputs: by name, Tensors or arguments of Tensor(). debug: 1 prints
    nodes, 2 their results too.

    Raises ArgumentError for names that are missing or not known, ShapeError and DTypeError for values that do not fit
    `graph_inputs`.
    """
    unknown = [name for name in inputs if name not in self._graph.inputs]
    if unknown:
      raise ArgumentError(f"the model has no input {unknown[0]!r}; its inputs are {', '.join(self.graph_inputs)}")
    missing = [name for name, spec in self.graph_inputs.items() if name not in inputs and not spec.is_optional]
    if missing:
      raise ArgumentError(f"the input {missing[0]!r} is missing; the model's inputs are {', '.join(self.graph_inputs)}")
    named: dict[str, int] = {}
    values: dict[str, Value] = {"": None, **dict.fromkeys(self.graph_inputs)}
    for name, value in inputs.items():
      values[name] = _fitted(name, value, self._graph.inputs[name], named, self._device)
    results = self._graph.run(values, debug)
    return {name: _plain(value) for name, value in zip(self.graph_outputs, results)}

def _plain(value: Value) -> Any:
  if isinstance(value, list): return [_plain(x) for x in value]
  return value if value is None or isinstance(value, (TextTensor, dict)) else as_tensor(value)

def _fitted(name: str, value: Any, spec: OnnxValue, named: dict[str, int], device: str | None) -> Value:
  """Return an input in the form of its specification. named: the sizes of named axes so far."""
  if value is None and spec.is_optional or isinstance(value, dict): return value
  if spec.is_sequence:
    if not isinstance(value, (list, tuple)):
      raise ArgumentError(f"the input {name!r} is a sequence; give a list of Tensors")
    if spec.is_text: return [texts_of(x, f"the input {name!r}") for x in value]
    return [x if isinstance(x, (Tensor, TextTensor)) else Tensor(x, dtype=spec.dtype, device=device) for x in value]
  if spec.is_text or isinstance(value, TextTensor):
    return _of_shape(name, texts_of(value, f"the input {name!r}"), spec, named)
  tensor = value if isinstance(value, Tensor) else Tensor(value, dtype=spec.dtype if not hasattr(value, "dtype")
                                                          else None, device=device)
  if spec.dtype is not None and tensor.dtype is not spec.dtype:
    raise DTypeError(f"the input {name!r} has {tensor.dtype}, and the model wants {spec.dtype}; cast it")
  return _of_shape(name, tensor, spec, named)

def _of_shape(name: str, tensor: Any, spec: OnnxValue, named: dict[str, int]) -> Any:
  """Return a tensor or text. Raises ShapeError if its shape is not that of the specification."""
  if spec.shape is None: return tensor
  if tensor.ndim != len(spec.shape):
    raise ShapeError(f"the input {name!r} has shape {tensor.shape}, and the model wants {spec.shape}")
  for actual, wanted in zip(tensor.shape, spec.shape):
    expected = wanted if isinstance(wanted, int) else named.setdefault(wanted, int(actual)) if wanted else actual
    if actual != expected:
      raise ShapeError(f"the input {name!r} has shape {tensor.shape}, and the model wants {spec.shape}: {actual} is "
                       f"not {expected}")
  return tensor
