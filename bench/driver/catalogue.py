"""All systems and all loads by name, in the order they are measured: what is
compared most stands side by side."""
from .loads import LOADS
from .proxies import Bare, HapaxDefault, HapaxPostgres, HapaxSqlite, Nginx, with_program
from .services import Dbos, NodeIdempotency, NodePostgres, Restate

SYSTEMS = {system.name: system for system in
           (Bare, Nginx, HapaxSqlite, HapaxDefault, HapaxPostgres, NodePostgres, NodeIdempotency, Restate, Dbos)}

__all__ = ["LOADS", "SYSTEMS", "chosen", "takes_part"]


def chosen(settings):
    """The systems of a run by name. With AGAINST, each hapax is followed by the same
    one with that program."""
    found = {}
    for name in settings.systems:
        found[name] = SYSTEMS[name]
        if settings.against and SYSTEMS[name].kind == "hapax":
            twin = with_program(SYSTEMS[name], settings.against)
            found[twin.name] = twin
    return found


def takes_part(system, load, settings):
    """Whether a load means something to a system."""
    if load.tls:
        return system.passes and system.name != "upstream"
    if load.work == "get" or load.work == "idle":
        return system.passes
    if load.work == "same":
        return system.refuses
    if load.asynchronous:
        return system.asynchronous is not None
    if load.refused or load.status:
        return system.passes and system.name != "upstream"
    if load.phase == "closing":
        return "sqlite" in system.name
    if load.phase:
        return system.kind == "hapax"
    if load.grows:
        return (system.original or system.name) in settings.growth and system.kind == "hapax"
    if load.name == "soak":
        return system.kind == "hapax"
    return True
