"""One outside thing per module: each speaks a port's language inward and the world's outward."""
