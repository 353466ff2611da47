"""Calls the gateway with grpcio, which has an HTTP/2 of its own. Prints what it gets as JSON, messages in base64.

Arguments: the address, and a CheckActionRequest in base64.
"""

import base64
import json
import sys

import grpc

address, message = sys.argv[1], base64.b64decode(sys.argv[2])
channel = grpc.insecure_channel(address)
POLICY = "/svc.governance.v1.PolicyService/"


def text(answer):
    return base64.b64encode(answer).decode()


def refusal(call):
    try:
        call()
    except grpc.RpcError as error:
        trailers = dict(error.trailing_metadata() or ())
        return [error.code().name, error.details(), trailers.get("svc-code")]
    return None


check = channel.unary_unary(POLICY + "CheckAction")
stream = channel.stream_stream(POLICY + "StreamCheckActions")
watch = channel.unary_stream("/grpc.health.v1.Health/Watch")(b"")
print(
    json.dumps(
        {
            "check": text(check(message, timeout=20)),
            "stream": [text(answer) for answer in stream(iter([message] * 100), timeout=20)],
            "watch": text(next(watch)),
            "malformed": refusal(lambda: check(b"\x0a\x7f", timeout=20)),
            "tooLarge": refusal(lambda: check(b"\x00" * 2_000_000, timeout=20)),
            "compressed": refusal(lambda: check(b"\x00" * 2_000, timeout=20, compression=grpc.Compression.Gzip)),
            "unknown": refusal(lambda: channel.unary_unary(POLICY + "Nothing")(b"", timeout=20)),
        }
    )
)
watch.cancel()
channel.close()
