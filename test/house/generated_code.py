"""Digests of the machine code of benchmark kernels, for each target. A move or a rename must not change a byte.

    python3 test/house/generated_code.py    # writes test/golden/generated_code.txt anew; say in the commit why code
                                            # changed

test/house/test_generated_code.py compares. Nothing runs: each target's backend assumes its machine, so the digests are
the same everywhere.
"""
from __future__ import annotations
import hashlib
import sys
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tinyhw import nn
from tinyhw.config import Context
from tinyhw.engine.run.compile import compile_kernel
from tinyhw.engine.schedule.schedule import canonicalize, schedule
from tinyhw.tensor import Tensor
from tinyhw.uop.enums import Ops

GOLDEN = Path(__file__).resolve().parents[1] / "golden/generated_code.txt"
TARGETS = ("x86_64:avx2", "x86_64:avx512", "gfx1100", "gfx1200", "gfx942", "gfx950", "sm_80", "sm_89", "sm_90", "c",
           "python")
HEAD = "# workload, target, kernels, bytes of code, digest of it; python3 test/house/generated_code.py writes this.\n"

def empty(*shape: int, dtype: str = "float32") -> Tensor:
  return Tensor.empty(*shape, dtype=dtype, device="NULL", requires_grad=True)

def product(m: int, n: int, k: int, dtype: str = "float32") -> list[Tensor]:
  return [empty(m, k, dtype=dtype) @ empty(k, n, dtype=dtype)]

def convolution_gradients() -> list[Tensor]:
  x, w = empty(8, 16, 28, 28), empty(32, 16, 3, 3)
  return list(x.conv2d(w, padding=1).relu().sum().gradient(x, w))

def layer_norm_gradient() -> list[Tensor]:
  layer, x = nn.LayerNorm(256), empty(64, 256)
  layer.weight, layer.bias = empty(256), empty(256)
  return list((layer(x) * empty(64, 256)).sum().gradient(x, layer.weight))

def chain() -> list[Tensor]:
  x = empty(4096)
  for k in range(40): x = x * x + k / 64
  return [x]

WORKLOADS: dict[str, Callable[[], list[Tensor]]] = {
  "elementwise": lambda: [(empty(1 << 20) * empty(1 << 20) + empty(1 << 20)).relu() * 2],
  "transcendental": lambda: [empty(4096).exp() + empty(4096).sin() * empty(4096).log()],
  "chain": chain,
  "integers": lambda: [(empty(4096, dtype="int64") * 3) // 7 % 5],
  "sum": lambda: [empty(1 << 20).sum()],
  "softmax": lambda: [empty(512, 1024).softmax()],
  "layernorm": lambda: [empty(512, 1024).layernorm()],
  "layernorm gradient": layer_norm_gradient,
  "matmul": lambda: product(512, 512, 512),
  "matmul half": lambda: product(1024, 1024, 1024, "float16"),
  "matmul bfloat16": lambda: product(256, 320, 192, "bfloat16"),
  "batched": lambda: [empty(16, 64, 64) @ empty(16, 64, 64)],
  "gemv": lambda: [empty(1024, 1024) @ empty(1024)],
  "conv3x3": lambda: [empty(8, 32, 28, 28).conv2d(empty(32, 32, 3, 3), padding=1)],
  "conv1x1": lambda: [empty(8, 64, 28, 28).conv2d(empty(32, 64, 1, 1))],
  "conv gradients": convolution_gradients,
  "maxpool": lambda: [empty(8, 32, 56, 56).max_pool2d((3, 3), stride=2, padding=1)],
  "attention": lambda: [empty(2, 4, 64, 32).scaled_dot_product_attention(empty(2, 4, 64, 32), empty(2, 4, 64, 32))],
  "gather": lambda: [empty(100, 64)[Tensor.empty(32, dtype="int32", device="NULL")]],
  "cumsum": lambda: [empty(64, 512).cumsum(1)],
}

def digest(workload: str, target: str) -> str:
  """Return the line of a workload on a target."""
  code, kernels, size = hashlib.blake2b(digest_size=8), 0, 0
  with Context(CACHE=0):
    for kernel in schedule(canonicalize([t.uop for t in WORKLOADS[workload]()])).kernels:
      if kernel.sink.op is not Ops.SINK: continue
      made = compile_kernel(kernel.sink, target).code.text
      kernels, size = kernels + 1, size + len(made)
      code.update(made)
  return f"{workload}, {target}, {kernels}, {size}, {code.hexdigest()}"

def golden() -> dict[tuple[str, str], str]:
  """Return the lines of the file, by workload and target."""
  lines = [line for line in GOLDEN.read_text("utf-8").splitlines() if not line.startswith("#")]
  return {(fields[0], fields[1]): line for line in lines if (fields := line.split(", "))}

def main() -> None:
  GOLDEN.write_text(HEAD + "".join(f"{digest(workload, target)}\n" for target in TARGETS for workload in WORKLOADS),
                    "utf-8")

if __name__ == "__main__": main()
