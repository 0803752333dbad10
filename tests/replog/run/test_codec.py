"""Kafka's messages: the bytes are kio's, and no bytes make more of themselves than they are."""

import io
from importlib.util import find_spec

import pytest
from hypothesis import given
from hypothesis import strategies as st

from replog.run.serve import codec
from replog.run.serve.codec import Field, MalformedError, Struct, read, write

INNER = Struct("Inner", True, (Field("name", "string"), Field("count", "int32", tag=0, default=7)))
FLEXIBLE = Struct(
    "Flexible",
    True,
    (
        Field("parts", INNER, is_array=True, default=()),
        Field("ids", "int16", is_array=True, is_nullable=True, default=None),
        Field("data", "records", is_nullable=True, default=None),
        Field("inner", INNER, is_nullable=True, default=None),
        Field("flag", "bool"),
    ),
)
LEGACY_INNER = Struct("Part", False, (Field("name", "string", is_nullable=True, default=None),))
LEGACY = Struct(
    "Legacy",
    False,
    (Field("parts", LEGACY_INNER, is_array=True, default=()), Field("data", "bytes"), Field("at", "int64")),
)
PARTS = st.lists(
    st.fixed_dictionaries({"name": st.text(max_size=5), "count": st.integers(0, 99)}), max_size=4
)
FLEXIBLE_BODIES = st.fixed_dictionaries(
    {
        "parts": PARTS.map(tuple),
        "ids": st.none() | st.lists(st.integers(-5, 5), max_size=4).map(tuple),
        "data": st.none() | st.binary(max_size=200),
        "inner": st.none() | PARTS.filter(bool).map(lambda parts: parts[0]),
        "flag": st.booleans(),
    }
)


@given(FLEXIBLE_BODIES)
def test_what_is_written_is_read(body):
    assert read(FLEXIBLE, write(FLEXIBLE, body)) == body


def test_defaults_fill_what_is_missing():
    assert read(FLEXIBLE, write(FLEXIBLE, {"parts": [{"name": "a"}]})) == {
        "parts": ({"name": "a", "count": 7},),
        "ids": None,
        "data": None,
        "inner": None,
        "flag": False,
    }


@given(FLEXIBLE_BODIES, st.data())
def test_a_message_that_is_cut_or_goes_on_is_refused(body, data):
    whole = write(FLEXIBLE, body)
    with pytest.raises(MalformedError):
        read(FLEXIBLE, whole[: data.draw(st.integers(0, len(whole) - 1))])
    with pytest.raises(MalformedError):
        read(FLEXIBLE, whole + b"\0")


@given(st.sampled_from([FLEXIBLE, LEGACY]), st.binary(max_size=60))
def test_any_bytes_are_a_message_or_malformed(layout, data):
    try:
        body = read(layout, data)
    except MalformedError:
        return
    assert read(layout, write(layout, body)) == body


@pytest.mark.parametrize(
    ("layout", "data"),
    [
        (FLEXIBLE, b"\xff\xff\xff\xff\x0f" + bytes(20)),
        (LEGACY, b"\x7f\xff\xff\xff" + bytes(20)),
        (LEGACY, b"\xff\xff\xff\xfe" + bytes(20)),
        (LEGACY, bytes(4) + b"\x7f\xff\xff\xff" + bytes(20)),
        (FLEXIBLE, b"\x80" * 9),
        # A string that is no UTF-8, and an array that may not be null.
        (LEGACY, b"\0\0\0\1\0\1\xff" + bytes(12)),
        (FLEXIBLE, b"\0" + bytes(20)),
    ],
    ids=["compact", "legacy", "negative", "bytes", "varint", "text", "null"],
)
def test_a_count_is_not_believed(layout, data):
    with pytest.raises(MalformedError):
        read(layout, data)


def test_many_small_elements_are_too_many():
    many = codec.MOST_ELEMENTS + 1
    with pytest.raises(MalformedError, match="elements"):
        read(LEGACY, many.to_bytes(4, "big") + bytes(2) * many + bytes(12))


def test_unknown_tagged_fields_are_skipped():
    body = write(INNER, {"name": "a", "count": 9})
    assert body == b"\x02a\x01\x00\x04\x00\x00\x00\x09"
    assert read(INNER, b"\x02a\x02\x05\x01?\x00\x04\x00\x00\x00\x09") == {"name": "a", "count": 9}
    with pytest.raises(MalformedError, match="size"):
        read(INNER, b"\x02a\x01\x00\x05\x00\x00\x00\x09\x00")


@pytest.mark.skipif(find_spec("kio") is None, reason="kio is not installed: the extra `serve`")
def test_every_message_that_is_served_has_the_bytes_of_kio():
    from kio.index import load_request_schema, load_response_schema
    from kio.serial import entity_reader, entity_writer

    from replog.run.serve.frames import VERSIONS
    from replog.run.serve.layout import KioLayouts

    layouts = KioLayouts()
    for api, (first, last) in VERSIONS.items():
        for version in range(first, last + 1):
            for load, layout_of in (
                (load_request_schema, layouts.request),
                (load_response_schema, layouts.response),
            ):
                schema, (layout, _) = load(api, version), layout_of(api, version)
                data = write(layout, sample(layout))
                entity, size = entity_reader(schema)(data, 0)
                again = io.BytesIO()
                entity_writer(schema)(again, entity)
                assert (again.getvalue(), size) == (data, len(data)), f"{layout.name} {version}"
                assert write(layout, read(layout, data)) == data


def sample(layout):
    """Return a message with a value in each field, two in each array."""
    values = {
        "string": "text",
        "bytes": b"bytes",
        "records": b"records",
        "uuid": bytes(range(16)),
        "bool": True,
    }
    body = {}
    for number, field in enumerate(layout.fields, 1):
        nested = isinstance(field.kind, Struct)
        value = sample(field.kind) if nested else values.get(field.kind, number)
        body[field.name] = (value, value) if field.is_array else value
    return body
