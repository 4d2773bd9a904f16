"""What all tests can ask for."""

pytest_plugins = ["tests.hbase_server"]
