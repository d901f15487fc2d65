"""Digests of bytes: Keccak (SHA-3, SHAKE) over the last axis, and a tree of SHAKE-128 for large data.

Keccak-f[1600] works on 5 x 5 words of 64 bits for each message at once. A round is two kernels, which are the same for
all rounds: the round constant is read from storage. Where messages have several blocks, one schedule serves all, and
runs once for each block. Source: FIPS 202.
"""
from __future__ import annotations
from typing import TYPE_CHECKING

from tinyhw.dtype import dtypes
from tinyhw.errors import ArgumentError, DTypeError, ShapeError
from tinyhw.methods.decomposition import Decomposition
from tinyhw.methods.graph import graph
from tinyhw.methods.graph.views import static
if TYPE_CHECKING: from tinyhw.tensor import Tensor

# Name: the rate (the bytes of the state that absorb the message), and the bits that follow the message. The digest has
# half as many bytes as the rate leaves of the 200 bytes.
CONFIGURATIONS = {"sha3_224": (144, 0x06), "sha3_256": (136, 0x06), "sha3_384": (104, 0x06), "sha3_512": (72, 0x06),
                  "shake_128": (168, 0x1f), "shake_256": (136, 0x1f)}
STATE_BYTES, ROUNDS, MASK = 200, 24, (1 << 64) - 1
BLOCK, CHUNK = 1 << 12, 1 << 20    # bytes of the leaves of hash(), and of a node with 256 leaves

def _rotations() -> list[int]:
  """Return the bits by which rho rotates word x + 5 y."""
  found = [0] * 25
  x, y = 1, 0
  for t in range(24):
    found[x + 5 * y] = (t + 1) * (t + 2) // 2 % 64
    x, y = y, (2 * x + 3 * y) % 5
  return found

def _round_constants() -> list[int]:
  """Return the constants that iota adds in the rounds. Bits 2^j - 1 of a word come from a shift register."""
  found = []
  register = 1
  for _ in range(ROUNDS):
    word = 0
    for j in range(7):
      if register & 1: word |= 1 << ((1 << j) - 1)
      register = register << 1 ^ (0x171 if register >> 7 else 0)
    found.append(word)
  return found

