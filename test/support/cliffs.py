"""Families of computations by size, and what one element more may cost."""
from __future__ import annotations
from collections.abc import Callable

from test.support.work import Work, work_of
from tinyhw import nn
from tinyhw.named_tuple import NamedTuple
from tinyhw.tensor import Tensor

STEP = 1.10       # times the work of n that n + 1 may be

Make = Callable[[int], list[Tensor]]

def gradients_of(loss: Tensor, *targets: Tensor) -> list[Tensor]: return list(loss.gradient(*targets))

def empty(*shape: int) -> Tensor: return Tensor.empty(*shape, requires_grad=True, device="NULL")

def addends(n: int) -> list[Tensor]:
  total = empty(1000)
  for _ in range(n - 1): total = total + empty(1000)
  return [total]

def shared_chain(n: int) -> list[Tensor]:
  x = empty(1000)
  for k in range(n): x = (x * (k + 2.0)).tanh()
  return [x]

def several_uses(n: int) -> list[Tensor]:
  """One elementwise value that n kernels want."""
  x = (empty(32, 1024) + 1).exp()
  return [(x * empty(32, 1024)).sum(1) for _ in range(n)]

def recurrent(n: int) -> list[Tensor]:
  x, w, u = empty(n, 32, 24), empty(24, 48), empty(48, 48)
  h = empty(32, 48)
  for k in range(n): h = (x[k] @ w + h @ u).tanh()
  return gradients_of(h.square().sum(), w, u)

def deep(n: int) -> list[Tensor]:
  x = empty(64, 32)
  ws = [empty(32, 32) for _ in range(n)]
  y = x
  for w in ws: y = (y @ w).relu()
  return gradients_of(y.sum(), *ws)

def adam(n: int) -> list[Tensor]:
  parameters = [empty(64, 16) for _ in range(n)]
  optimizer = nn.optim.Adam(parameters)
  for p in parameters: p.grad = empty(64, 16)
  return optimizer.schedule_step()

