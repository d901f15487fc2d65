"""Edge cases of optimizers: gradients of zero, weights of zero, momentum in the second step, decay, training mode,
wrong parameters."""
from generators.edge_cases import Case, like, raises

from tinyhw import dtypes
from tinyhw.errors import ArgumentError, GradientError, IndexRangeError

ABOUT = 1e-5
STEP = "l = w.sum().backward(); s = Tensor.train()(o.step); s(); s(); w"    # the gradient is 1, twice

EDGES: dict[str, list[Case]] = {
  "nn.optim.SGD": [
    ("w = Tensor([1.0, 2.0]); o = nn.optim.SGD([w], lr=0.1); l = (w * w).sum().backward(); Tensor.train()(o.step)(); w",
     [0.8, 1.6]),
    ("w = Tensor([1.0]); o = nn.optim.SGD([w], lr=0.1, momentum=0.9); " + STEP, [0.71]),
    ("w = Tensor([1.0]); o = nn.optim.SGD([w], lr=0.1, momentum=0.9, nesterov=True); " + STEP, [1.0 - 0.19 - 0.271]),
    ("w = Tensor([1.0]); o = nn.optim.SGD([w], lr=0.1, weight_decay=0.5); " + STEP, [0.85 - 0.1425]),
    ("w = Tensor([1.0]).half(); o = nn.optim.SGD([w], lr=0.25); " + STEP, like([0.5], dtypes.float16)),
    ("w = Tensor([1.0]); o = nn.optim.SGD([w, w], lr=Tensor([0.25]), fused=True); " + STEP, [0.5]),
    ("w = Tensor([1.0]); o = nn.optim.SGD([w]); l = w.sum().backward(); o.step()",
     raises(GradientError, "outside of training mode")),
    ("w = Tensor([1.0]); o = nn.optim.SGD([w]); Tensor.train()(o.step)()", raises(GradientError, "has no gradient")),
    ("nn.optim.SGD([])", raises(ArgumentError, "at least one parameter")),
    ("nn.optim.SGD(Tensor([1.0]))", raises(ArgumentError, "list of Tensors")),
    ("nn.optim.SGD([Tensor([1.0])], lr=math.nan)", raises(ArgumentError, "lr is nan")),
    ("nn.optim.SGD([1.0])", raises(ArgumentError, "it has 1.0")),
    ("nn.optim.SGD([Tensor([1.0])], lr=Tensor([0.1, 0.2]))", raises(ArgumentError, "lr is one number")),
  ],
  "nn.optim.Adam": [
    ("w = Tensor([1.0, 2.0]); o = nn.optim.Adam([w], lr=0.1); " + STEP, like([0.8, 1.8], tolerance=ABOUT)),
    ("w = Tensor([1.0]); o = nn.optim.Adam([w], lr=0.1, b1=0.0); " + STEP, like([0.8], tolerance=ABOUT)),
    ("w = Tensor([5.0]); o = nn.optim.Adam([w], lr=0.1); l = (w * 0).sum().backward(); Tensor.train()(o.step)(); w",
     [5.0]),
    ("w = Tensor([1.0]); o = nn.optim.Adam([w], lr=0.1, eps=1.0); l = w.sum().backward(); Tensor.train()(o.step)(); w",
     [0.95]),
    ("w = Tensor([0.0]); o = nn.optim.Adam([w], lr=0.1); l = (w * 1e-4).sum().backward(); Tensor.train()(o.step)(); w",
     like([-0.1], tolerance=ABOUT)),
    ("nn.optim.Adam([Tensor([1.0])], b1=math.inf)", raises(ArgumentError, "b1 is inf")),
  ],
  "nn.optim.AdamW": [
    ("w = Tensor([1.0]); o = nn.optim.AdamW([w], lr=0.1, weight_decay=0.5); l = w.sum().backward(); "
     "Tensor.train()(o.step)(); w", [0.85]),
    ("w = Tensor([5.0]); o = nn.optim.AdamW([w], lr=0.1, weight_decay=1); l = (w * 0).sum().backward(); "
     "Tensor.train()(o.step)(); w", [4.5]),
    ("w = Tensor([1.0]); o = nn.optim.AdamW([w], lr=0.1, weight_decay=0.0); " + STEP, like([0.8], tolerance=ABOUT)),
    ("nn.optim.AdamW([Tensor([1.0])], weight_decay='x')", raises(ArgumentError, "weight_decay is a number")),
  ],
  "nn.optim.LAMB": [
    ("w = Tensor([3.0, 4.0]); o = nn.optim.LAMB([w], lr=0.1); l = w.sum().backward(); Tensor.train()(o.step)(); w",
     like([3 - 0.35355339, 4 - 0.35355339], tolerance=ABOUT)),
    ("w = Tensor([0.0, 0.0]); o = nn.optim.LAMB([w], lr=0.1); l = w.sum().backward(); Tensor.train()(o.step)(); w",
     like([-0.1, -0.1], tolerance=ABOUT)),
    ("w = Tensor([3.0, 4.0]); o = nn.optim.LAMB([w], lr=0.1); l = (w * 0).sum().backward(); Tensor.train()(o.step)(); "
     "w", [3.0, 4.0]),
    ("w = Tensor([3.0, 4.0]); o = nn.optim.LAMB([w], lr=0.1, adam=True, eps=0.0); " + STEP, [2.8, 3.8]),
    ("nn.optim.LAMB([Tensor([1.0])], fused=True)", raises(ArgumentError, "knows no layers")),
  ],
  "nn.optim.LARS": [
    ("w = Tensor([3.0, 4.0]); o = nn.optim.LARS([w], lr=1.0); l = (w * w).sum().mul(0.5).backward(); "
     "Tensor.train()(o.step)(); w", [2.997, 3.996]),
    ("w = Tensor([0.0]); o = nn.optim.LARS([w], lr=0.1, momentum=0.0); l = w.sum().backward(); "
     "Tensor.train()(o.step)(); w", [-0.1]),
    ("w = Tensor([1.0]); o = nn.optim.LARS([w], lr=0.1, weight_decay=0.0, tcoef=0.0); " + STEP, [0.71]),
    ("w = Tensor([1.0]); o = nn.optim.LARS([w], lr=0.1, momentum=0.0, weight_decay=0.5, tcoef=0.0, pre_wd=False); l = "
     "w.sum().backward(); "
     "Tensor.train()(o.step)(); w", [0.85]),
    ("nn.optim.LARS([Tensor([1.0])], fused=True)", raises(ArgumentError, "knows no layers")),
  ],
  "nn.optim.Muon": [
    ("w = Tensor([1.0]); o = nn.optim.Muon([w], lr=0.1); l = w.sum().backward(); Tensor.train()(o.step)(); w", [0.795]),
    ("w = Tensor([[1.0]]); o = nn.optim.Muon([w], lr=0.1, ns_steps=1); l = w.sum().backward(); "
     "Tensor.train()(o.step)(); w", [[0.9199]]),
    ("w = Tensor([[1.0]]); o = nn.optim.Muon([w], lr=0.1, weight_decay=0.0); l = (w * 0).sum().backward(); "
     "Tensor.train()(o.step)(); w", [[1.0]]),
    ("nn.optim.Muon([Tensor([[1.0]])], fused=True)", raises(ArgumentError, "knows no layers")),
  ],
  "nn.optim.OptimizerGroup": [
    ("v, w = Tensor([1.0]), Tensor([1.0]); o = nn.optim.OptimizerGroup(nn.optim.SGD([v], lr=1.0), nn.optim.SGD([w], "
     "lr=0.5)); "
     "l = (v * w).sum().backward(); Tensor.train()(o.step)(); (v, w)", ([0.0], [0.5])),
    ("w = Tensor([1.0]); o = nn.optim.OptimizerGroup(nn.optim.SGD([w])); l = w.sum().backward(); o.zero_grad(); w.grad",
     None),
    ("o = nn.optim.OptimizerGroup(nn.optim.SGD([Tensor([1.0])])); o[0] is o[-1]", True),
    ("nn.optim.OptimizerGroup(nn.optim.SGD([Tensor([1.0])]))[1]", raises(IndexRangeError, "no optimizer 1")),
    ("nn.optim.OptimizerGroup(5)", raises(ArgumentError, "made of optimizers")),
  ],
}
