"""Runnable graphs: nodes, which are checked when they are read, and their steps.

A run visits the nodes in order and builds tensors. Nothing is computed until a result is read, except where an operator
needs values to know a shape. Values that depend only on shapes and constants are `Known`: the interpreter computes
them, and they are kept for the next run with the same shapes. So a model of static shapes runs under TinyJit. A second
call with the same shapes only costs the construction of its graph.
"""
from __future__ import annotations
from collections.abc import Sequence
from typing import Any

from tinyhw.device import Device
from tinyhw.errors import ArgumentError, FileFormatError, TinyError
from tinyhw.files.budget import ENTRY, SLOT, Budget
from tinyhw.helpers import prod
from tinyhw.nn.onnx.inference import declared, spread, with_narrow_type
from tinyhw.nn.onnx.operator import MOST_KNOWN, Implementation, Known, Value, known, onnx_ops
from tinyhw.nn.onnx.order import check_inputs, check_outputs
from tinyhw.nn.onnx.parser import ATTRIBUTE, DOMAINS, OnnxNode, OnnxValue, AttributeReference, attributes_cost, where_of
from tinyhw.nn.onnx.ranks import BY_RANK, by_rank
from tinyhw.nn.onnx.texts import TextTensor
from tinyhw.tensor import Tensor

TRAINING = "ai.onnx.preview.training"
_DEEPEST_CALLS = 32
_PYTHON_ERRORS = (ArithmeticError, AssertionError, AttributeError, LookupError, TypeError, ValueError, RecursionError)

class NodeStep:
  """A runnable node: the node, its implementation, and its last results for known inputs."""
  __slots__ = ("node", "implementation", "opts", "key", "results", "name")

  def __init__(self, node: OnnxNode, implementation: Implementation, name: str):
    self.node, self.implementation, self.opts, self.name = node, implementation, dict(node.opts), name
    self.key: tuple[Any, ...] | None = None
    self.results: list[Value] = []

class Graph:
  """A checked graph: its constants, its steps in order, and the names of its inputs and outputs. narrow: the narrow
  types of values outside of it, by name. outside: the names of these values, in sets."""
  def __init__(self, graph: dict[str, Any], maker: GraphMaker, attributes: dict[str, Any] | None = None,
               narrow: dict[str, int] | None = None, outside: tuple[set[str], ...] = ()):
    self.name = graph.get("name", "")
    maker.budget.take(4 * ENTRY + ATTRIBUTE * sum(len(graph.get(part, ()))
                                                   for part in ("input", "output", "initializer")))
    self.constants: dict[str, Value] = {}
    sparse = [(tensor, tensor.get("values", {}).get("name", "")) for tensor in graph.get("sparse_initializer", ())]
    for tensor, name in [*((tensor, tensor.get("name", "")) for tensor in graph.get("initializer", ())), *sparse]:
      if tensor["parsed_tensor"] is None:
        raise FileFormatError(f"the tensor {name!r} stands in another file, which was not loaded")
      maker.budget.take(ENTRY + 3 * SLOT * min(prod(tensor["parsed_tensor"].shape), MOST_KNOWN))
      self.constants[name] = constant_value(tensor["parsed_tensor"], maker.device)
    inputs = graph["input"]
    described = bool(inputs) and isinstance(inputs[0], dict)   # those of a function are names alone
    self.inputs = ({info.get("name", ""): info["parsed_type"] for info in inputs} if described
                   else dict.fromkeys(inputs, OnnxValue(None, None)))
    self.outputs = tuple(info.get("name", "") if isinstance(info, dict) else info for info in graph["output"])
    self.narrow = {**(narrow or {}), **declared(graph)}
    self.steps: list[NodeStep] = []
    self.scopes = (*outside, {*self.inputs, *self.constants})
    nodes = graph["node"]
    for i, node in enumerate(nodes):
      check_inputs(nodes, i, self.scopes)
      maker.add(self, node, attributes or {})
      self.scopes[-1].update(node["output"])
    check_outputs(self.outputs, f"the graph {self.name!r}", self.scopes)

  def part(self, names: list[str], result: str) -> Graph:
    """Return the steps so far that compute a result from values with these names, as a graph of these inputs."""
    wanted, steps = {result}, []
    for step in reversed(self.steps):
      if wanted & set(step.node.outputs) - set(names):
        steps.append(step)
        wanted |= set(step.node.inputs)
    found: Graph = object.__new__(Graph)
    found.name, found.constants, found.narrow = f"{self.name}, until {result}", {}, self.narrow
    found.inputs, found.outputs = dict.fromkeys(names, OnnxValue(None, None)), (result,)
    found.steps, found.scopes = steps[::-1], self.scopes
    return found

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

