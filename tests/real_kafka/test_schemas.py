"""Messages by schemas: fixed and flexible versions, tagged fields, defaults, nullable fields and structs."""

from __future__ import annotations

import json
from zipfile import ZipFile

import pytest
from conformance.apache_kafka.batches import read_uvarint
from conformance.apache_kafka.schemas import Schemas, decode, has_version

from replog.run.serve.codec import MOST_ELEMENTS, MalformedError
from replog.store.segments.records import encode_unsigned

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
def schemas(tmp_path):
    path = tmp_path / "some.jar"
    with ZipFile(path, "w") as jar:
        text = "// a comment\n" + json.dumps(THING, indent=1) + "\n}\n"  # 2.8.2 has such a file
        jar.writestr("common/message/ThingRequest.json", text)
    return Schemas(path)


@pytest.mark.parametrize("version", range(4))
def test_what_is_encoded_is_decoded(schemas, version):
    """In each version: its own fields as they were, with the defaults of those left out."""
    fields = {"Name": "n", "Ids": [1, -2], "Parts": [{"Data": None}, {"Data": b"xyz"}], "Flag": False}
    if version >= 1:
        fields["Parts"][1]["One"] = {"X": -3}
    if version >= 2:
        fields["Extra"] = "tagged"
    data = schemas.encode_request(9, version, fields)
    decoded = decode(schemas.request(9, version), b"??" + data, 2)
    assert ("Late" in decoded, "Id" in decoded) == (version >= 3, version >= 1)
    assert decoded["Limit"] == 2**31 - 1
    assert {name: decoded[name] for name in ("Name", "Ids", "Flag")} == {
        "Name": "n",
        "Ids": (1, -2),
        "Flag": False,
    }
    assert [part["Data"] for part in decoded["Parts"]] == [None, b"xyz"]
    assert version < 1 or [part["One"] for part in decoded["Parts"]] == [None, {"X": -3}]
    assert version < 2 or decoded["Extra"] == "tagged"


def test_a_tag_of_a_later_release_is_skipped(schemas):
    """Kafka adds tagged fields without a new version."""
    data = schemas.encode_request(9, 2, {"Name": "n"})
    assert data.endswith(b"\x01\x00")  # the flag, and no tags
    decoded = decode(schemas.request(9, 2), data[:-1] + b"\x02\x04\x02\x02x\x09\x03abc", 0)
    assert (decoded["Name"], decoded["Extra"]) == ("n", "x")


def test_what_ends_too_early_is_malformed(schemas):
    data = schemas.encode_request(9, 2, {"Name": "name", "Ids": [1]})
    for size in range(len(data)):
        with pytest.raises(MalformedError):
            decode(schemas.request(9, 2), data[:size], 0)


def test_a_message_may_have_more_elements_than_replog_admits(schemas):
    """A large cluster's answer is no attack."""
    data = schemas.encode_request(9, 2, {"Name": "n", "Ids": [7] * (MOST_ELEMENTS + 1)})
    assert len(decode(schemas.request(9, 2), data, 0)["Ids"]) == MOST_ELEMENTS + 1


def test_a_misspelt_field_is_refused(schemas):
    for fields, name in (({"Nmae": "n"}, "Nmae"), ({"Parts": [{"One": {"Y": 1}}]}, "Y")):
        with pytest.raises(LookupError, match=name):
            schemas.encode_request(9, 1, fields)


def test_a_version_that_the_release_does_not_have_is_refused(schemas):
    with pytest.raises(LookupError, match="no version 4"):
        schemas.request(9, 4)


@pytest.mark.parametrize("value", [0, 1, 127, 128, 300, 2**32])
def test_varints(value):
    assert read_uvarint(b"?" + encode_unsigned(value), 1) == (value, 1 + len(encode_unsigned(value)))


@pytest.mark.parametrize(
    ("text", "versions"),
    [("3+", [3, 4, 5, 6, 7, 8]), ("2-4", [2, 3, 4]), ("5", [5]), ("none", []), (None, [])],
)
def test_versions(text, versions):
    assert [version for version in range(9) if has_version(text, version)] == versions
