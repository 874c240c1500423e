"""`python -m vefl_sim`."""

from vefl_sim.cli.main import main

if __name__ == "__main__":
    main()
