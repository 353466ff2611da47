"""A research fleet of two orgs: gatherers and writers of `lab`, and a guest of `uni` with whom nothing is shared.

SVC_POLICY_PATH=examples/policies/research-fleet.yaml npm start        # in one terminal
SVC_API_KEY=svc_... python3 examples/python/research_fleet.py          # in another, with the key it has shown
"""

import asyncio

from svc_gateway import ActionDeniedError, AsyncAgentClient, GatewayError

SOURCES = ['https://arxiv.org/abs/1', 'https://arxiv.org/abs/2', 'https://intranet.internal/3']


async def gather(client: AsyncAgentClient, url: str) -> str | None:
    """Reads a source, as an operation of its own; None where policy does not let it."""
    try:
        async with client.run('net.connect', url):
            return url
    except ActionDeniedError as denied:
        print(f'DENIED {url}: {denied.reason}')
        return None


async def main() -> None:
    async with (
        AsyncAgentClient(agent='lab/gather/g1') as gatherer,
        AsyncAgentClient(agent='lab/write/w1') as writer,
        AsyncAgentClient(agent='uni/visit/guest') as guest,
    ):
        async with gatherer.run('tool.call', 'web_search', attributes={'max_results': 10}, trace_id='study') as search:
            found = await asyncio.gather(*(gather(gatherer, url) for url in SOURCES))
            sources = [url for url in found if url is not None]
            async with gatherer.run('file.write', '/notes/study.md', attributes={'sources': sources}):
                print(f'noted {len(sources)} sources')
            # An operation belongs to its org: for others it does not exist.
            try:
                await guest.complete(search.op_id)
            except GatewayError as error:
                print(f'uni cannot touch it: {error.code}')
        async with writer.run('file.write', '/reports/study.md'):
            print('wrote the report')
        for client, what in ((writer, 'writers stay offline'), (guest, 'no rule for guests')):
            answer = await client.check('net.connect', 'https://arxiv.org/abs/1')
            print(f'{what}: {answer.decision}, {answer.cause}')


if __name__ == '__main__':
    asyncio.run(main())
