"""An application with libhapax in a process of its own that begins an operation and never
ends it, for tests that kill or stop it: prints the reference, and waits."""
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from harness.library import EXECUTE, Library  # noqa: E402


def main():
    url, *names, lease_ms = json.loads(sys.argv[1])
    operation = Library(url).begin(*names, lease_ms)
    assert operation.verdict == EXECUTE, operation.verdict
    print(operation.reference.decode(), flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
