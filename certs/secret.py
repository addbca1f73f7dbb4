"""Our keys as the data of a Kubernetes Secret. Pure: the object as a dict in and out."""

from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from datetime import datetime
from typing import Any, Final

from certs import issue
from certs.issue import Pair, UnusableError
from certs.rotation import Keys

Json = dict[str, Any]

# The type can't be changed later, so a Secret of this type was made for us.
TYPE: Final = "allaboard.dev/certificates"

_CA: Final = "ca"
_SERVING: Final = "tls"
_SUCCESSOR: Final = "successor"
_RETIRED: Final = "retired.crt"
_PUBLISHED: Final = "published"


class ForeignSecretError(Exception):
    """The Secret isn't one that we may write to; the text says what to do."""


def decode(secret: Json) -> Keys | None:
    """The keys in the Secret, None where there are none or they are damaged. Raises ForeignSecretError."""
    meta = secret["metadata"]
    if secret.get("type") != TYPE:
        raise ForeignSecretError(
            f"secret {meta.get('namespace')}/{meta['name']}: type {secret.get('type')!r} is not ours "
            f"(allowed: {TYPE}); delete it and apply the manifests again, or serve somebody else's "
            "certificate by --cert-dir"
        )
    try:
        return _keys(
            {name: b64decode(text, validate=True) for name, text in (secret.get("data") or {}).items()}
        )
    except (UnusableError, Base64Error, ValueError, KeyError, TypeError):
        return None


def encode(secret: Json, keys: Keys) -> Json:
    """The Secret with these keys in it. Storing it fails where another was quicker: its version stays."""
    data = {
        **_pair(_CA, keys.ca),
        **_pair(_SERVING, keys.serving),
        **(_pair(_SUCCESSOR, keys.successor) if keys.successor else {}),
        **({_PUBLISHED: keys.published.isoformat().encode()} if keys.published else {}),
        **({_RETIRED: b"".join(keys.retired)} if keys.retired else {}),
    }
    return {**secret, "data": {name: b64encode(value).decode() for name, value in data.items()}}


def _keys(data: dict[str, bytes]) -> Keys:
    published = data.get(_PUBLISHED)
    return Keys(
        ca=_read(data, _CA),
        serving=_read(data, _SERVING),
        successor=_read(data, _SUCCESSOR) if f"{_SUCCESSOR}.crt" in data else None,
        published=_time(published.decode()) if published else None,
        retired=issue.split(data.get(_RETIRED, b"")),
    )


def _read(data: dict[str, bytes], name: str) -> Pair:
    pair = Pair(data[f"{name}.crt"], data[f"{name}.key"])
    issue.load(pair)
    return pair


def _pair(name: str, pair: Pair) -> dict[str, bytes]:
    return {f"{name}.crt": pair.certificate, f"{name}.key": pair.key}


def _time(text: str) -> datetime:
    time = datetime.fromisoformat(text)
    if time.tzinfo is None:
        raise ValueError(f"{text} has no time zone")
    return time
