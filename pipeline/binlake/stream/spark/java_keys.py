"""Decrypts private keys in the driver's JVM, because Kafka's Java client cannot decrypt keys of present-day tools.

Java 17 names every modern encryption of a PKCS#8 key PBES2 and has no factory of that name; the algorithm parameters
hold the real name. The driver's JVM reads the name from them, and Kafka's client gets the decrypted key.
"""

from __future__ import annotations

import base64
import re
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark import SparkContext

from hudilake.errors import ConfigError

_BODY = re.compile(r"-----BEGIN ENCRYPTED PRIVATE KEY-----(.+?)-----END", re.DOTALL)
_DECRYPT = 2  # javax.crypto.Cipher.DECRYPT_MODE


def unlocked(context: SparkContext, pem: str, password: str) -> str:
    """The decrypted key of an encrypted PKCS#8 text, as PEM. Raises ConfigError if the password does not decrypt it."""
    found = _BODY.search(pem)
    gateway: Any = context._gateway
    try:
        opened = _open(gateway, base64.b64decode(found[1] if found else ""), password)
    except Py4JJavaError as error:
        raise ConfigError(
            f"the private key cannot be opened: {error.java_exception.getClass().getSimpleName()}",
            do_next="correct ssl.key.password in kafka.properties, or the key",
        ) from None
    body = base64.encodebytes(opened).decode()
    return f"-----BEGIN PRIVATE KEY-----\n{body}-----END PRIVATE KEY-----\n"


def _open(gateway: Any, der: bytes, password: str) -> bytes:  # noqa: ANN401 - py4j has no types
    crypto = gateway.jvm.javax.crypto
    info = crypto.EncryptedPrivateKeyInfo(bytearray(der))
    parameters = info.getAlgParameters()
    name = parameters.toString() if info.getAlgName() == "PBES2" else info.getAlgName()
    letters = gateway.new_array(gateway.jvm.char, len(password))
    for i, letter in enumerate(password):
        letters[i] = letter
    key = crypto.SecretKeyFactory.getInstance(name).generateSecret(crypto.spec.PBEKeySpec(letters))
    cipher = crypto.Cipher.getInstance(name)
    cipher.init(_DECRYPT, key, parameters)
    return bytes(info.getKeySpec(cipher).getEncoded())
