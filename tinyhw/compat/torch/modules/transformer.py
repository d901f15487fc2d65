"""Layers of transformers, with PyTorch's keys. Source: Vaswani et al. 2017."""
from __future__ import annotations
from collections.abc import Callable
import copy
import math
from typing import Any

from tinyhw.compat.torch.modules.containers import ModuleList
from tinyhw.compat.torch.modules.module import Module
from tinyhw.compat.torch.modules.parametric import LayerNorm, Linear, functional
from tinyhw.compat.torch.modules.recurrent import MultiheadAttention
from tinyhw.compat.torch.modules.rows import LAYERS
from tinyhw.compat.torch.table import find
from tinyhw.errors import ArgumentError

def _activation(given: str | Callable[[Any], Any]) -> Callable[[Any], Any]:
  if callable(given): return given
  if given not in ("relu", "gelu"): raise ArgumentError(f"activation is 'relu', 'gelu' or a function, not {given!r}")
  return functional(given)  # type: ignore[no-any-return]

class _Block(Module):
  """Base of the blocks: a feed-forward part, and sums with the input before or after a normalization."""
  def _feed_forward(self, d_model: int, width: int, dropout: float, activation: Any, eps: float, norm_first: bool,
                    bias: bool, norms: int, device: Any, dtype: Any) -> None:
    self.linear1 = Linear(d_model, width, bias, device, dtype)
    self.linear2 = Linear(width, d_model, bias, device, dtype)
    self.dropout, self.norm_first, self.activation = LAYERS["Dropout"](dropout), norm_first, _activation(activation)
    for k in range(1, norms + 1):
      setattr(self, f"norm{k}", LayerNorm(d_model, eps, bias=bias, device=device, dtype=dtype))
      setattr(self, f"dropout{k}", LAYERS["Dropout"](dropout))

  def _fed(self, x: Any) -> Any: return self.linear2(self.dropout(self.activation(self.linear1(x))))

  def _added(self, x: Any, k: int, part: Callable[[Any], Any]) -> Any:
    """Return x plus the part k of it."""
    norm, dropout = getattr(self, f"norm{k}"), getattr(self, f"dropout{k}")
    return x + dropout(part(norm(x))) if self.norm_first else norm(x + dropout(part(x)))

class TransformerEncoderLayer(_Block):
  """Attention to itself, then a feed-forward part."""
  def __init__(self, d_model: int, nhead: int, dim_feedforward: int = 2048, dropout: float = 0.1,
               activation: Any = "relu", layer_norm_eps: float = 1e-05, batch_first: bool = False,
               norm_first: bool = False, bias: bool = True, device: Any = None, dtype: Any = None):
    super().__init__()
    self.self_attn = MultiheadAttention(d_model, nhead, dropout, bias, batch_first=batch_first, device=device,
                                        dtype=dtype)
    self._feed_forward(d_model, dim_feedforward, dropout, activation, layer_norm_eps, norm_first, bias, 2, device,
                       dtype)

  def forward(self, src: Any, src_mask: Any = None, src_key_padding_mask: Any = None, is_causal: bool = False) -> Any:
    """Return the result."""
    def attended(x: Any) -> Any:
      return self.self_attn(x, x, x, src_key_padding_mask, False, src_mask, is_causal=is_causal)[0]
    return self._added(self._added(src, 1, attended), 2, self._fed)

class TransformerDecoderLayer(_Block):
  """Attention to itself, to a memory, then a feed-forward part."""
  def __init__(self, d_model: int, nhead: int, dim_feedforward: int = 2048, dropout: float = 0.1,
               activation: Any = "relu", layer_norm_eps: float = 1e-05, batch_first: bool = False,
               norm_first: bool = False, bias: bool = True, device: Any = None, dtype: Any = None):
    super().__init__()
    self.self_attn, self.multihead_attn = (MultiheadAttention(d_model, nhead, dropout, bias, batch_first=batch_first,
                                                              device=device, dtype=dtype) for _ in range(2))
    self._feed_forward(d_model, dim_feedforward, dropout, activation, layer_norm_eps, norm_first, bias, 3, device,
                       dtype)

  def forward(self, tgt: Any, memory: Any, tgt_mask: Any = None, memory_mask: Any = None,
              tgt_key_padding_mask: Any = None, memory_key_padding_mask: Any = None, tgt_is_causal: bool = False,
              memory_is_causal: bool = False) -> Any:
    """Return the result."""
    def attended(x: Any) -> Any:
      return self.self_attn(x, x, x, tgt_key_padding_mask, False, tgt_mask, is_causal=tgt_is_causal)[0]
    def remembered(x: Any) -> Any:
      return self.multihead_attn(x, memory, memory, memory_key_padding_mask, False, memory_mask,
                                 is_causal=memory_is_causal)[0]
    return self._added(self._added(self._added(tgt, 1, attended), 2, remembered), 3, self._fed)

