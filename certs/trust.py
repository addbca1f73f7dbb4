"""What API servers are told to trust: the caBundle of each entry of a webhook registration. Pure.

Who patches by these operations must read the registration *before* the keys that he tells of: then a
patch that succeeds never takes back what somebody told in the meantime.
"""

from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from typing import Any

Json = dict[str, Any]


def told(registration: Json) -> bytes:
    """The bundle in every entry, b"" where entries differ or have none."""
    texts = {_text(entry) for entry in registration.get("webhooks") or ()}
    try:
        return b64decode(texts.pop(), validate=True) if len(texts) == 1 else b""
    except Base64Error:
        return b""


def operations(registration: Json, bundle: bytes) -> list[Json]:
    """A JSON patch that tells all entries this bundle; [] where they know.

    It fails if the registration has changed in the meantime.
    """
    text = b64encode(bundle).decode()
    entries = registration.get("webhooks") or ()
    late = [index for index, entry in enumerate(entries) if _text(entry) != text]
    if not late:
        return []
    version = registration["metadata"]["resourceVersion"]
    return [
        {"op": "test", "path": "/metadata/resourceVersion", "value": version},
        *({"op": "add", "path": f"/webhooks/{i}/clientConfig/caBundle", "value": text} for i in late),
    ]


def _text(entry: Json) -> str:
    return str(entry["clientConfig"].get("caBundle") or "")
