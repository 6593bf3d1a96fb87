"""Run the command line with `python -m opwright`."""

from opwright.cli.main import main

if __name__ == "__main__":
    main()
