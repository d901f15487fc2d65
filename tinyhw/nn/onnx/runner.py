"""Execution of models: graphs of nodes, which are checked when they are read, and `OnnxRunner`, which runs one.

A run visits the nodes in order and builds tensors. Nothing is computed until a result is read, except where an operator
needs values to know a shape. Values that depend only on shapes and constants are `Known`: the interpreter computes
them, and they are kept for the next run with the same shapes. So a model of static shapes runs under TinyJit. A second
call with the same shapes only costs the construction of its graph.
"""
from __future__ import annotations
from collections.abc import Sequence
import os
from typing import Any

from tinyhw.device import Device
from tinyhw.dtype import DType, dtypes
from tinyhw.errors import ArgumentError, DTypeError, FileFormatError, ShapeError, TinyError
from tinyhw.files.budget import ENTRY, SLOT, Budget
from tinyhw.files.regular import open_input
from tinyhw.helpers import prod
from tinyhw.named_tuple import NamedTuple
from tinyhw.nn.onnx import proto
from tinyhw.nn.onnx.data import TYPES, to_tensor
from tinyhw.nn.onnx.operator import MOST_KNOWN, Implementation, Known, Value, as_tensor, known, onnx_ops
from tinyhw.tensor import Tensor

# Several names for one set of operators. Source: ONNX, "Versioning"
_DOMAINS = {"ai.onnx": "", "ai.onnx.ml": "ai.onnx.ml"}
_DEEPEST_CALLS = 32
_PYTHON_ERRORS = (ArithmeticError, AssertionError, AttributeError, LookupError, TypeError, ValueError, RecursionError)

class OnnxValue(NamedTuple):
  """The model's description of an input or output. shape: sizes, or names where they may vary; None if it is not
  given."""
  shape: tuple[int | str, ...] | None
  dtype: DType | None
  is_optional: bool = False
  is_sequence: bool = False

class OpSetId(NamedTuple):
  """A set of operators and its version."""
  domain: str
  version: int

class OnnxNode(NamedTuple):
  """A node as in the file."""
  op: str
  opset_id: OpSetId
  inputs: tuple[str, ...]
  outputs: tuple[str, ...]
  opts: dict[str, Any]

class _Step:
  """A runnable node: the node, its implementation, and its last results for known inputs."""
  __slots__ = ("node", "implementation", "opts", "key", "results", "name")

  def __init__(self, node: OnnxNode, implementation: Implementation, name: str):
    self.node, self.implementation, self.opts, self.name = node, implementation, dict(node.opts), name
    self.key: tuple[Any, ...] | None = None
    self.results: list[Value] = []

def _where(node: dict[str, Any]) -> str:
  return f"node {node.get('name') or '/'.join(node['output'])!r} ({node.get('op_type', '')})"

# ***** results of the parser *****

def value_of(info: dict[str, Any]) -> OnnxValue:
  """Convert a ValueInfoProto."""
  kind, optional, sequence = info.get("type", {}), False, False
  for _ in range(4):
    if "optional_type" in kind: kind, optional = kind["optional_type"].get("elem_type", {}), True
    elif "sequence_type" in kind: kind, sequence = kind["sequence_type"].get("elem_type", {}), True
  tensor = kind.get("tensor_type", {})
  row = TYPES.get(tensor.get("elem_type", 0))
  shape = None
  if "shape" in tensor:
    shape = tuple(d["dim_value"] if d.get("dim_value", -1) >= 0 else d.get("dim_param", "")
                  for d in tensor["shape"]["dim"])
  return OnnxValue(shape, None if row is None else row.dtype, optional, sequence)

# AttributeProto.type: the field. Source: onnx.proto
_ATTRIBUTE_FIELDS = {1: "f", 2: "i", 3: "s", 4: "t", 5: "g", 6: "floats", 7: "ints", 8: "strings", 9: "tensors",
                     10: "graphs", 13: "tp"}

