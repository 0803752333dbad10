"""`python -m specchk` runs `specchk`."""

from specchk.cli.main import main

main()
