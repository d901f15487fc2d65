"""NVIDIA's functions of the notation, on one lane, in Python numbers: approximate functions and 8-bit floats. The rest
is in emulator/python/numerics.py."""
from __future__ import annotations
from collections.abc import Callable
from typing import Any

from tinyhw.arithmetic import CODED
from tinyhw.dtype import FLOAT_FORMATS, DType, decode_float, dtypes
from tinyhw.emulator.nvidia.semantics.approximate import FUNCTIONS
from tinyhw.emulator.python import numerics
from tinyhw.emulator.python.floats import bits_of_float32, float32_of
from tinyhw.threads import once

UNITS = {"rcp": "RCP", "rsq": "RSQ", "sqrt": "SQRT", "exp": "EX2", "log": "LG2"}

def _of_float32(function: Callable[[int], int]) -> Callable[[float], float]:
  return lambda x: float32_of(function(bits_of_float32(x)))

def _saturated(kind: DType) -> Callable[[float], int]:
  """Encode an 8-bit float. Too large a number becomes the largest number, and a NaN 0x7f."""
  largest, encode = decode_float(FLOAT_FORMATS[kind].largest_code, kind), CODED[kind][1]
  return lambda x: 0x7f if x != x else encode(min(max(x, -largest), largest))

@once
def environment() -> dict[str, Any]:
  """Return the names that generated Python functions may use."""
  found = numerics.environment() | {f"{name}_f32": _of_float32(FUNCTIONS[unit]) for name, unit in UNITS.items()}
  for name, kind in zip(("fp8", "bf8"), dtypes.fp8_ocp):
    found[f"{name}_to_f32"], found[f"f32_to_{name}"] = CODED[kind][0], _saturated(kind)
  return found | {"rcp_upper": FUNCTIONS["RCP64H"], "rsq_upper": FUNCTIONS["RSQ64H"]}
