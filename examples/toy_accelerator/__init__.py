"""An invented accelerator. It shows how little code a new one needs. docs/hardware/new-accelerator.md builds it step by
step.

Importing this module registers it.
"""
from tinyhw.device import Device
from tinyhw.isa import register

register("toy", "examples.toy_accelerator.target")
Device.register("TOY", "examples.toy_accelerator.driver")
