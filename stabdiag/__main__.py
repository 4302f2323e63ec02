"""`python -m stabdiag`."""

from stabdiag.cli.main import run

if __name__ == "__main__":
    run()
