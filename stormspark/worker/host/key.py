"""The key that only the processes of one topology know. It consists of a secret and, if TCP is encrypted, a certificate.

With the secret, each side of a connection proves that it belongs to the topology. TCP is encrypted with the certificate and its
private key (TLS 1.3). A certificate is made for one generation of one topology, and each side trusts no other certificate.
There is no certificate authority, and host names do not matter. The secret and the certificate reach the workers in the same
way as Spark's tasks: over channels that Spark encrypts if it is configured to do so.
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
    """The key of one topology: its secret, and its ``certificate`` with the private key, in PEM.

    If ``certificate`` is empty, TCP is not encrypted. The repr shows neither secret nor certificate:

    >>> Key.new()
    Key()
    """

    secret: bytes = field(repr=False)
    certificate: bytes = field(default=b"", repr=False)

    @classmethod
    def new(cls, certificate: bytes = b"") -> Key:
        """Make a key with a new secret."""
        return cls(secrets.token_bytes(32), certificate)

    def tls(self, *, listens: bool) -> ssl.SSLContext:
        """Return the TLS settings for the side that listens, or for the side that dials."""
        return _context(self.certificate, listens)


@lru_cache(maxsize=8)
def _context(certificate: bytes, listens: bool) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER if listens else ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.check_hostname = False
    context.verify_mode = ssl.CERT_REQUIRED  # on both sides
    # This certificate is the only one that is trusted. `load_cert_chain` reads only files, so the certificate is written to a
    # file that no other user can open.
    context.load_verify_locations(cadata=certificate[: certificate.index(b"-----BEGIN PRIVATE")].decode())
    with tempfile.NamedTemporaryFile(prefix="stormspark-") as file:
        file.write(certificate)
        file.flush()
        context.load_cert_chain(file.name)
    if listens:
        context.num_tickets = 0  # tickets resume sessions, which no dialler does
    return context
