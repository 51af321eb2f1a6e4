"""Print the page of all problems."""

from goldstein.problems import table

if __name__ == "__main__":
    print(table(), end="")