class Digest(Decomposition):
  """The methods keccak and hash."""
  __slots__ = ()

  def keccak(self, cfg: str | tuple[int, int] = "sha3_256") -> Tensor:
    """Return the digest of the bytes along the last axis: (..., n) uint8 -> (..., digest) uint8.

    cfg: "sha3_224", "sha3_256", "sha3_384", "sha3_512", "shake_128", "shake_256" (16 and 32 bytes), or (rate in bytes,
    byte that ends the message). The digest has (200 - rate) / 2 bytes. Raises DTypeError unless the type is uint8.
    Source: FIPS 202.

    >>> Tensor(b"abc").keccak().data().hex()[:16]
    '3a985da74fe225b2'
    """
    rate, ending = self._configuration(cfg)
    if self.dtype is not dtypes.uint8:
      raise DTypeError(f"keccak wants bytes, uint8, not {self.dtype}; bitcast(dtypes.uint8) gives them")
    if not self.ndim: raise ShapeError("keccak wants an axis of bytes, and the shape is (); reshape it to (1,) first")
    lead, n = tuple([static(d, "digest") for d in self.shape[:-1]]), static(self.shape[-1], "digest")
    count, blocks = int(graph.size(lead)), n // rate + 1
    size = (STATE_BYTES - rate) // 2
    tail = bytearray(blocks * rate - n)
    tail[0] |= ending
    tail[-1] |= 0x80
    message = self.reshape(count, n).cat(self._tensor(bytes(tail)).reshape(1, -1).expand(count, len(tail)), dim=1)
    words = message.reshape(count, blocks, rate // 8, 8).bitcast(dtypes.uint64).reshape(count, blocks,
                                                                                        rate // 8).permute(1, 2, 0)
    words = words.pad(((0, 0), (0, 25 - rate // 8), (0, 0))).reshape(blocks, 5, 5, count).contiguous()
    state = _Round(words).all(words[0]) if blocks == 1 else self._absorbed(words.realize(), blocks, count)
    squeezed = state.reshape(25, count).permute(1, 0).contiguous().reshape(count, 25,
                                                                           1).bitcast(dtypes.uint8).reshape(
      count, STATE_BYTES)
    return squeezed.shrink((None, (0, size))).reshape(*lead, size)

  def _absorbed(self, words: Tensor, blocks: int, count: int) -> Tensor:
    """Return the state after all blocks of each message. It is computed now, since a graph of all blocks would be
    long."""
    round_ = _Round(words)
    def absorb(state: Tensor, block: Tensor) -> Tensor:
      return round_.all(state ^ words.gather(0, block.reshape(1, 1, 1, 1).expand(1, 5, 5, count))[0])
    state = words.zeros(5, 5, count, dtype=words.dtype, device=words.device).contiguous().realize()
    places = [self._tensor([block]) for block in range(blocks)]
    step = state._again(absorb, places[0])
    for place in places: state = step(state, place)
    return state

  def _configuration(self, cfg: str | tuple[int, int]) -> tuple[int, int]:
    if isinstance(cfg, str) and cfg in CONFIGURATIONS: return CONFIGURATIONS[cfg]
    if isinstance(cfg, tuple) and len(cfg) == 2 and all(type(x) is int for x in cfg):
      rate, ending = cfg
      if 0 < rate < STATE_BYTES and rate % 8 == 0 and 0 <= ending <= 255: return rate, ending
    raise ArgumentError(f"cfg is one of {', '.join(CONFIGURATIONS)}, or (rate, ending): a multiple of 8 below 200, "
                        f"and a byte; not {cfg!r}")

  def hash(self) -> Tensor:
    """Return 16 bytes that depend on all bytes of the elements, in order: (16,) uint8. The data is padded with zeros to
    a multiple of a MiB.

    Each 4 KiB becomes a SHAKE-128 digest. The digests of each MiB, which are 4 KiB, become one digest. This repeats
    until one digest is left.

    >>> Tensor(b"Hello World!").hash().shape
    (16,)
    """
    data = self.flatten()
    data = (data.cast(dtypes.uint8) if data.dtype is dtypes.bool
            else data.reshape(-1, 1).bitcast(dtypes.uint8)).flatten()
    while True:
      n = static(data.shape[0], "hash")
      chunks, blocks = max(1, -(-n // CHUNK)), -(-n // BLOCK)
      whole = data.pad(((0, blocks * BLOCK - n),)).reshape(blocks, BLOCK)
      # the last one is of zeros
      digests = whole.cat(whole.const_like(0)[:1] if blocks else whole.pad(((0, 1), (0, 0))), dim=0).keccak("shake_128")
      missing = chunks * (CHUNK // BLOCK) - blocks
      digests = digests[:blocks].cat(digests[blocks:].expand(missing, 16), dim=0)
      data = digests.reshape(chunks, BLOCK).keccak("shake_128").flatten()
      if chunks == 1: return data

class _Round:
  """The steps of a round, and the data that they read from storage."""
  def __init__(self, like: Tensor):
    rotations = _rotations()
    # pi: word x + 5 y of the result comes from word places[x + 5 y]
    places = [0] * 25
    for x in range(5):
      for y in range(5): places[y + 5 * ((2 * x + 3 * y) % 5)] = x + 5 * y
    def words(values: list[int]) -> Tensor: return type(like)(values, dtype=dtypes.uint64, device=like.device)
    self.places = type(like)(places, dtype=dtypes.int32, device=like.device)
    self.left = words([rotations[p] for p in places]).reshape(25, 1)
    self.right = words([64 - rotations[p] for p in places]).reshape(25, 1)
    self.constants = [words([c]) for c in _round_constants()]

  def all(self, state: Tensor) -> Tensor:
    """Apply the permutation to states: (5, 5, messages), rows first."""
    for constant in self.constants: state = self.once(state, constant)
    return state

  def once(self, state: Tensor, constant: Tensor) -> Tensor:
    """Apply one round: theta, rho and pi; then chi and iota."""
    column = state[0] ^ state[1] ^ state[2] ^ state[3] ^ state[4]
    after = column.roll(-1, 0)
    theta = state ^ (column.roll(1, 0) ^ (after << 1 | after >> 63))
    moved = theta.flatten(0, 1)[self.places]
    rotated = (moved << self.left | moved >> self.right).reshape(state.shape).contiguous()
    chi = rotated ^ (~rotated.roll(-1, 1) & rotated.roll(-2, 1))
    first = constant.reshape(1, 1, 1).pad(((0, 4), (0, 4), (0, 0)))
    return (chi ^ first).contiguous()
