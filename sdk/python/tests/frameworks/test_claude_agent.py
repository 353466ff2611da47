"""The Claude Agent SDK with the Claude Code that it brings, and a scripted model in place of the provider."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest

pytest.importorskip('claude_agent_sdk')

from claude_agent_sdk import ClaudeAgentOptions, ResultMessage, UserMessage, create_sdk_mcp_server, query, tool
from contract import Contract, Scene

from svc_gateway import AgentClient
from svc_gateway import claude_agent as adapter

TOOL = 'mcp__money__pay'


class Provider(ThreadingHTTPServer):
    """Answers as the Messages API does: with a call of the tool first, then with `done`."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(('127.0.0.1', 0), Handler)
        self.read: list[str] = []
        threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True).start()

    @property
    def url(self) -> str:
        return f'http://127.0.0.1:{self.server_address[1]}'


class Handler(BaseHTTPRequestHandler):
    server: Provider

    def do_HEAD(self) -> None:
        self.send_response(200)
        self.end_headers()

    def do_GET(self) -> None:
        self.do_HEAD()

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers.get('content-length') or 0)) or b'{}')
        blocks = [
            block
            for message in asked.get('messages', [])
            if isinstance(message['content'], list)
            for block in message['content']
        ]
        results = [json.dumps(block) for block in blocks if block['type'] == 'tool_result']
        self.server.read.extend(results)
        may_call = not results and any(each.get('name') == TOOL for each in asked.get('tools', []))
        self.send_response(200)
        self.send_header('content-type', 'text/event-stream')
        self.end_headers()
        for kind, fields in events(may_call):
            self.wfile.write(f'event: {kind}\ndata: {json.dumps({"type": kind, **fields})}\n\n'.encode())

    def log_message(self, *_args: Any) -> None:
        """Says nothing."""


def events(is_call: bool) -> Iterator[tuple[str, dict[str, Any]]]:
    usage = {'input_tokens': 10 if is_call else 0, 'output_tokens': 0}
    message = {'id': 'm', 'type': 'message', 'role': 'assistant', 'model': 'scripted-1', 'content': [], 'usage': usage}
    yield 'message_start', {'message': {**message, 'stop_reason': None}}
    block: dict[str, Any] = {'type': 'text', 'text': ''}
    delta: dict[str, Any] = {'type': 'text_delta', 'text': 'done'}
    if is_call:
        block = {'type': 'tool_use', 'id': 'toolu_1', 'name': TOOL, 'input': {}}
        delta = {'type': 'input_json_delta', 'partial_json': '{"amount": 500}'}
    yield 'content_block_start', {'index': 0, 'content_block': block}
    yield 'content_block_delta', {'index': 0, 'delta': delta}
    yield 'content_block_stop', {'index': 0}
    stop = 'tool_use' if is_call else 'end_turn'
    yield 'message_delta', {'delta': {'stop_reason': stop}, 'usage': {'output_tokens': 5 if is_call else 0}}
    yield 'message_stop', {}


class ClaudeScene(Scene):
    home: ClassVar[Path]

    def __init__(self, client: AgentClient, hooks: Any = None) -> None:
        super().__init__()
        self.provider = Provider()
        self.client = client

        @tool('pay', 'Pays.', {'amount': int})
        async def pay(arguments: dict[str, Any]) -> dict[str, Any]:
            text = await asyncio.to_thread(self.pay, arguments['amount'])
            return {'content': [{'type': 'text', 'text': text}]}

        self.options = ClaudeAgentOptions(
            hooks=hooks or adapter.svc_hooks(client),
            mcp_servers={'money': create_sdk_mcp_server('money', tools=[pay])},
            allowed_tools=[TOOL],
            model='scripted-1',
            cwd=str(self.home),
            setting_sources=[],
            env={
                'HOME': str(self.home),
                'ANTHROPIC_BASE_URL': self.provider.url,
                'ANTHROPIC_API_KEY': 'none',
                'CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC': '1',
                'ENABLE_TOOL_SEARCH': 'false',
                'IS_SANDBOX': '1',
            },
        )

    def run(self) -> str:
        async def main() -> None:
            async for message in query(prompt='pay', options=self.options):
                if isinstance(message, UserMessage):
                    self.provider.read.append(str(message.content))
                if isinstance(message, ResultMessage):
                    await adapter.record_result(self.client, message)
                    await adapter.record_result(self.client, message)

        asyncio.run(asyncio.wait_for(main(), 90))
        self.provider.shutdown()
        return '\n'.join(self.provider.read)


@pytest.fixture(autouse=True)
def home(tmp_path: Path) -> None:
    ClaudeScene.home = tmp_path


class TestClaudeAgent(Contract):
    make = ClaudeScene
    waiting: ClassVar[dict[str, Any]] = {}

    def test_a_hook_that_fails_blocks_the_tool(self, world: Any) -> None:
        client = world.client('open')
        hooks = adapter.svc_hooks(client)

        async def broken(*_args: Any) -> Any:
            raise RuntimeError('a mistake')

        hooks['PreToolUse'][0].hooks[:] = [broken]
        scene = ClaudeScene(client, hooks)
        scene.run()
        assert scene.ran == []
