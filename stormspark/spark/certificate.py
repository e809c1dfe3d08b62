"""Decides whether network traffic has to be encrypted, and makes the certificate for it.

If Spark is configured to encrypt the traffic between its processes, stormspark encrypts its own network traffic, too. If
stormspark can't encrypt, it rejects the topology.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

from stormspark.errors import UnsupportedEnvironmentError

__all__ = ["encrypting_key", "new_certificate"]

#: The configuration keys that make Spark encrypt its own traffic: with AES, with TLS, or with SASL as before Spark 2.2.
_KEYS_OF_SPARK = (
    "spark.network.crypto.enabled",
    "spark.ssl.rpc.enabled",
    "spark.ssl.enabled",
    "spark.authenticate.enableSaslEncryption",
)
_OWN_KEY = "stormspark.network.crypto.enabled"


def encrypting_key(spark_conf: Callable[[str], str | None], wanted: bool | None) -> str | None:
    """Return the configuration key that demands encryption, or None.

    ``wanted`` is the value of stormspark's own key; None if the key is not set. Raises `UnsupportedEnvironmentError` if
    ``wanted`` is false although Spark encrypts its traffic.

    >>> encrypting_key({"spark.network.crypto.enabled": "true"}.get, None)
    'spark.network.crypto.enabled'
    """
    of_spark = next((key for key in _KEYS_OF_SPARK if (spark_conf(key) or "").lower() == "true"), None)
    if of_spark is not None and wanted is False:
        msg = f"{_OWN_KEY} is false, but Spark's own traffic is encrypted ({of_spark}): remove one of the two settings"
        raise UnsupportedEnvironmentError(msg)
    return _OWN_KEY if wanted else of_spark


def new_certificate(because_of: str) -> bytes:
    """Make a self-signed certificate with its private key, in PEM. ``because_of`` is the configuration key that demands it.

    Raises `UnsupportedEnvironmentError` if the package that makes certificates is not installed.
    """
    try:
        from cryptography import x509
        from cryptography.hazmat.primitives import hashes, serialization
        from cryptography.hazmat.primitives.asymmetric import ec
    except ImportError as error:
        msg = (
            f"{because_of} demands encryption between hosts, but the package that makes certificates can't be "
            f"imported on the driver ({error}): pip install 'stormspark[tls]'"
        )
        raise UnsupportedEnvironmentError(msg) from error
    private = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "stormspark")])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(private.public_key())
        .serial_number(x509.random_serial_number())
        # The certificate lives as long as the driver. The dates allow for any difference between the hosts' clocks.
        .not_valid_before(datetime(2000, 1, 1, tzinfo=UTC))
        .not_valid_after(datetime(9999, 12, 31, tzinfo=UTC))
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(private, hashes.SHA256())
    )
    return certificate.public_bytes(serialization.Encoding.PEM) + private.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
