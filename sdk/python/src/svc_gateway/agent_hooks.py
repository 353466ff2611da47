"""AGENT-HOOKS-0.1: an interceptor and an approval resolver for hosts such as Microsoft Agent Framework.

    hooks = create_agent_hooks_middleware([Interceptor(client)], resolver=ApprovalResolver(client), timeout=960)

The verdicts are those of the gateway's `/v1/agent-hooks/intercept`; if it cannot be reached, a deny. The host's
time-out has to be longer than the client's `approval_timeout`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agent_hooks import ApprovalOutcome, ApprovalRequest, ApprovalResolution, Verdict

from .gate import Client, Gate
from .transport import encoded
from .types import Usage

PATH = '/v1/agent-hooks/intercept'


class Interceptor:
    """Asks the gateway at every point; records the tokens of `post_model_call`."""

    def __init__(self, client: Client, *, usage: bool = True) -> None:
        self._gate = Gate(client)
        self._counts = usage

    async def intercept(self, context: Mapping[str, Any], /) -> Verdict | dict[str, Any]:
        try:
            if context['interception_point'] == 'post_model_call' and self._counts:
                await self._count(context)
            return await self._verdict(context)
        except Exception as error:
            self._gate.warn(error)
            return Verdict.deny(reason='unreachable', message=f'it could not be checked: {error}')

    async def _verdict(self, context: Mapping[str, Any]) -> dict[str, Any]:
        gate = self._gate
        for point in ('pre_tool_call', 'post_tool_call'):
            if context['interception_point'] == point:
                return await gate.post(gate.async_io, PATH, encoded(_plain(context)))
        return {'decision': 'allow'}

    async def _count(self, context: Mapping[str, Any]) -> None:
        used = context.get('usage') or {}
        # Agent Framework passes its own names on.
        read = used.get('prompt_tokens', used.get('input_token_count'))
        written = used.get('completion_tokens', used.get('output_token_count'))
        if read is None and written is None:
            return
        model = context.get('model') or {}
        usage = Usage(
            model=str(model.get('id') or 'unknown'),
            provider=model.get('vendor'),
            input_tokens=read or 0,
            output_tokens=written or 0,
        )
        await self._gate.count(self._gate.async_io, usage, context.get('request_id'))


class ApprovalResolver:
    """Waits for people, then asks the gateway again: its verdict is the resolution."""

    def __init__(self, client: Client) -> None:
        self._gate = Gate(client)
        self._interceptor = Interceptor(client, usage=False)

    async def resolve(self, request: ApprovalRequest, /) -> ApprovalResolution:
        try:
            outcome, verdict = await self._decided(request)
        except Exception as error:
            self._gate.warn(error)
            outcome, verdict = ApprovalOutcome.UNRESOLVED, None
        return ApprovalResolution(outcome, request.context_identity, verdict)

    async def _decided(self, request: ApprovalRequest) -> tuple[ApprovalOutcome, Any]:
        approval = request.verdict.approval
        approval_id = approval.get('id') if isinstance(approval, Mapping) else None
        if not isinstance(approval_id, str):
            return ApprovalOutcome.UNRESOLVED, None  # another interceptor's
        decided = await self._gate.wait_approval(self._gate.async_io, approval_id)
        if decided.state == 'pending':
            return ApprovalOutcome.UNRESOLVED, None
        # The use of an approval is the gateway's to allow, once; a person's denial comes back from it as such.
        answer = await self._interceptor._verdict(request.context)
        verdict = Verdict.from_wire(answer)
        if answer['decision'] == 'deny' and answer.get('approval') is not None:
            return ApprovalOutcome.UNRESOLVED, None
        outcome = ApprovalOutcome.REJECT if answer['decision'] == 'deny' else ApprovalOutcome.APPROVE
        return outcome, verdict


def _plain(context: Mapping[str, Any]) -> dict[str, Any]:
    """Returns what the door reads of a context; results and messages stay here."""
    names = ('spec', 'interception_point', 'timestamp', 'sequence', 'agent', 'session', 'tool_call', 'target')
    plain = {name: context[name] for name in names if name in context}
    if context['interception_point'] == 'post_tool_call':
        plain.pop('target', None)
        plain['tool_result'] = {'value': None, 'is_error': bool(context['tool_result']['is_error'])}
    return plain