class OnnxPBParser:
  """A parser of an ONNX file: a path, bytes, or a tensor of bytes.

  load_external_data: False omits tensors that are in other files. Their `parsed_tensor` is None.
  """
  def __init__(self, inp: Tensor | str | os.PathLike[str] | bytes, load_external_data: bool = True):
    self.load_external_data = load_external_data
    self.folder: str | None = None
    self.budget: Budget
    if isinstance(inp, (bytes, bytearray, memoryview)): self.data, self.name = memoryview(inp), "the model"
    elif isinstance(inp, Tensor):
      if inp.dtype is not dtypes.uint8: raise ArgumentError(f"a model is a tensor of bytes, not of {inp.dtype}")
      self.data, self.name = inp._read()[0], "the model"
    elif isinstance(inp, (str, os.PathLike)):
      self.name = os.fspath(inp)
      with open_input(inp, "an ONNX model") as file: self.data = memoryview(file.read())
      self.folder = os.path.dirname(os.path.abspath(inp))
    else: raise ArgumentError(f"a model is a path, bytes or a tensor of bytes, not {inp!r:.80}")
    self.budget = Budget(self.name, self.data.nbytes)

  def parse(self) -> dict[str, Any]:
    """Return the model as dicts with the names of onnx.proto. Tensors have `parsed_tensor`, inputs and outputs
    `parsed_type`, nodes `parsed_node`.

    Raises FileFormatError if the file is not a complete model.
    """
    model = proto.parse(self.data, self.name, budget=self.budget)
    if "graph" not in model: raise FileFormatError(f"{self.name} is no ONNX model: it has no graph")
    imports = _imports(model["opset_import"])
    self._graph(model["graph"], imports)
    for function in model["functions"]:
      own = _imports(function["opset_import"]) or imports
      for node in function["node"]: self._node(node, own)
    return model

  def _graph(self, graph: dict[str, Any], imports: dict[str, int]) -> None:
    for tensor in graph["initializer"]:
      tensor["parsed_tensor"] = to_tensor(tensor, self.folder, self.load_external_data, self.budget)
    for info in (*graph["input"], *graph["output"]):
      self.budget.take(ENTRY)
      info["parsed_type"] = value_of(info)
    for node in graph["node"]: self._node(node, imports)

  def _node(self, node: dict[str, Any], imports: dict[str, int]) -> None:
    domain = _DOMAINS.get(node.get("domain", ""), node.get("domain", ""))
    self.budget.take(ENTRY + SLOT // 2 * (len(node["input"]) + len(node["output"]))
                     + _attributes(len(node["attribute"])))
    opts = {a.get("name", ""): self._attribute(a, imports, node) for a in node["attribute"]}
    opset = OpSetId(domain, imports.get(domain, 1))
    node["parsed_node"] = OnnxNode(node.get("op_type", ""), opset, tuple(node["input"]), tuple(node["output"]), opts)

  def _attribute(self, attribute: dict[str, Any], imports: dict[str, int], node: dict[str, Any]) -> Any:
    """Return the value of an attribute: a number, a text, a list, a Tensor, a graph (its dict) or a _Reference."""
    if attribute.get("ref_attr_name"): return _Reference(attribute["ref_attr_name"])
    kind = attribute.get("type", 0) or next((n for n, field in _ATTRIBUTE_FIELDS.items() if attribute.get(field)), 0)
    field = _ATTRIBUTE_FIELDS.get(kind)
    if field is None:
      raise FileFormatError(f"{_where(node)}: the attribute {attribute.get('name')!r} has the type {kind}, which is "
                            f"not supported")
    value = attribute.get(field, {"f": 0.0, "i": 0, "s": b""}.get(field))
    if value is None: raise FileFormatError(f"{_where(node)}: the attribute {attribute.get('name')!r} has no {field}")
    if field == "t": return to_tensor(value, self.folder, self.load_external_data, self.budget)
    if field == "tensors": return [to_tensor(v, self.folder, self.load_external_data, self.budget) for v in value]
    if field == "g": self._graph(value, imports)
    if field == "graphs":
      for graph in value: self._graph(graph, imports)
    if field == "s": return _text(value)
    if field == "strings": return [_text(v) for v in value]
    if field not in ("ints", "floats"): return value
    self.budget.take(2 * SLOT * len(value))
    return list(value)

class _Reference(NamedTuple):
  """An attribute of a node in a function that takes the value of an attribute of the function."""
  name: str

_ATTRIBUTE = 160   # bytes, at most, of an entry of a dict while it grows

def _attributes(count: int) -> int: return 192 + _ATTRIBUTE * count if count else 0

def _text(raw: Any) -> str: return bytes(raw).decode("utf-8", "replace")

def _imports(rows: Sequence[dict[str, Any]]) -> dict[str, int]:
  return {_DOMAINS.get(row.get("domain", ""), row.get("domain", "")): row.get("version", 1) for row in rows}

# ***** runnable graphs *****

