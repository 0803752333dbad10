"""`python -m specchk` is `specchk`."""

from specchk.cli.main import main

main()
