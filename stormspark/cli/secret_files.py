"""Tells by its name whether a file is one that people keep to themselves, such as a key or a password."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

__all__ = ["is_secret", "secrets_among"]

_KINDS = "pem|key|p12|pfx|p8|jks|jceks|bcfks|keystore|keytab|kdbx|ppk|ovpn|tfvars|env"
#: Keys of SSH. Those that end with ``.pub`` are for everybody.
_SSH = r"id_(?:rsa|dsa|ecdsa|ed25519)(?:[^a-z0-9].*)?(?<!\.pub)"
_WORDS = r"secrets?|credentials?|passwords?|passwd|kubeconfig|service[-_]?account|netrc|pgpass|vault[-_]pass"
_FILE = re.compile(rf".*\.(?:{_KINDS})|{_SSH}|(?:.*[^a-z])?(?:client)?(?:{_WORDS})(?:[^a-z].*)?")
_FOLDER = re.compile(r"(?:.*[^a-z])?(?:secrets?|credentials?|private[-_]keys?)")
#: Hidden files and folders of tools. In a folder that is shipped, their names begin with a dot as well.
_OF_TOOLS = re.compile(r"\.(?:env(?:\..*)?|aws|ssh|kube|gnupg|azure|pypirc)")


def is_secret(name: str) -> bool:
    """Whether a file or a hidden folder of this name is likely to be a secret. Modules are not: their names say what they do.

    >>> [is_secret(one) for one in ("client.pem", "client_secret_1.json", "id_rsa.old", ".env", ".aws", "kubeconfig.yaml")]
    [True, True, True, True, True, True]
    >>> [is_secret(one) for one in ("id_rsa.pub", "secrets.py", "secretary.csv", "keys.txt", "environment.yml", ".gitignore")]
    [False, False, False, False, False, False]
    """
    name = name.lower()
    if name.endswith(".py"):
        return False
    return _FILE.fullmatch(name) is not None or _OF_TOOLS.fullmatch(name) is not None


def secrets_among(files: Iterable[Path]) -> list[str]:
    """Return those files of a project that are likely to be secrets. Of a folder for secrets, return its name.

    >>> secrets_among([Path("flow.py"), Path("data/a.key"), Path("secrets/db"), Path("secrets/mail"), Path("secrets/a.py")])
    ['data/a.key', 'secrets/']
    """
    found: dict[str, None] = {}
    for file in files:
        folders = [one for one in file.parents if _FOLDER.fullmatch(one.name.lower())]
        if folders and file.suffix != ".py":
            found[f"{folders[-1]}/"] = None
        elif is_secret(file.name):
            found[str(file)] = None
    return list(found)
