"""A dashboard of training in the terminal, drawn by a process of its own."""

from burn.train.dashboard.logger import Dashboard as Dashboard
