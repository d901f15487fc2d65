"""`python3 -m tinyhw.llm`."""
import sys

from tinyhw.llm.cli import main

if __name__ == "__main__": sys.exit(main(sys.argv[1:]))
