"""Frames: the headers of each version, and what happens to a request that is not served."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("kio")

from replog.run.serve import frames
from replog.run.serve.codec import INT16, INT32, MalformedError, read, write
from replog.run.serve.frames import VERSIONS, Api, RefusedError, parse, respond
from replog.run.serve.layout import KioLayouts
from replog.store.segments.records import encode_unsigned

LAYOUTS = KioLayouts()


def frame(key: int, version: int, body: bytes, flexible: bool, client: bytes | None = b"me") -> bytes:
    name = INT16.pack(-1) if client is None else INT16.pack(len(client)) + client
    tags = encode_unsigned(0) if flexible else b""
    return INT16.pack(key) + INT16.pack(version) + INT32.pack(5) + name + tags + body


@pytest.mark.parametrize("api", list(Api), ids=lambda api: api.name)
def test_each_version_is_read_and_answered(api):
    for version in range(VERSIONS[api][0], VERSIONS[api][1] + 1):
        layout, flexible = LAYOUTS.request(api, version)
        request = parse(LAYOUTS, frame(api, version, write(layout, {}), flexible, None))
        assert (request.api, request.version, request.correlation, request.client_id) == (api, version, 5, "")
        response, flexible = LAYOUTS.response(api, version)
        assert flexible == (response.is_flexible and api is not Api.API_VERSIONS)
        answer = respond(LAYOUTS, request, {})
        assert answer[:4] == INT32.pack(5)
        read(response, answer, 5 if flexible else 4)


def test_no_version_has_topics_by_id():
    for api, (_, last) in VERSIONS.items():
        assert "'topic_id'" not in repr(LAYOUTS.request(api, last)[0]), api


@pytest.mark.parametrize("version", [5, 99, -1])
def test_newer_api_versions_are_answered_in_version_0(version):
    with pytest.raises(RefusedError) as refused:
        parse(LAYOUTS, frame(Api.API_VERSIONS, version, b"?", True))
    answer = read(LAYOUTS.response(Api.API_VERSIONS, 0)[0], refused.value.response, 4)
    assert answer["error_code"] == 35
    assert {"api_key": 18, "min_version": 0, "max_version": 4} in answer["api_keys"]


def test_an_unsupported_version_gets_an_error_where_there_is_a_place_for_it():
    with pytest.raises(RefusedError) as refused:
        parse(LAYOUTS, frame(Api.FETCH, 16, b"?", True))
    layout, _ = LAYOUTS.response(Api.FETCH, 16)
    assert read(layout, refused.value.response, 5)["error_code"] == 35
    # A version that kio does not know, and responses with an error for each topic alone.
    for key, version in ((Api.FETCH, 99), (999, 0), (Api.PRODUCE, 13)):
        with pytest.raises(RefusedError) as refused:
            parse(LAYOUTS, frame(key, version, b"?", True))
        assert refused.value.response is None


@settings(max_examples=300)
@given(st.sampled_from(list(Api)), st.integers(0, 12), st.binary(max_size=80))
def test_any_bytes_are_a_request_or_refused(api, version, data):
    try:
        parse(LAYOUTS, INT16.pack(api) + INT16.pack(version) + data)
    except (MalformedError, RefusedError):
        return


@given(st.sampled_from(list(Api)), st.data())
def test_a_request_with_changed_bytes_is_a_request_or_refused(api, data):
    version = VERSIONS[api][1]
    layout, flexible = LAYOUTS.request(api, version)
    whole = bytearray(frame(api, version, write(layout, {}), flexible))
    for _ in range(data.draw(st.integers(1, 4))):
        whole[data.draw(st.integers(4, len(whole) - 1))] = data.draw(st.integers(0, 255))
    try:
        parse(LAYOUTS, bytes(whole))
    except (MalformedError, RefusedError):
        return


def test_only_a_produce_request_may_be_large():
    assert frames.limit_of(Api.PRODUCE, 1 << 24) == 1 << 24
    assert frames.limit_of(Api.METADATA, 1 << 24) == 1 << 20
    assert frames.limit_of(Api.METADATA, 1 << 10) == 1 << 10
