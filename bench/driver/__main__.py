"""python3 -m driver [quick | unknowns | attack | fill | report FILE.json...], from the folder bench."""
import signal
import sys

from . import attack, bench, fill, merge, quick, unknowns
from .catalogue import LOADS, SYSTEMS
from .loads import DEFAULT
from .settings import Mistake, read


def stop(number, _):
    """As Ctrl-C does: everything that was started is ended on the way out."""
    raise KeyboardInterrupt(number)


def main():
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, stop)
    try:
        if sys.argv[1:] == ["quick"]:
            return quick.main()
        if sys.argv[1:] == ["unknowns"]:
            return unknowns.main()
        if sys.argv[1:] == ["attack"]:
            return attack.main()
        if sys.argv[1:] == ["fill"]:
            return fill.main(read(list(LOADS), list(SYSTEMS), DEFAULT), SYSTEMS)
        if sys.argv[1:2] == ["report"]:
            return merge.main(sys.argv[2:])
        return bench.main(read(list(LOADS), list(SYSTEMS), DEFAULT))
    except Mistake as mistake:
        print(f"bench: {mistake}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("bench: stopped", file=sys.stderr)
        return 130


sys.exit(main())
