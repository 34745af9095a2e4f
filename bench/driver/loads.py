"""The loads: what is sent, over how many connections, and what is expected."""
import dataclasses

BODY = 100
LARGE_BODY = 256 * 1024
RETENTION_SECONDS = 86400
# Of what a reaper is to delete: it has passed when the store was filled.
REAPED_SECONDS = 5
TOMBSTONE_SECONDS = 30 * 86400


@dataclasses.dataclass(frozen=True)
class Load:
    name: str
    title: str
    work: str                    # as bench-load has it
    path: str = "/payments"
    body: int = BODY
    connections: tuple = ()      # (): those of the settings
    asynchronous: bool = False
    grows: bool = False          # runs once for each number of stored operations
    stored: int = 0
    retention: int = RETENTION_SECONDS
    phase: str = ""              # what goes on beside the load: closing, reaping; measured with it and without
    kept: bool = False           # what is reaped leaves tombstones and a history behind
    starts: bool = False         # measures starts, not requests
    refused: bool = False        # nobody listens where the upstream should be
    tls: bool = False            # towards the client: TLS 1.3, one cipher
    status: int = 0              # that is expected; 0: of a first execution
    about: str = ""

    def with_stored(self, stored):
        return dataclasses.replace(self, stored=stored)

    def fine(self, system):
        """The status that counts as success."""
        if self.status:
            return self.status
        if self.work == "same":
            return 409
        if self.work in ("get", "idle"):
            return 201
        return 202 if self.asynchronous else system.status

    def hapax(self, upstream):
        """Lines of its configuration beyond the defaults."""
        if self.asynchronous:
            return ["tenant: {from: header, name: X-Tenant, anonymous: refuse}", "trusted_peers: [127.0.0.1/32]",
                    "routes:", "  - match: POST /payments", "    deliver: async", "    target: service", "targets:",
                    f"  service: {{url: \"{upstream.url}\", honours_keys: 24h, concurrency: 64}}"]
        if self.kept:
            return ["history: {retention: 400d}"]
        if self.path == "/large":
            return ["limits: {bodies: 512MiB}"]
        if self.work == "idle":
            return ["limits: {connections: 11000}"]
        return []


ALL = (
    Load("first", "First execution", "first",
         about="Each request has a new key: it is reserved, executed once, and its answer stored."),
    Load("replay", "Replay", "replay",
         about="Retries of 1,000 keys that were executed before. nginx executes each of them again."),
    Load("pass", "Pass-through", "get", about="GET without a key, through a proxy."),
    Load("pass-tls", "Pass-through over TLS", "get", connections=(64,), tls=True,
         about="GET without a key, through a proxy that speaks TLS 1.3 (TLS_AES_128_GCM_SHA256, an "
               "ECDSA certificate) to its clients; the connections are kept."),
    Load("mixed", "Mixed, 70 % new and 30 % retries", "mixed",
         about="On each connection seven new keys, then the first three of them again."),
    Load("large", "Large bodies", "first", path="/large", body=LARGE_BODY, connections=(1, 64),
         about="As first execution, with 256 KiB of JSON both ways. hapax: `limits.bodies: 512MiB`."),
    Load("storm", "409 storm", "same",
         about="Many clients, one key, while the first request is held by the upstream: everybody else is refused."),
    Load("async", "Async: accept and deliver", "first", connections=(64,), asynchronous=True,
         about="Accepted with 202 once durable, delivered to the same upstream afterwards. "
               "hapax: 64 deliveries at once (`concurrency: 64`)."),
    Load("idle", "Idle connections", "idle",
         about="Each connection was used once and is kept open: what it costs in memory."),
    Load("growth", "Growth: first execution on a full store", "first", connections=(64,), grows=True,
         about="So many completed operations are in the store. On PostgreSQL they expire evenly over the next "
               "24 hours, so that the reaper is at work; on SQLite, where whole generations expire, 24 hours "
               "later (`reaping` measures that)."),
    Load("growth-replay", "Growth: replay on a full store", "replay", connections=(64,), grows=True,
         about="Retries of 1,000 keys that were executed a moment ago, on the same stores."),
    Load("closing", "A generation closes", "first", connections=(64,), phase="closing",
         about="First executions while a generation closes and its filter is made, beside those of an "
               "run before and after."),
    Load("reaping", "Expired operations are deleted", "first", connections=(64,), retention=REAPED_SECONDS,
         phase="reaping",
         about="First executions while two generations that expired are deleted, beside those of the same run "
               "when it is done."),
    Load("reaping-kept", "Expired operations leave tombstones", "first", connections=(64,),
         retention=REAPED_SECONDS, phase="reaping", kept=True,
         about="`reaping-kept`: the same where each leaves a tombstone of 30 days behind, with `history` on."),
    Load("start", "Start and recovery", "first", connections=(64,), grows=True, starts=True,
         about="From the start of the process to the first 200 of /readyz, and to the first first execution: after "
               "an orderly end, after one with nothing of the file in memory, and after kill -9 under load."),
    Load("refused", "Outage: nobody listens", "first", connections=(64,), refused=True, status=502,
         about="Every attempt fails: the connection to the upstream is refused. Each request has a new key."),
    Load("unavailable", "Outage: the upstream answers 503", "first", path="/unavailable", connections=(64,),
         status=503, about="Every attempt fails: the upstream answers 503 at once. Each request has a new key."),
    Load("soak", "Soak", "mixed", connections=(64,), about="The mixed load for long: memory over time."),
)
LOADS = {load.name: load for load in ALL}
# An hour is only spent where it is asked for.
DEFAULT = [name for name in LOADS if name != "soak"]
