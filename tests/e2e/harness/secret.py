"""Values that must never be seen in a log. Each holds one marker, so that one
search over the log finds any of them, whichever test made it."""
import base64
import uuid

MARKER = "s3cr3t"
BASIC = base64.b64encode(b"s3cr3t-user:s3cr3t-word").decode()
ALICE = "Bearer s3cr3t-alice"
BOB = "Bearer s3cr3t-bob"


def new_key():
    """A key that nobody has used, bare and without anything to escape."""
    return f"{MARKER}-{uuid.uuid4()}"


def leaks(lines):
    """The lines that show a key, a credential, a query or a body."""
    return [line for line in lines if MARKER in line or BASIC in line]
