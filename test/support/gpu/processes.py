"""Users of one virtual card: processes of one computer, each with a device of its own, in one interpreter."""
from __future__ import annotations
from collections.abc import Callable
import os
from typing import Any

import pytest

from tinyhw.drivers import amd, nvidia
from tinyhw.drivers.amd import kfd
from tinyhw.drivers.gpu.device import GpuDevice
from tinyhw.drivers.linux import files
from tinyhw.drivers.nvidia import rm

class User:
  """A process, and the device that it opens. box: the computer as this process sees it."""
  def __init__(self, box: Any):
    self.box = box
    with pytest.MonkeyPatch.context() as patch:
      patch.setattr(files, "COMPUTER", box)
      driver = nvidia if box.name.startswith("sm_") else amd
      self.device: GpuDevice = driver.open(0, lambda name: None)  # type: ignore[arg-type,assignment]
    self.killed = False

  def kill(self) -> None:
    """The process ends where it is.

    What its driver's objects have in this interpreter goes too, as it would with a process.
    """
    self.killed = True
    self.box.kill()
    self.bury()

  def bury(self) -> None:
    """Give back what a process that was killed has in this interpreter."""
    device: Any = self.device
    if isinstance(device, amd.AMDDevice):
      for memory in device.memories: memory.abandon()
      if device.kfd.event_page is not None: device.kfd.event_page.abandon()
      del kfd._connections[os.getpid(), id(self.box)]
    else:
      connection = device.card.connection
      del rm._connections[os.getpid(), id(self.box)]
      if connection.addresses is not None: connection.addresses.close()

  def close(self) -> None:
    """The process ends in order. Nothing may be left of it."""
    if self.killed: return
    self.device.close()
    for forget in (kfd.forget, rm.forget): forget(self.box)
    self.box.kill()  # only the end of a process gives back the page of events (AMD)
    self.killed = True
    assert self.box.census() == {}, self.box.census()

Users = Callable[..., list[User]]

def sharing(first: Callable[[], Any], count: int) -> list[User]:
  """So many users of one computer, which is the first one's."""
  users = [User(first())]
  users += [User(users[0].box.process()) for _ in range(count - 1)]
  return users

def end(users: list[User]) -> None:
  """All end; then the computer has its memory back, and nothing moves."""
  for user in users: user.close()
  for user in users: assert not user.box.physical.allocated and not user.box.scheduler.actors and not user.box.processes
