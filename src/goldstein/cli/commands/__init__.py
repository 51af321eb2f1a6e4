"""One file per command. A file `name.py` with a function `name` becomes `goldstein name`."""