class Graph:
  """A checked graph: its constants, its steps in order, and the names of its inputs and outputs."""
  def __init__(self, graph: dict[str, Any], maker: _Maker, attributes: dict[str, Any] | None = None):
    self.name = graph.get("name", "")
    maker.budget.take(4 * ENTRY + _ATTRIBUTE * sum(len(graph.get(part, ()))
                                                   for part in ("input", "output", "initializer")))
    self.constants: dict[str, Value] = {}
    for tensor in graph.get("initializer", ()):
      if tensor["parsed_tensor"] is None:
        raise FileFormatError(f"the tensor {tensor.get('name')!r} stands in another file, which was not loaded")
      maker.budget.take(ENTRY + 3 * SLOT * min(prod(tensor["parsed_tensor"].shape), MOST_KNOWN))
      self.constants[tensor.get("name", "")] = constant_value(tensor["parsed_tensor"], maker.device)
    inputs = graph["input"]
    described = bool(inputs) and isinstance(inputs[0], dict)   # those of a function are names alone
    self.inputs = ({info.get("name", ""): info["parsed_type"] for info in inputs} if described
                   else dict.fromkeys(inputs, OnnxValue(None, None)))
    self.outputs = tuple(info.get("name", "") if isinstance(info, dict) else info for info in graph["output"])
    self.narrow = {info.get("name", ""): number for info, number in _declared(graph) if number in (21, 22, 23)}
    self.steps: list[_Step] = []
    for node in graph["node"]: maker.add(self, node, attributes or {})

  def run(self, values: dict[str, Value], debug: int = 0) -> list[Value]:
    """Return the outputs. values: the inputs, and values named outside of the graph, by name."""
    values = {**values, **self.constants, **{name: values[name] for name in self.inputs if name in values}}
    for step in self.steps:
      node = step.node
      if debug: print(f"{step.name}: {', '.join(f'{name}={_show(values.get(name))}' for name in node.inputs)}")
      inputs = [_named(values, name, step.name) if name else None for name in node.inputs]
      while inputs and inputs[-1] is None: inputs.pop()
      results = _run_step(step, _on_one_device(inputs), values)
      if len(results) < sum(map(bool, node.outputs)) and any(node.outputs[len(results):]):
        raise FileFormatError(f"{step.name} names {len(node.outputs)} results, and {len(results)} are computed")
      values.update((name, value) for name, value in zip(node.outputs, results) if name)
      if debug > 1: print("  ->", ", ".join(f"{name}={_show(values.get(name))}" for name in node.outputs))
    results = [_named(values, name, f"the graph {self.name!r}") for name in self.outputs]
    values.clear()   # intermediate values are not kept, since TinyJit would take them for state
    return results

def _declared(graph: dict[str, Any]) -> list[tuple[dict[str, Any], int]]:
  """Return the constants and inputs of a graph with the numbers of their element types."""
  infos = [info for info in graph["input"] if isinstance(info, dict)]
  return [(t, t.get("data_type", 0)) for t in graph.get("initializer", ())] + \
         [(info, info.get("type", {}).get("tensor_type", {}).get("elem_type", 0)) for info in infos]

def _named(values: dict[str, Value], name: str, where: str) -> Value:
  try: return values[name]
  except KeyError: raise FileFormatError(f"{where} uses {name!r}, which nothing before it computes") from None

def _show(value: Value) -> str:
  if isinstance(value, Known): return f"{list(value.values[:8])}{'...' if len(value.values) > 8 else ''}"
  return f"{value.dtype}{value.shape}" if isinstance(value, Tensor) else f"{value!r:.60}"

def _on_one_device(inputs: list[Value]) -> list[Value]:
  """Return inputs on one device. Known values move to the device of the first tensor, or of the first input."""
  given = [x for x in inputs if isinstance(x, (Tensor, Known))]
  if len({x.device or Device.DEFAULT for x in given}) < 2: return inputs
  device = next((x for x in given if isinstance(x, Tensor)), given[0]).device
  return [Known(x.values, x.shape, x.dtype, device) if isinstance(x, Known) else x for x in inputs]

def _run_step(step: _Step, inputs: list[Value], values: dict[str, Value]) -> list[Value]:
  """Return the results of a node. Errors name the node."""
  implementation, node = step.implementation, step.node
  try:
    if (not (implementation.folds and all(x is None or isinstance(x, Known) for x in inputs))
        or any(isinstance(v, Graph) for v in step.opts.values())):
      opts = {name: _body(v, values) if isinstance(v, Graph) else v for name, v in step.opts.items()}
      return implementation(inputs, opts, len(node.outputs))
    key = tuple(None if x is None else x.key for x in inputs)
    if key != step.key:
      found = [_folded(x) for x in implementation(inputs, step.opts, len(node.outputs))]
      if not all(isinstance(x, Known) for x in found): return found
      step.key, step.results = key, found
    return step.results
  except FileFormatError: raise
  except TinyError as error: raise type(error)(f"{step.name}: {error.message}", error.location) from error
  except _PYTHON_ERRORS as error:
    raise FileFormatError(f"{step.name} cannot be computed from {', '.join(map(_show, inputs))}: "
                          f"{type(error).__name__}: {error}") from error

