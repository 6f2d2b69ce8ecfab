"""One verb per module: each decides with the domain and performs through the ports."""
