"""`python -m replog` is `replog`."""

from replog.cli import main

main()
