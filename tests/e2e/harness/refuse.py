"""A system that has no thread left, or gives no random bytes: refuse.c, laid before
the C library of one process."""
import os
import pathlib
import subprocess


def wrap(folder, **what):
    """The words before a command that have the system refuse it `what`, such as
    thread=3: the third one."""
    library = pathlib.Path(folder) / "refuse.so"
    if not library.exists():
        source = pathlib.Path(__file__).with_name("refuse.c")
        subprocess.run([os.environ.get("CC") or "cc", "-shared", "-fPIC", "-o", str(library), str(source), "-ldl"],
                       check=True)
    return ["env", f"LD_PRELOAD={library}", *(f"REFUSE_{name.upper()}={value}" for name, value in what.items())]
