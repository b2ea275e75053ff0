"""Run studies of Slicewise, and read their results.

The module starts the command ``slicewise`` of the same package and reads the folders that it writes. It computes nothing itself.
"""

from ._program import SlicewiseError, command, find_program
from ._results import Figure, Results, Verdict
from ._studies import analyse, compare, distribute, run, sweep

__all__ = [
    "Figure",
    "Results",
    "SlicewiseError",
    "Verdict",
    "analyse",
    "command",
    "compare",
    "distribute",
    "find_program",
    "run",
    "sweep",
]