def _run_step(step: NodeStep, inputs: list[Value], values: dict[str, Value]) -> list[Value]:
  """Return the results of a node. Errors name the node."""
  implementation, node = step.implementation, step.node
  try:
    if not implementation.takes_text(inputs): return _on_text(step, inputs)
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

def _on_text(step: NodeStep, inputs: list[Value]) -> list[Value]:
  """Return the results of an operator of numbers on text. Raises ArgumentError if it does not only move elements."""
  node = step.node
  if node.op not in BY_RANK: raise ArgumentError("an input is text, and the operator takes numbers; cast it before")
  return by_rank(node.op, lambda numbers: step.implementation(numbers, step.opts, len(node.outputs)), inputs)

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

def constant_value(tensor: Tensor | TextTensor, device: str | None) -> Value:
  """Return a constant of a model on a device. It is Known if it is small. Text stays on the host."""
  if isinstance(tensor, TextTensor): return tensor
  placed = tensor.to(device)
  if prod(tensor.shape) > MOST_KNOWN: return placed
  listed = tensor.flatten().tolist() if 0 not in tensor.shape else []
  return Known(listed, tuple(int(d) for d in tensor.shape), tensor.dtype, device, None if len(listed) == 1 else placed)

class GraphMaker:
  """A maker of Graphs from the results of the parser. It looks up operators, checks nodes, expands functions, and notes
  operators that are not supported."""
  def __init__(self, functions: Sequence[dict[str, Any]], device: str | None, budget: Budget):
    self.budget = budget
    self.functions = {(DOMAINS.get(f.get("domain", ""), f.get("domain", "")), f.get("name", "")): f for f in functions}
    self.device = device
    self.unknown: dict[tuple[str, str, int], None] = {}
    self.depth = 0

  def add(self, graph: Graph, proto_node: dict[str, Any], attributes: dict[str, Any]) -> None:
    """Add the step of a node to a graph. attributes: those of the function that contains the node."""
    node: OnnxNode = proto_node["parsed_node"]
    where = where_of(proto_node)
    # each call expands the function again
    self.budget.take(ENTRY + len(where) * (1 if where.isascii() else 4) + 2 * attributes_cost(len(node.opts)))
    opts = {}
    for name, value in node.opts.items():
      if name == "consumed_inputs": continue   # a hint about memory, which operator sets had until version 5
      if isinstance(value, AttributeReference):
        if value.name not in attributes: continue   # then the operator's own default applies
        value = attributes[value.name]
      if isinstance(value, dict) and "node" in value:
        value = Graph(value, self, attributes, graph.narrow, graph.scopes)
      elif isinstance(value, Tensor): value = value.to(self.device)
      if value is not None: opts[name] = value
    if (node.op, node.opset_id.domain) == ("Gradient", TRAINING):
      names = [name for part in (opts.get("xs"), opts.get("zs")) if isinstance(part, list) for name in part]
      opts["part"] = graph.part(names, str(opts.get("y", "")))
    node = with_narrow_type(node._replace(opts=opts), graph.narrow)
    spread(node, proto_node, graph.narrow)
    domain, version = node.opset_id
    function = self.functions.get((domain, node.op))
    if function is not None:
      narrow = self._narrow(function, node, graph)
      graph.steps.append(NodeStep(node._replace(opts={}), self._function(function, opts, where, narrow), where))
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
    step = NodeStep(node, found, where)
    if "memo" in found.attributes: step.opts["memo"] = {}
    graph.steps.append(step)

  def _narrow(self, function: dict[str, Any], node: OnnxNode, graph: Graph) -> dict[str, int]:
    """Return the narrow types of a function's inputs in one call."""
    return {name: graph.narrow[given] for name, given in zip(function["input"], node.inputs) if given in graph.narrow}

  def _function(self, function: dict[str, Any], opts: dict[str, Any], where: str,
                narrow: dict[str, int]) -> Implementation:
    """Return a function of the model, with the attributes of one call, as an operator."""
    if self.depth >= _DEEPEST_CALLS:
      raise FileFormatError(f"{where}: functions call each other more than {_DEEPEST_CALLS} deep")
    self.depth += 1
    body = Graph(function, self, opts, narrow)
    self.depth -= 1
    def call(*inputs: Value) -> Any:
      if len(inputs) > len(body.inputs):
        raise FileFormatError(f"{where} has {len(inputs)} inputs, and the function has {len(body.inputs)}")
      return tuple(body.run({"": None, **dict.fromkeys(body.inputs), **dict(zip(body.inputs, inputs))}))
    return Implementation(call, folds=False)

def graphs_in(graph: Graph) -> list[Graph]:
  """Return a graph and those in its nodes' attributes."""
  found = [graph]
  for g in found: found.extend(v for step in g.steps for v in step.opts.values() if isinstance(v, Graph))
  return found
