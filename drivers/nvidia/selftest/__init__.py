from tinyhw.drivers.nvidia.selftest.steps import begin as begin
