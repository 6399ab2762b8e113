"""The object store of the ledger, as each product names it."""

from __future__ import annotations

from dataclasses import dataclass

from embedded.process import HOST

BUCKET, SECRET = "lake", "unused"


@dataclass(frozen=True)
class Store:
    """The bucket ``lake`` behind a port of this machine."""

    port: int

    def uri(self, name: str) -> str:
        """A place in it, for binlake."""
        return f"s3://{BUCKET}/{name}"

    @property
    def options(self) -> dict[str, str]:
        """Options of binlake's storage."""
        return {
            "aws_endpoint": f"http://{HOST}:{self.port}",
            "aws_allow_http": "true",
            "aws_region": "us-east-1",
            "aws_access_key_id": SECRET,
            "aws_secret_access_key": SECRET,
        }

    @property
    def hadoop(self) -> dict[str, str]:
        """Properties of Spark for Hadoop's s3a, with what its manual advises for many small files."""
        return {
            "spark.hadoop.fs.s3a.endpoint": f"http://{HOST}:{self.port}",
            "spark.hadoop.fs.s3a.endpoint.region": "us-east-1",
            "spark.hadoop.fs.s3a.path.style.access": "true",
            "spark.hadoop.fs.s3a.connection.ssl.enabled": "false",
            # The server takes signed uploads in chunks only from users that it knows.
            "spark.hadoop.fs.s3a.aws.credentials.provider": "org.apache.hadoop.fs.s3a.AnonymousAWSCredentialsProvider",
            "spark.hadoop.fs.s3a.directory.marker.retention": "keep",
            "spark.hadoop.fs.s3a.fast.upload.buffer": "bytebuffer",
            "spark.hadoop.fs.s3a.bucket.probe": "0",
        }


@dataclass(frozen=True)
class StorePlace:
    """A table's place for s3a; what of a ``Path`` the peers ask."""

    name: str

    def as_uri(self) -> str:
        """The place as a URI."""
        return f"s3a://{BUCKET}/{self.name}"

    def __str__(self) -> str:
        return self.as_uri()
