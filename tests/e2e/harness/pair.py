"""A primary and its synchronous standby, each on a port of its own, and what an
operator does when the primary is lost."""
import time

from .gateway import free_port
from .postgres import START_SECONDS, Cluster

NAME = "standby"


class Standby(Cluster):
    """A copy of another cluster that follows it, and without which the other
    acknowledges no commit from now on."""

    def __init__(self, primary, port):
        self.primary = primary
        super().__init__(port=port)
        self.await_streaming()

    def make(self):
        """The copy has no synchronous standby of its own when it is promoted."""
        self.primary.sql("ALTER SYSTEM RESET synchronous_standby_names")
        self.run("pg_basebackup", *self.primary.where, "-U", "hapax", "-d",
                 f"application_name={NAME}", "-D", self.data, "-R", "-C", "-S", NAME,
                 "--checkpoint=fast", "--no-sync", "--no-manifest")

    def await_streaming(self):
        self.primary.sql(f"ALTER SYSTEM SET synchronous_standby_names = '{NAME}'")
        self.primary.sql("SELECT pg_reload_conf()")
        end = time.monotonic() + START_SECONDS
        while self.primary.sql("SELECT sync_state FROM pg_stat_replication") != ["sync"]:
            assert self.process.poll() is None and time.monotonic() < end, self.log()
            time.sleep(0.02)

    def promote(self):
        self.run("pg_ctl", "promote", "-w", "-D", self.data)


class Pair:
    """Both, under one address that names both."""

    def __init__(self):
        self.primary = Cluster(port=free_port())
        self.ports = [self.primary.port, free_port()]
        self.standby = Standby(self.primary, self.ports[1])

    def database(self):
        return self.primary.database()

    def sql(self, text, database="postgres"):
        return self.primary.sql(text, database)

    def url(self, database):
        hosts = ",".join(f"127.0.0.1:{port}" for port in self.ports)
        return f"postgres://hapax@{hosts}/{database}?target_session_attrs=read-write"

    def promote(self):
        """The primary is lost: the standby takes its place, alone."""
        self.primary.close()
        self.standby.promote()
        self.primary, self.standby = self.standby, None

    def add_standby(self):
        """A new one, where the lost primary was."""
        port = next(p for p in self.ports if p != self.primary.port)
        self.standby = Standby(self.primary, port)

    def close(self):
        for one in (self.standby, self.primary):
            if one is not None:
                one.close()
