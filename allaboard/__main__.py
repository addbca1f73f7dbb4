"""`python -m allaboard`."""

from allaboard.cli import main

main()
