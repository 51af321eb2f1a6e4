"""`python -m goldstein.cli`, the same as `goldstein`."""

from goldstein.cli import main

if __name__ == "__main__":
    main()
