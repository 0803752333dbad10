"""Messages by schemas: fixed and flexible versions, tagged fields, defaults, nullable fields and structs."""

from __future__ import annotations

import json
from zipfile import ZipFile

import pytest
from conformance.apache_kafka.schemas import Malformed, Schemas, Versions, read_uvarint, uvarint

THING = {
    "apiKey": 9, "type": "request", "name": "ThingRequest", "validVersions": "0-3", "flexibleVersions": "2+",
    "commonStructs": [{"name": "Shared", "versions": "0+", "fields": [
        {"name": "X", "type": "int8", "versions": "0+"}]}],
    "fields": [
        {"name": "Name", "type": "string", "versions": "0+", "nullableVersions": "1+", "default": "null"},
        {"name": "Ids", "type": "[]int32", "versions": "0+"},
        {"name": "Late", "type": "int64", "versions": "3+", "default": "-1"},
        {"name": "Limit", "type": "int32", "versions": "0+", "default": "0x7fffffff"},
        {"name": "Parts", "type": "[]Part", "versions": "0+", "fields": [
            {"name": "Data", "type": "bytes", "versions": "0+", "nullableVersions": "0+"},
            {"name": "One", "type": "Shared", "versions": "1+", "nullableVersions": "1+",
             "default": "null"}]},
        {"name": "Id", "type": "uuid", "versions": "1+"},
        {"name": "Extra", "type": "string", "versions": "2+", "taggedVersions": "2+",
             "tag": "4"},  # as text, which 3.9.1 has too
        {"name": "Flag", "type": "bool", "versions": "0+", "default": "true"},
    ],
}  # fmt: skip


@pytest.fixture
def thing(tmp_path):
    path = tmp_path / "some.jar"
    with ZipFile(path, "w") as jar:
        text = "// a comment\n" + json.dumps(THING, indent=1) + "\n}\n"  # 2.8.2 has such a file
        jar.writestr("common/message/ThingRequest.json", text)
    return Schemas(path).requests[9]


@pytest.mark.parametrize("version", range(4))
def test_what_is_encoded_is_decoded(thing, version):
    """In each version: its own fields as they were, with the defaults of those left out."""
    fields = {"Name": "n", "Ids": [1, -2], "Parts": [{"Data": None}, {"Data": b"xyz"}], "Flag": False}
    if version >= 1:
        fields["Parts"][1]["One"] = {"X": -3}
    if version >= 2:
        fields["Extra"] = "tagged"
    data = thing.encode(fields, version)
    decoded, end = thing.decode(b"??" + data, version, 2)
    assert end == 2 + len(data)
    assert ("Late" in decoded, "Id" in decoded) == (version >= 3, version >= 1)
    assert decoded["Limit"] == 2**31 - 1
    assert {name: decoded[name] for name in ("Name", "Ids", "Flag")} == {
        "Name": "n",
        "Ids": [1, -2],
        "Flag": False,
    }
    assert [part["Data"] for part in decoded["Parts"]] == [None, b"xyz"]
    assert version < 1 or [part["One"] for part in decoded["Parts"]] == [None, {"X": -3}]
    assert version < 2 or decoded["Extra"] == "tagged"


def test_a_tag_of_a_later_release_is_skipped(thing):
    """Kafka adds tagged fields without a new version."""
    data = thing.encode({"Name": "n"}, 2)
    assert data.endswith(b"\x01\x00")  # the flag, and no tags
    decoded, _ = thing.decode(data[:-1] + b"\x02\x04\x02\x02x\x09\x03abc", 2)
    assert (decoded["Name"], decoded["Extra"]) == ("n", "x")


def test_what_ends_too_early_is_malformed(thing):
    data = thing.encode({"Name": "name", "Ids": [1]}, 2)
    for size in range(len(data)):
        with pytest.raises(Malformed):
            thing.decode(data[:size], 2)


def test_a_misspelt_field_is_refused(thing):
    with pytest.raises(Malformed, match="Nmae"):
        thing.encode({"Nmae": "n"}, 1)


@pytest.mark.parametrize("value", [0, 1, 127, 128, 300, 2**32])
def test_varints(value):
    assert read_uvarint(b"?" + uvarint(value), 1) == (value, 1 + len(uvarint(value)))


def test_versions():
    assert [v for v in range(9) if v in Versions.parse("3+")] == [3, 4, 5, 6, 7, 8]
    assert [v for v in range(9) if v in Versions.parse("2-4")] == [2, 3, 4]
    assert [v for v in range(9) if v in Versions.parse("5")] == [5]
    assert not [v for v in range(9) if v in Versions.parse("none")]
