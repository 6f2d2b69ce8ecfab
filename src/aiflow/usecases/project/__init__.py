"""The project itself: init, demo, agents."""
