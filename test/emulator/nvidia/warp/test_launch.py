"""A launch with defaults for optional parameters."""
from tinyhw.emulator.nvidia.warp.launch import LaunchParameters

def test_what_may_be_left_out() -> None:
  launch = LaunchParameters("k", "sm_90", 0x1000, 16, b"", threads=32, blocks=1)
  assert (launch.shared_bytes, launch.local_bytes, launch.barriers) == (0, 0, 0)
