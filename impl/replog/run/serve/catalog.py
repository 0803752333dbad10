"""The controller's metadata in a file, replaced whole and durably before anybody is told of a change.

    replog-metadata.json    {"format": 1, "cluster_id": "...", "starts": 3, "record": {...}}

There is one controller, so a decision is final when it is on its disk; a quorum has a log instead
(`core.quorum`), of which the file has the last record.  `starts` counts the starts of the controller.

Not here: the meaning of the metadata (`core.controller`).
"""

from __future__ import annotations

import base64
import json
import uuid
from dataclasses import asdict, dataclass
from typing import Any

from replog.core.types import BrokerImage, BrokerState, MetadataImage, MetadataRecord, PartitionImage
from replog.store.files.errors import CorruptFileError, ForeignVersionError
from replog.store.files.fs import Fs, read_file, replace_file

METADATA_FILE = "replog-metadata.json"
FORMAT = 1
EMPTY = MetadataRecord(0, MetadataImage(0, {}, {}), {})


@dataclass(slots=True)
class Catalog:
    """The content of the file; `save` writes it."""

    fs: Fs
    directory: str
    cluster_id: str
    starts: int = 0
    record: MetadataRecord = EMPTY

    def save(self) -> None:
        """Replace the file, durably; raises `OSError`."""
        content = {
            "format": FORMAT,
            "cluster_id": self.cluster_id,
            "starts": self.starts,
            "record": _encoded(self.record),
        }
        replace_file(self.fs, self.directory, METADATA_FILE, json.dumps(content).encode())


def load(fs: Fs, directory: str) -> Catalog | None:
    """Read the file, None if there is none.

    Raises `ForeignVersionError` for another format, `CorruptFileError` for what is none.
    """
    path = f"{directory}/{METADATA_FILE}"
    if not fs.exists(path):
        return None
    try:
        content = json.loads(read_file(fs, path))
        if content["format"] != FORMAT:
            raise ForeignVersionError(f"{path}: format {content['format']} is not supported (only {FORMAT})")
        record = _decoded(content["record"])
        return Catalog(fs, directory, str(content["cluster_id"]), int(content["starts"]), record)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise CorruptFileError(f"{path} is damaged: {error}") from error


def new_catalog(fs: Fs, directory: str) -> Catalog:
    """Return the catalog of a new cluster, which has an id of its own."""
    return Catalog(fs, directory, base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("="))


def image_fields(image: MetadataImage) -> dict[str, Any]:
    """Return metadata as values of JSON."""
    return {
        "version": image.version,
        "brokers": {str(b): [known.broker_epoch, known.state.value] for b, known in image.brokers.items()},
        "partitions": {name: asdict(partition) for name, partition in image.partitions.items()},
    }


def image_of(fields: Any) -> MetadataImage:
    """Return the metadata with these values; raises `ValueError`, `TypeError`, `KeyError` for others."""
    return MetadataImage(
        int(fields["version"]),
        {name: _partition(each) for name, each in fields["partitions"].items()},
        {int(b): BrokerImage(known[0], BrokerState(known[1])) for b, known in fields["brokers"].items()},
    )


def _encoded(record: MetadataRecord) -> dict[str, Any]:
    incarnations = {str(broker): number for broker, number in record.incarnations.items()}
    return {"term": record.term, "incarnations": incarnations, "image": image_fields(record.image)}


def _decoded(content: dict[str, Any]) -> MetadataRecord:
    incarnations = {int(broker): int(number) for broker, number in content["incarnations"].items()}
    return MetadataRecord(int(content["term"]), image_of(content["image"]), incarnations)


def _partition(fields: dict[str, Any]) -> PartitionImage:
    values: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in fields.items()}
    return PartitionImage(**values)
