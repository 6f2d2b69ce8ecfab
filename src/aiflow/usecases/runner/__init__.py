"""The runner: claims tasks and executes them."""
