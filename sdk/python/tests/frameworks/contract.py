"""The promises of every adapter, whatever the framework."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from conftest import World
from real import eventually

from svc_gateway import AgentClient
from svc_gateway.testing import FakeGateway


class Scene:
    """An agent whose scripted model calls the tool `pay` once with the amount 500, and then says `done`."""

    #: The tool was called with these amounts.
    ran: list[int]
    #: Called while the tool runs.
    during: Callable[[], Any]

    def __init__(self) -> None:
        self.ran = []
        self.during = lambda: None

    def pay(self, amount: int) -> str:
        self.ran.append(amount)
        self.during()
        return 'paid'

    def run(self) -> str:
        """Runs the agent to its end. What the model has read of the tool."""
        raise NotImplementedError


class Contract:
    """The tests that each adapter passes; `make` builds the scene, with the adapter's own options."""

    make: ClassVar[Callable[..., Scene]]
    #: Makes the adapter wait for people.
    waiting: ClassVar[dict[str, Any]] = {'approvals': 'wait'}
    #: What the model reads of every denial, and of an operation that was terminated.
    advice = 'Do not try the same in another form'
    terminated = 'terminated by an operator'
    #: Whether what the tool raises ends the run.
    raises = False

    def test_an_allowed_tool_runs_with_rewritten_arguments(self, world: World) -> None:
        client = world.client('capped')
        scene = self.make(client)
        assert 'paid' in scene.run()
        assert scene.ran == [100]
        assert world.outcome(client) == 'success'

    def test_a_denied_tool_does_not_run_and_the_model_is_told_why(self, world: World) -> None:
        scene = self.make(world.client('denied'))
        read = scene.run()
        assert scene.ran == []
        assert 'too dangerous' in read
        assert self.advice in read

    def test_a_tool_that_people_approve_runs_once(self, world: World) -> None:
        client = world.client('asked')
        scene = self.make(client, **self.waiting)
        world.decide_soon(client, 'approve')
        assert 'paid' in scene.run()
        assert scene.ran == [500]
        assert len(world.ops(client)) == 1

    def test_a_tool_that_people_deny_does_not_run(self, world: World) -> None:
        client = world.client('asked')
        scene = self.make(client, **self.waiting)
        world.decide_soon(client, 'deny')
        read = scene.run()
        assert scene.ran == []
        assert 'not today' in read

    def test_a_result_is_held_while_the_operation_is_paused(self, world: World) -> None:
        client = world.client('open')
        scene = self.make(client)
        scene.during = lambda: world.pause_and_resume(client)
        assert 'paid' in scene.run()
        assert eventually(lambda: world.was_held)

    def test_a_result_of_a_terminated_operation_is_withheld(self, world: World) -> None:
        client = world.client('open')
        scene = self.make(client)
        scene.during = lambda: world.terminate(client)
        read = scene.run()
        assert 'paid' not in read
        assert self.terminated in read

    def test_a_dead_gateway_lets_no_tool_run(self, dead_client: AgentClient) -> None:
        scene = self.make(dead_client)
        read = scene.run()
        assert scene.ran == []
        assert 'cannot reach the gateway' in read

    def test_a_tool_that_fails_ends_the_operation_as_failed(self, world: World) -> None:
        client = world.client('open')
        scene = self.make(client)

        def fail() -> None:
            raise ValueError('no money')

        scene.during = fail
        try:
            scene.run()
        except Exception as error:
            assert self.raises, error
            assert 'no money' in str(error)
        assert world.outcome(client) == 'failure'

    def test_tokens_are_counted(self, fake: FakeGateway) -> None:
        fake.allow('*')
        self.make(fake.client()).run()
        used = eventually(lambda: fake.usage)[0]
        assert (used['inputTokens'], used['outputTokens']) == (10, 5)
        assert used['model'].startswith('scripted')

    def test_tokens_are_priced_by_the_gateway(self, world: World) -> None:
        client = world.client('open')
        self.make(client).run()
        # Each answer of the model that has tokens: 10 * 0.001 + 5 * 0.002.
        assert eventually(lambda: world.spent(client)) in (0.02, 0.04)

    def test_a_model_without_a_price_is_a_warning(self, connect: Callable[..., AgentClient]) -> None:
        heard: list[str] = []
        scene = self.make(connect(on_warning=lambda warning: heard.append(str(warning))))
        assert 'paid' in scene.run()
        assert eventually(lambda: heard)[0].startswith('the tokens of scripted')
        assert 'price' in heard[0]