def conv(channels: int, outputs: int, width: int, kernel: int = 3, groups: int = 1,
         stride: int = 1) -> tuple[Tensor, Tensor, Tensor]:
  """Images 16 pixels high: the size that is swept enters once."""
  x, w = empty(2, channels, 16, width), empty(outputs, channels // groups, kernel, kernel)
  return x, w, x.conv2d(w, groups=groups, padding=kernel // 2, stride=stride)

def conv_gradients(channels: int, outputs: int, width: int, groups: int = 1) -> list[Tensor]:
  x, w, y = conv(channels, outputs, width, groups=groups)
  return gradients_of((y * empty(*y.shape)).sum(), x, w)

def normed(layer: nn.LayerNorm | nn.GroupNorm | nn.BatchNorm, *shape: int) -> list[Tensor]:
  """The gradients of a layer whose parameters are on NULL, too."""
  assert layer.weight is not None
  layer.weight, layer.bias, x = empty(*layer.weight.shape), empty(*layer.weight.shape), empty(*shape)
  return gradients_of((layer(x) * empty(*shape)).sum(), x, layer.weight, layer.bias)

def image_norm(channels: int, groups: int, width: int) -> list[Tensor]:
  return normed(nn.GroupNorm(groups, channels), 4, channels, 16, width)

# name -> how to make it for a size, and sizes n whose step to n + 1 is looked at besides those of SIZES
FAMILIES: dict[str, tuple[Make, tuple[int, ...]]] = {
  "sum of all": (lambda n: [empty(n).sum()], (65535, 65536, 1 << 20)),
  "sum of columns": (lambda n: [empty(n, 64).sum(0)], (4095, 4096, 65535, 65536)),
  "sum of few columns": (lambda n: [empty(n, 8).sum(0)], (32767, 32768, 65535, 65536)),
  "columns of a sum": (lambda n: [empty(1 << 16, n).sum(0)], ()),
  "sum of rows": (lambda n: [empty(512, n).sum(1)], ()),
  "max of rows": (lambda n: [empty(512, n).max(1)], ()),
  "rows of a sum": (lambda n: [empty(n, 512).sum(1)], ()),
  "softmax": (lambda n: [empty(64, n).softmax()], (8192, 131071, 131072)),
  "rows of softmax": (lambda n: [empty(n, 256).softmax()], ()),
  "softmax gradient": (lambda n: (lambda x: gradients_of((x.softmax() * empty(64, n)).sum(), x))(empty(64, n)), ()),
  "layernorm": (lambda n: normed(nn.LayerNorm(n), 64, n), ()),
  "groupnorm channels": (lambda n: image_norm(n * 2, 2, 8), ()),
  "groupnorm width": (lambda n: image_norm(8, 2, n), ()),
  "batchnorm width": (lambda n: normed(nn.BatchNorm(8, track_running_stats=False), 4, 8, 16, n), ()),
  "variance": (lambda n: [empty(64, n).var(1)], ()),
  "cumsum": (lambda n: [empty(64, n).cumsum(1)], (256, 512, 513, 65536)),
  "cumsum of columns": (lambda n: [empty(n, 64).cumsum(0)], (256, 512, 513)),
  "cummax": (lambda n: list(empty(64, n).cummax(1))[:1], (256, 512)),
  "sort": (lambda n: [empty(16, n).sort()[0]], ()),
  "topk": (lambda n: [empty(16, 512).topk(n)[0]], ()),
  "topk of": (lambda n: [empty(16, n).topk(8)[0]], ()),
  "argmax": (lambda n: [empty(64, n).argmax(1)], ()),
  "matmul m": (lambda n: [empty(n, 64) @ empty(64, 64)], (4096,)),
  "matmul n": (lambda n: [empty(64, 64) @ empty(64, n)], (4096,)),
  "matmul k": (lambda n: [empty(64, n) @ empty(n, 64)], (2048, 4096, 4097, 8192)),
  "matmul batch": (lambda n: [empty(n, 24, 24) @ empty(n, 24, 24)], ()),
  "matmul gradients": (lambda n: (lambda a, b: gradients_of((a @ b).square().sum(), a, b))(empty(n, 48), empty(48, 40)),
                       ()),
  "vector by matrix": (lambda n: [empty(n) @ empty(n, 512)], (2048, 4096)),
  "matrix by vector": (lambda n: [empty(512, n) @ empty(n)], (2048, 4096)),
  "conv channels": (lambda n: [conv(n, 32, 16)[2]], ()),
  "conv outputs": (lambda n: [conv(16, n, 16)[2]], ()),
  "conv width": (lambda n: [conv(16, 16, n)[2]], ()),
  "conv to one width": (lambda n: [conv(16, 1, n)[2]], ()),
  "depthwise width": (lambda n: [conv(16, 16, n, groups=16)[2]], ()),
  "conv stride width": (lambda n: [conv(16, 16, n, stride=2)[2]], ()),
  "conv gradients width": (lambda n: conv_gradients(8, 16, n), ()),
  "conv gradients channels": (lambda n: conv_gradients(n, 16, 16), ()),
  "max pool": (lambda n: [empty(8, 8, 16, n).max_pool2d((2, 1))], ()),
  "elementwise": (lambda n: [empty(n, 100) * 2 + empty(n, 100)], ()),
  "transpose": (lambda n: [empty(n, 100).transpose(0, 1).contiguous()], ()),
  "transpose columns": (lambda n: [empty(100, n).transpose(0, 1).contiguous()], ()),
  "cat": (lambda n: [empty(100, 10).cat(*[empty(100, 10) for _ in range(n - 1)])], ()),
  "stack": (lambda n: [empty(1000).stack(*[empty(1000) for _ in range(n - 1)])], ()),
  "gather": (lambda n: [empty(n, 64)[Tensor.empty(32, dtype="int32", device="NULL")]], ()),
  "gather rows": (lambda n: [empty(100, 64)[Tensor.empty(n, dtype="int32", device="NULL")]], ()),
  "scatter": (lambda n: [empty(64, 64).scatter(0, Tensor.empty(n, 64, dtype="int32", device="NULL"), empty(n, 64))],
              ()),
  "addends": (addends, ()),
  "chain": (shared_chain, ()),
  "uses": (several_uses, ()),
  "recurrent": (recurrent, ()),
  "deep": (deep, ()),
  "adam": (adam, ()),
  "attention": (lambda n: [empty(2, 4, n, 16).scaled_dot_product_attention(empty(2, 4, n, 16), empty(2, 4, n, 16))],
                ()),
}
SIZES = (16, 17, 23, 24, 31, 32, 33, 47, 48, 63, 64, 65, 96, 127, 128, 255, 256)
LARGEST = {"sort": 64, "deep": 32, "recurrent": 17, "adam": 33, "uses": 33, "conv channels": 128, "cat": 65,
           "stack": 65, "chain": 65}
LEAST = {"x86_64:avx2": 16, "x86_64:avx512": 16}

class Step(NamedTuple):
  """Why some families may have steps above STEP, and how large they are at most. sizes: the n at which they may be; ()
  for all."""
  why: str
  families: str
  most: float
  sizes: tuple[int, ...] = ()

EXPLAINED = (
  Step("the loop of the lanes needs one register more, most of whose lanes are idle or compute again what the one "
       "before does",
       "softmax; softmax gradient; cumsum; cumsum of columns; cummax; sort; topk of; matmul m; matmul n; conv "
       "outputs; conv width; "
       "conv to one width; depthwise width; conv stride width; conv gradients width; attention", 1.5),
  Step("rows of the left operand are transposed four elements at a time; another number of terms has another tile",
       "matmul k", 1.15),
  Step("another tile, of as many cycles by the model", "matmul gradients; conv channels; conv gradients channels", 1.2),
  Step("elements that lie apart are put into registers one by one, two columns for one at the end",
       "transpose; transpose columns; max pool", 1.4),
  Step("what is left of a reduction's loop is folded by fewer lanes, at last one by one",
       "sum of rows; max of rows; matrix by vector; argmax; variance; layernorm", 1.3),
  Step("two kernels where one did: all workers have something to do", "sum of all", 1.25, (65535,)),
  Step("blocks, of fewer terms for each element, and what is no multiple of a block is padded, and stored so",
       "cumsum; cumsum of columns; cummax", 1.5, (64, 96, 128, 256, 512)),
  Step("another group of parts, which is a kernel", "cat; stack", 1.15),
)
STEEP = (
  Step("one register of 16 lanes did where two have to, and a launch is small beside that",
       "cummax", 1.64, (16,)),
  Step("the same, and a masked vector before its buffer begins at its first element: an operation for each address",
       "conv to one width", 1.71, (16,)),
  Step("the same beside more work for each channel", "depthwise width", 1.56, (16,)),
  Step("the same; with 16, channels share the gates of a tile, and no window is copied (1.3 times as fast)",
       "conv gradients width", 1.71, (16,)),
  Step("another tile, which the model takes for 3 % faster than it is", "conv width", 1.57, (21,)),
  Step("rows are read one after the other, which memory answers fastest, so each has a remainder of its own",
       "matrix by vector", 1.36, (256,)),
)

def sizes_of(family: str, arch: str) -> list[int]:
  """The n of a family from which a step to n + 1 is looked at."""
  return [n for n in sorted({*SIZES, *FAMILIES[family][1]}) if LEAST[arch] <= n <= LARGEST.get(family, n)]

def works(family: str, n: int, arch: str) -> tuple[Work, Work]:
  """Work for n and for n + 1."""
  make = FAMILIES[family][0]
  return work_of(make(n), arch), work_of(make(n + 1), arch)

def allowed(family: str, n: int | None) -> float:
  """The largest step that is explained, for an n, or for any."""
  return max([STEP, *[s.most for s in (*EXPLAINED, *STEEP) if family in s.families.split("; ")
                      and (not s.sizes or n is None or n in s.sizes)]])

def excess(family: str, n: int, arch: str, anywhere: bool = False) -> str:
  """Return the parts of a step that are above their limit; empty for none. anywhere: a step that is explained for some
  n is so for all."""
  less, more = works(family, n, arch)
  ratio, most = more.cost / less.cost, allowed(family, None if anywhere else n)
  return f"{ratio:.3f} (at most {most}), {less} -> {more}" if ratio > most + 0.005 else ""
