"""`python -m gputop`."""

from gputop.cli import main

main()
