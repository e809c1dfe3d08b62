"""What the processes of one topology know and nobody else does: a secret and, where TCP is encrypted, a certificate.

The secret proves who may speak, on any connection. The certificate, with its private key, encrypts TCP (TLS 1.3). It is made
for one generation of one topology, and is the only one that either side believes: there is no authority, and host names do
not matter. Both reach the workers as Spark's tasks do, over channels that Spark encrypts when it is told to.
"""

from __future__ import annotations

import secrets
import ssl
import tempfile
from dataclasses import dataclass, field
from functools import lru_cache

__all__ = ["Key"]


@dataclass(frozen=True)
class Key:
    """``certificate`` is one with its private key in PEM, or empty: then TCP is not encrypted.

    Neither is shown:

    >>> Key.new()
    Key()
    """

    secret: bytes = field(repr=False)
    certificate: bytes = field(default=b"", repr=False)

    @classmethod
    def new(cls, certificate: bytes = b"") -> Key:
        """A key with a new secret."""
        return cls(secrets.token_bytes(32), certificate)

    def tls(self, *, listens: bool) -> ssl.SSLContext:
        """How the side that listens, or the one that dials, speaks TLS."""
        return _context(self.certificate, listens)


@lru_cache(maxsize=8)
def _context(certificate: bytes, listens: bool) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER if listens else ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.check_hostname = False
    context.verify_mode = ssl.CERT_REQUIRED  # on both sides
    # The only one that is believed. `load_cert_chain` reads files alone: this one nobody else can open.
    context.load_verify_locations(cadata=certificate[: certificate.index(b"-----BEGIN PRIVATE")].decode())
    with tempfile.NamedTemporaryFile(prefix="stormspark-") as file:
        file.write(certificate)
        file.flush()
        context.load_cert_chain(file.name)
    if listens:
        context.num_tickets = 0  # nobody resumes a session
    return context