def _folded(value: Value) -> Value:
  if not isinstance(value, Tensor): return value
  found = known(value)
  return value if found is None else found

def _body(graph: Graph, outside: dict[str, Value]) -> Any:
  """Return a graph as a function of its inputs. It can use the names outside of it."""
  def call(*inputs: Value) -> list[Value]:
    if len(inputs) != len(graph.inputs):
      raise FileFormatError(f"the graph {graph.name!r} has {len(graph.inputs)} inputs, not {len(inputs)}")
    return graph.run({**outside, **dict(zip(graph.inputs, inputs))})
  return call

def constant_value(tensor: Tensor, device: str | None) -> Value:
  """Return a constant of a model on a device. It is Known if it is small."""
  placed = tensor.to(device)
  if prod(tensor.shape) > MOST_KNOWN: return placed
  listed = tensor.flatten().tolist() if 0 not in tensor.shape else []
  return Known(listed, tuple(int(d) for d in tensor.shape), tensor.dtype, device, None if len(listed) == 1 else placed)

# Operators that take a type from an input: the index of that input, and the attribute that also names the type. A
# Tensor does not know that it has 4 bits.
_TYPED_BY_INPUT = {"CastLike": (1, "to"), "QuantizeLinear": (2, "output_dtype")}

def _with_narrow_type(node: OnnxNode, narrow: dict[str, int]) -> OnnxNode:
  """Return a node with the type as an attribute, if the type follows an input of less than 8 bits."""
  place, attribute = _TYPED_BY_INPUT.get(node.op, (len(node.inputs), ""))
  if node.opset_id.domain or place >= len(node.inputs) or node.inputs[place] not in narrow: return node
  opts = {**node.opts, attribute: narrow[node.inputs[place]]}
  return (node._replace(op="Cast", inputs=node.inputs[:1], opts=opts) if node.op == "CastLike"
          else node._replace(opts=opts))

