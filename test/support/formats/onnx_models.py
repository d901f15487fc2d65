"""Small ONNX models: a network for images, branches and loops, and operators whose results have other shapes."""
from typing import Any

import numpy as np

from formats.onnx_writer import graph, model, node, value_info

F32 = np.float32

def convnet() -> tuple[bytes, dict[str, Any]]:
  """Return a model of Conv, Relu, MaxPool, a reshape, Gemm and Softmax. Exporters write the reshape as Shape, Gather,
  Unsqueeze, Concat, Reshape."""
  rng = np.random.default_rng(1)
  w = {"w": rng.standard_normal((4, 1, 3, 3)).astype(F32), "b": rng.standard_normal(4).astype(F32), "zero": np.array(0),
       "minus": np.array([-1]),
       "axis": np.array([0]), "fc": rng.standard_normal((5, 36)).astype(F32), "fb": rng.standard_normal(5).astype(F32)}
  nodes = [node("Conv", ["x", "w", "b"], ["c"], pads=[1, 1, 1, 1], kernel_shape=[3, 3]), node("Relu", ["c"], ["r"]),
           node("MaxPool", ["r"], ["p"], kernel_shape=[2, 2], strides=[2, 2]), node("Shape", ["p"], ["s"]),
           node("Gather", ["s", "zero"], ["n"], axis=0), node("Unsqueeze", ["n", "axis"], ["n1"]),
           node("Concat", ["n1", "minus"], ["to"], axis=0),
           node("Reshape", ["p", "to"], ["f"]), node("Gemm", ["f", "fc", "fb"], ["g"], transB=1),
           node("Softmax", ["g"], ["y"], axis=1)]
  return model(graph(nodes, [value_info("x", "float32", ["n", 1, 6, 6])], ["y"], w)), w

def convnet_in_numpy(x: Any, w: dict[str, Any]) -> Any:
  padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
  windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (2, 3))
  c = np.maximum(np.einsum("nihwkl,oikl->nohw", windows, w["w"]) + w["b"].reshape(1, -1, 1, 1), 0)
  p = c.reshape(len(x), 4, 3, 2, 3, 2).max((3, 5)).reshape(len(x), -1)
  g = np.exp(p @ w["fc"].T + w["fb"])
  return g / g.sum(1, keepdims=True)

def branching() -> bytes:
  then, other = graph([node("Add", ["x", "w"], ["t"])], [], ["t"]), graph([node("Mul", ["x", "w"], ["e"])], [], ["e"])
  body = graph([node("Add", ["v", "w"], ["v2"]), node("Identity", ["go"], ["go2"])],
               [value_info("i"), value_info("go"), value_info("v")],
               ["go2", "v2"])
  nodes = [node("If", ["c"], ["a"], then_branch=then, else_branch=other),
           node("Loop", ["n", "", "a"], ["y"], body=body)]
  return model(graph(nodes, [value_info("x", "float32", [2])], ["y"],
                     {"w": np.array([1.0, 2.0], F32), "c": np.array(True), "n": np.array(3)}))

def shapes() -> bytes:
  nodes = [node("Pad", ["x", "pads"], ["p"], mode="constant"), node("Slice", ["p", "starts", "ends"], ["s"]),
           node("Tile", ["s", "reps"], ["t"]),
           node("Resize", ["t", "", "scales"], ["r"], mode="linear"),
           node("ReduceSum", ["r", "axes"], ["y"], keepdims=0)]
  constants = {"pads": np.array([1, 0, 0, 1]), "starts": np.array([0, 1]), "ends": np.array([3, 4]),
               "reps": np.array([2, 1]),
               "scales": np.array([1.0, 2.0], F32), "axes": np.array([-1])}
  return model(graph(nodes, [value_info("x", "float32", [2, 3])], ["y"], constants))
