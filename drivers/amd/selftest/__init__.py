from tinyhw.drivers.amd.selftest.steps import begin as begin