class _Maker:
  """A maker of Graphs from the results of the parser. It looks up operators, checks nodes, expands functions, and notes
  operators that are not supported."""
  def __init__(self, functions: Sequence[dict[str, Any]], device: str | None, budget: Budget):
    self.budget = budget
    self.functions = {(_DOMAINS.get(f.get("domain", ""), f.get("domain", "")), f.get("name", "")): f for f in functions}
    self.device = device
    self.unknown: dict[tuple[str, str, int], None] = {}
    self.depth = 0

  def add(self, graph: Graph, proto_node: dict[str, Any], attributes: dict[str, Any]) -> None:
    """Add the step of a node to a graph. attributes: those of the function that contains the node."""
    node: OnnxNode = proto_node["parsed_node"]
    where = _where(proto_node)
    # each call expands the function again
    self.budget.take(ENTRY + len(where) * (1 if where.isascii() else 4) + 2 * _attributes(len(node.opts)))
    opts = {}
    for name, value in node.opts.items():
      if isinstance(value, _Reference):
        if value.name not in attributes: continue   # then the operator's own default applies
        value = attributes[value.name]
      if isinstance(value, dict): value = Graph(value, self, attributes) if "node" in value else None
      elif isinstance(value, Tensor): value = value.to(self.device)
      if value is not None: opts[name] = value
    node = _with_narrow_type(node._replace(opts=opts), graph.narrow)
    domain, version = node.opset_id
    function = self.functions.get((domain, node.op))
    if function is not None:
      graph.steps.append(_Step(node._replace(opts={}), self._function(function, opts, where), where))
      return
    operator = onnx_ops.get(node.op)
    found = None if operator is None else operator.select(domain, version)
    if found is None:
      self.unknown[node.op, domain or "ai.onnx", version] = None
      return
    # a graph counts as a function
    plain = {name: (lambda: None) if isinstance(v, Graph) else v for name, v in node.opts.items()}
    why = found.check(len(node.inputs), plain)
    if why is not None: raise FileFormatError(f"{where}, version {version}: {why}")
    graph.steps.append(_Step(node, found, where))

  def _function(self, function: dict[str, Any], opts: dict[str, Any], where: str) -> Implementation:
    """Return a function of the model, with the attributes of one call, as an operator."""
    if self.depth >= _DEEPEST_CALLS:
      raise FileFormatError(f"{where}: functions call each other more than {_DEEPEST_CALLS} deep")
    self.depth += 1
    body = Graph(function, self, opts)
    self.depth -= 1
    def call(*inputs: Value) -> Any:
      if len(inputs) > len(body.inputs):
        raise FileFormatError(f"{where} has {len(inputs)} inputs, and the function has {len(body.inputs)}")
      return tuple(body.run({"": None, **dict.fromkeys(body.inputs), **dict(zip(body.inputs, inputs))}))
    return Implementation(call, folds=False)

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
    imports = _imports(model["opset_import"])
    maker = _Maker(model["functions"], None, parser.budget)
    self._graph = Graph(model["graph"], maker)
    if maker.unknown:
      listed = ", ".join(f"{name} ({domain}, opset {version})" for name, domain, version in sorted(maker.unknown))
      raise ArgumentError(f"the model has operators that tinyhw does not know: {listed}; onnx_ops lists those that it "
                          f"does")
    self.opset = imports.get("", 1)
    self.graph_name = self._graph.name
    self.graph_inputs: dict[str, OnnxValue] = {name: spec for name, spec in self._graph.inputs.items()
                                               if name not in self._graph.constants}
    self.graph_outputs: tuple[str, ...] = self._graph.outputs
    self.graph_nodes = tuple(step.node for step in self._graph.steps)

  @property
  def graph_values(self) -> dict[str, Tensor]:
    """The constants of the model, by name."""
    return {name: as_tensor(value) for name, value in self._graph.constants.items()}

  def to(self, device: str | None) -> OnnxRunner:
    """Move the constants of the model to a device. Return the runner."""
    self._device = Device.canonicalize(device)
    for graph in _graphs(self._graph):
      graph.constants = {name: constant_value(as_tensor(value), self._device)
                         for name, value in graph.constants.items()}
      for step in graph.steps:
        step.opts = {name: value.to(self._device) if isinstance(value, Tensor) else value
                     for name, value in step.opts.items()}
        step.key = None
    return self

  def get_empty_input_data(self, device: str | None = None, sizes: dict[str, int] | None = None) -> dict[str, Tensor]:
    """Return zeros for each input. sizes: those of axes that have a name instead of a number; 1 if not given."""
    found = {}
    for name, spec in self.graph_inputs.items():
      if spec.dtype is None or spec.shape is None or spec.is_sequence:
        raise ArgumentError(f"the model does not say what its input {name!r} is")
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

def _graphs(graph: Graph) -> list[Graph]:
  """Return a graph and those in its nodes' attributes."""
  found = [graph]
  for g in found: found.extend(v for step in g.steps for v in step.opts.values() if isinstance(v, Graph))
  return found

def _plain(value: Value) -> Any:
  if isinstance(value, list): return [_plain(x) for x in value]
  return None if value is None else as_tensor(value)

def _fitted(name: str, value: Any, spec: OnnxValue, named: dict[str, int], device: str | None) -> Value:
  """Return an input in the form of its specification. named: the sizes of named axes so far."""
  if value is None and spec.is_optional: return None
  if spec.is_sequence:
    if not isinstance(value, (list, tuple)):
      raise ArgumentError(f"the input {name!r} is a sequence; give a list of Tensors")
    return [x if isinstance(x, Tensor) else Tensor(x, dtype=spec.dtype, device=device) for x in value]
  tensor = value if isinstance(value, Tensor) else Tensor(value, dtype=spec.dtype if not hasattr(value, "dtype")
                                                          else None, device=device)
  if spec.dtype is not None and tensor.dtype is not spec.dtype:
    raise DTypeError(f"the input {name!r} has {tensor.dtype}, and the model wants {spec.dtype}; cast it")
  if spec.shape is None: return tensor
  if tensor.ndim != len(spec.shape):
    raise ShapeError(f"the input {name!r} has shape {tensor.shape}, and the model wants {spec.shape}")
  for actual, wanted in zip(tensor.shape, spec.shape):
    expected = wanted if isinstance(wanted, int) else named.setdefault(wanted, int(actual)) if wanted else actual
    if actual != expected:
      raise ShapeError(f"the input {name!r} has shape {tensor.shape}, and the model wants {spec.shape}: {actual} is "
                       f"not {expected}")
  return tensor
