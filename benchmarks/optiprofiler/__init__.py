"""OptiProfiler, a third party's harness, on our methods and on those that compete with them."""
