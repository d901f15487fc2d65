"""`torch.nn.utils.fusion`: a normalization by running statistics becomes a part of the layer before it."""
from __future__ import annotations
import copy
from typing import Any

from tinyhw.compat.torch.modules.module import Module, Parameter
from tinyhw.errors import ArgumentError

def fuse_conv_bn_weights(conv_w: Any, conv_b: Any, bn_rm: Any, bn_rv: Any, bn_eps: float, bn_w: Any, bn_b: Any,
                         transpose: bool = False) -> tuple[Parameter, Parameter]:
  """Return weight and bias of a convolution whose result is normalized. transpose: of a transposed one."""
  factor = (bn_rv + bn_eps).rsqrt() if bn_w is None else bn_w * (bn_rv + bn_eps).rsqrt()
  shape = [1] * conv_w.ndim
  shape[1 if transpose else 0] = -1
  bias = (0 if conv_b is None else conv_b) - bn_rm
  bias = bias * factor if bn_b is None else bias * factor + bn_b
  return Parameter(conv_w * factor.reshape(shape), bool(conv_w.requires_grad)), Parameter(bias, bool(
    conv_w.requires_grad))

def fuse_linear_bn_weights(linear_w: Any, linear_b: Any, bn_rm: Any, bn_rv: Any, bn_eps: float, bn_w: Any,
                           bn_b: Any) -> tuple[Parameter, Parameter]:
  """Return weight and bias of a linear layer whose result is normalized."""
  return fuse_conv_bn_weights(linear_w, linear_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b)

def _fused(layer: Module, bn: Module, transpose: bool) -> Module:
  if layer.training or bn.training: raise ArgumentError("only layers in evaluation mode are fused; call eval()")
  found = copy.deepcopy(layer)
  found.weight, bias = fuse_conv_bn_weights(layer.weight, layer.bias, bn.running_mean, bn.running_var, bn.eps,
                                            bn.weight, bn.bias, transpose)
  found._parameters["bias"] = bias
  return found

def fuse_conv_bn_eval(conv: Module, bn: Module, transpose: bool = False) -> Module:
  """Return a convolution that does what both do in evaluation mode. Raises ArgumentError in training mode."""
  return _fused(conv, bn, transpose)

def fuse_linear_bn_eval(linear: Module, bn: Module) -> Module:
  """Return a linear layer that does what both do in evaluation mode. Raises ArgumentError in training mode."""
  return _fused(linear, bn, False)