class _Stack(Module):
  def __init__(self, layer: Module, num_layers: int, norm: Module | None):
    super().__init__()
    self.layers = ModuleList([copy.deepcopy(layer) for _ in range(num_layers)])
    self.num_layers, self.norm = num_layers, norm

  def _through(self, x: Any, *args: Any, **keywords: Any) -> Any:
    for layer in self.layers: x = layer(x, *args, **keywords)
    return x if self.norm is None else self.norm(x)

class TransformerEncoder(_Stack):
  """Several encoder layers."""
  def __init__(self, encoder_layer: Module, num_layers: int, norm: Module | None = None,
               enable_nested_tensor: bool = True, mask_check: bool = True):
    super().__init__(encoder_layer, num_layers, norm)

  def forward(self, src: Any, mask: Any = None, src_key_padding_mask: Any = None, is_causal: bool | None = None) -> Any:
    """Return the result of the last layer."""
    return self._through(src, src_mask=mask, src_key_padding_mask=src_key_padding_mask, is_causal=bool(is_causal))

class TransformerDecoder(_Stack):
  """Several decoder layers."""
  def __init__(self, decoder_layer: Module, num_layers: int, norm: Module | None = None):
    super().__init__(decoder_layer, num_layers, norm)

  def forward(self, tgt: Any, memory: Any, tgt_mask: Any = None, memory_mask: Any = None,
              tgt_key_padding_mask: Any = None, memory_key_padding_mask: Any = None, tgt_is_causal: bool | None = None,
              memory_is_causal: bool = False) -> Any:
    """Return the result of the last layer."""
    return self._through(tgt, memory, tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask,
                         bool(tgt_is_causal), memory_is_causal)

class EncoderDecoder(Module):
  """An encoder and a decoder: `torch.nn.Transformer`."""
  def _get_name(self) -> str: return "Transformer"

  @staticmethod
  def generate_square_subsequent_mask(sz: int, device: Any = None, dtype: Any = None) -> Any:
    """Return the mask of causal attention, (sz, sz): -inf above the diagonal, else 0."""
    return find("", "full")((sz, sz), -math.inf, dtype=dtype, device=device).triu(1)

  def __init__(self, d_model: int = 512, nhead: int = 8, num_encoder_layers: int = 6, num_decoder_layers: int = 6,
               dim_feedforward: int = 2048, dropout: float = 0.1, activation: Any = "relu",
               custom_encoder: Any = None, custom_decoder: Any = None, layer_norm_eps: float = 1e-05,
               batch_first: bool = False, norm_first: bool = False, bias: bool = True, device: Any = None,
               dtype: Any = None):
    super().__init__()
    options = (d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first, bias,
               device, dtype)
    def norm() -> LayerNorm: return LayerNorm(d_model, layer_norm_eps, bias=bias, device=device, dtype=dtype)
    self.encoder = custom_encoder or TransformerEncoder(TransformerEncoderLayer(*options), num_encoder_layers, norm())
    self.decoder = custom_decoder or TransformerDecoder(TransformerDecoderLayer(*options), num_decoder_layers, norm())
    self.d_model, self.nhead, self.batch_first = d_model, nhead, batch_first

  def forward(self, src: Any, tgt: Any, src_mask: Any = None, tgt_mask: Any = None, memory_mask: Any = None,
              src_key_padding_mask: Any = None, tgt_key_padding_mask: Any = None, memory_key_padding_mask: Any = None,
              src_is_causal: bool | None = None, tgt_is_causal: bool | None = None,
              memory_is_causal: bool = False) -> Any:
    """Return the decoder's result."""
    memory = self.encoder(src, src_mask, src_key_padding_mask, src_is_causal)
    return self.decoder(tgt, memory, tgt_mask=tgt_mask, memory_mask=memory_mask,
                        tgt_key_padding_mask=tgt_key_padding_mask, memory_key_padding_mask=memory_key_padding_mask,
                        tgt_is_causal=bool(tgt_is_causal), memory_is_causal=memory_is_causal)
