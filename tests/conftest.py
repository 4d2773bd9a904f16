"""What all tests can ask for, and what they have in common."""

from hypothesis import HealthCheck, settings

pytest_plugins = ["tests.hbase_server"]

# How long an example takes depends on what else the machine does.
settings.register_profile("any-speed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any-speed")
