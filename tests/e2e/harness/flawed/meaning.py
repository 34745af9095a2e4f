"""Which key a request has, and what the request means: pure functions."""
import decimal
import hashlib
import json
import re

BARE = re.compile(r"[\x21\x23-\x2b\x2d-\x7e]+")
QUOTED = re.compile(r'"((?:[\x20\x21\x23-\x5b\x5d-\x7e]|\\["\\])*)"')
OPAQUE = re.compile(r"[\x20-\x7e]*")
KEY_MAX = 255


class BadKey(Exception):
    """There is a key line, and it holds no key."""


def key_text(value):
    """The key in one field value: an RFC 9651 String, or bare."""
    quoted = QUOTED.fullmatch(value)
    if quoted:
        return re.sub(r"\\(.)", r"\1", quoted[1])
    if value and not BARE.fullmatch(value):
        raise BadKey("the key is neither a string nor bare")
    return value


def opaque_text(value):
    """Stripe's keys are whatever stands there, quotes included."""
    if not OPAQUE.fullmatch(value):
        raise BadKey("the key is neither printable nor ASCII")
    return value


def key(values, text_of=key_text):
    """The key of these field values; None where there is none."""
    if not values:
        return None
    if len(values) > 1:
        raise BadKey("there is more than one key")
    text = text_of(values[0])
    if not 1 <= len(text) <= KEY_MAX:
        raise BadKey(f"the key has {len(text)} bytes, not 1 to {KEY_MAX}")
    return text


def exact(text):
    """A number by its value, to the last digit."""
    sign, digits, exponent = decimal.Decimal(text).as_tuple()
    digits = "".join(map(str, digits)).lstrip("0")
    kept = digits.rstrip("0")
    return f"#{sign if kept else 0}:{kept}e{exponent + len(digits) - len(kept) if kept else 0}"


def members(pairs):
    if len({name for name, _ in pairs}) != len(pairs):
        raise ValueError("a member twice")
    return dict(pairs)


def canonical(body, number=exact, is_sorted=True):
    """JSON without what does not matter; anything else as it is."""
    try:
        value = json.loads(body, parse_int=number, parse_float=number, object_pairs_hook=members)
        return json.dumps(value, sort_keys=is_sorted, separators=(",", ":")).encode()
    except (ValueError, RecursionError, decimal.DecimalException):
        return body


def digest(parts):
    """One hash of all parts, each with its length, so that none runs into the next."""
    whole = hashlib.sha256()
    for part in parts:
        data = part if isinstance(part, bytes) else str(part).encode()
        whole.update(b"%d:" % len(data) + data)
    return whole.hexdigest()
