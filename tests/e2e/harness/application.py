"""A service that works in the gateways' own database: each request runs what the
test says, in transactions of the application's own, with no more rights than
to call the SQL functions and to write its one table."""
import re
import subprocess

from .behave import Behaviour
from .gateway import Gateway, merge
from .provider import Provider

PREPARE = """
CREATE TABLE public.payment (operation text, phase text);
DO $$ BEGIN
    IF NOT EXISTS (SELECT 1 FROM pg_roles WHERE rolname = 'shop') THEN
        CREATE ROLE shop IN ROLE hapax_application;
    END IF;
END $$;
GRANT INSERT, SELECT ON public.payment TO shop;
"""


def answer(status, body=b"by HTTP"):
    """An HTTP answer's bytes."""
    return b"HTTP/1.1 %d Because\r\nContent-Length: %d\r\n\r\n%s" % (status, len(body), body)


class Service(Provider):
    """`work(request)` gives the bytes to answer with, or None: it dies first."""

    def __init__(self, ledger):
        self.work = lambda request: answer(200)
        super().__init__(ledger)

    def serve_one(self, wire):
        request = self.read_head(wire)
        self.read_body(wire, request)
        with self.lock:
            self.requests.append(request)
        given = self.work(request)
        if given is None:
            return Behaviour.reset(wire)
        wire.send(given)
        return True


class Shop:
    """The service, its database, and a gateway before it on the same one."""

    def __init__(self, folder, cluster, config=None):
        self.cluster = cluster
        self.database = cluster.database()
        self.service = Service(folder / "ledger")
        self.gateway = Gateway(folder, self.service.url,
                               merge({"store": cluster.url(self.database), "sweep": {"every": "100ms"}},
                                     config or {}))
        self.gateway.start()
        self.sql(PREPARE)

    def sql(self, text):
        return self.cluster.sql(text, self.database)

    def transaction(self, text):
        """As the application, all or nothing: None, or the SQLSTATE it ended with."""
        done = subprocess.run([f"{self.cluster.bin}/psql", "-X", "-q", "-v", "VERBOSITY=verbose", "-h",
                               str(self.cluster.folder), "-U", "hapax", "-d", self.database,
                               "-c", f"SET ROLE shop; {text}"],
                              capture_output=True, text=True, check=False)
        if done.returncode == 0:
            return None
        return re.search(r"ERROR:\s+(\w{5}):", done.stderr)[1]

    def pay(self, request, phase="paid", status=201):
        """The business row and the answer, in one transaction."""
        return self.transaction(f"{self.row(request, phase)}; {self.complete(request, status)}")

    @staticmethod
    def row(request, phase="paid"):
        return f"INSERT INTO public.payment VALUES ('{request['Hapax-Operation']}', '{phase}')"

    @staticmethod
    def complete(request, status=201):
        return (f"SELECT hapax.complete('{request['Hapax-Lease']}', {status}, "
                f"'Content-Type: text/plain', 'paid by {request['Hapax-Attempt']}')")

    def rows(self):
        return self.sql("SELECT phase FROM public.payment ORDER BY phase")

    def state(self):
        names = "(ARRAY['in_progress', 'failed_retryable', 'completed', 'unknown'])"
        return self.sql(f"SELECT {names}[state] FROM hapax.operation")

    def session(self):
        """A transaction that stays open, as the application: lines in, lines out."""
        session = self.cluster.application(self.database)
        session.stdin.write("SET ROLE shop;\nBEGIN;\n")
        return session

    def close(self):
        try:
            self.gateway.stop()
        finally:
            self.gateway.kill()
            self.service.close()
