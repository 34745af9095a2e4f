"""All systems and all loads by name, in the order they are measured: what is
compared most stands side by side."""
from .loads import LOADS
from .proxies import HapaxDefault, HapaxPostgres, HapaxSqlite, Nginx
from .services import Dbos, NodeIdempotency, NodePostgres, Restate

SYSTEMS = {system.name: system for system in
           (Nginx, HapaxSqlite, HapaxDefault, HapaxPostgres, NodePostgres, NodeIdempotency, Restate, Dbos)}

__all__ = ["LOADS", "SYSTEMS", "takes_part"]


def takes_part(system, load, settings):
    """Whether a load means something to a system."""
    if load.work == "get" or load.work == "idle":
        return system.passes
    if load.work == "same":
        return system.refuses
    if load.asynchronous:
        return system.asynchronous is not None
    if load.grows:
        return system.name in settings.growth and system.kind == "hapax"
    if load.name == "soak":
        return system.kind == "hapax"
    return True
