"""Rules of ATen operators for layers of neural networks and losses."""
